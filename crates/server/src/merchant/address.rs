//! Which addresses a callback may go to (B092). Pure.
//!
//! In: a URL, or a resolved address. Out: allowed, or why not. Never: a guess; what does not parse is refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Why an address is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("it is no absolute URL")]
    NotAUrl,
    #[error("it must be http or https")]
    Scheme,
    #[error("it must not hold a user name or password")]
    UserInfo,
    #[error("it is longer than 2048 characters")]
    TooLong,
    #[error("it leads inside the network; an operator can list the host in allow_hosts")]
    Inside,
}

/// Hosts inside the network that may be called all the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowed(Vec<(String, Option<u16>)>);

impl Allowed {
    /// Entries of the form `host` or `host:port`.
    pub(crate) fn new(entries: impl IntoIterator<Item = String>) -> Self {
        Self(entries.into_iter().map(|entry| split(&entry)).collect())
    }

    fn names(&self, host: &str, port: u16) -> bool {
        self.0.iter().any(|(name, only)| name.eq_ignore_ascii_case(host) && only.is_none_or(|only| only == port))
    }
}

fn split(entry: &str) -> (String, Option<u16>) {
    let bare = |host: &str| host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    match entry.rsplit_once(':') {
        // An IPv6 address has colons of its own.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (bare(host), Some(port)),
            Err(_) => (bare(entry), None),
        },
        Some(_) | None => (bare(entry), None),
    }
}

/// A callback's address, as far as the URL itself tells.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) url: Url,
    /// Without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// An operator has listed this very host.
    pub(crate) listed: bool,
}

/// Checks what can be told without resolving names. Done when a payment is made, and again before each call.
pub(crate) fn check(text: &str, allowed: &Allowed) -> Result<Target, Refused> {
    if text.len() > 2048 {
        return Err(Refused::TooLong);
    }
    let url = Url::parse(text).map_err(|_| Refused::NotAUrl)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Refused::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused::UserInfo);
    }
    let port = url.port_or_known_default().ok_or(Refused::NotAUrl)?;
    let (host, inside) = match url.host().ok_or(Refused::NotAUrl)? {
        Host::Ipv4(ip) => (ip.to_string(), is_inside(IpAddr::V4(ip))),
        Host::Ipv6(ip) => (ip.to_string(), is_inside(IpAddr::V6(ip))),
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            let inside = name == "localhost" || name.ends_with(".localhost");
            (name, inside)
        }
    };
    let listed = allowed.names(&host, port);
    if inside && !listed {
        return Err(Refused::Inside);
    }
    Ok(Target { url, host, port, listed })
}

/// Whether a resolved address of a target may be connected to.
pub(crate) fn may_connect(target: &Target, ip: IpAddr, allowed: &Allowed) -> bool {
    target.listed || !is_inside(ip) || allowed.names(&ip.to_string(), target.port)
}

/// Whether an address is not one of the public internet.
pub(crate) fn is_inside(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_inside_v4(ip),
        IpAddr::V6(ip) => is_inside_v6(ip),
    }
}

fn is_inside_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    // 169.254.0.0/16 holds the clouds' metadata service; 100.64.0.0/10 is the carriers' own; 198.18.0.0/15 is for benchmarks.
    ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_multicast()
        || ip.is_broadcast()
        || ip.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b))
}

fn is_inside_v6(ip: Ipv6Addr) -> bool {
    let segments = ip.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_inside_v4(Ipv4Addr::new(a, b, c, d))
    };
    let [first, second, .., seventh, eighth] = segments;
    if let Some(mapped) = ip.to_ipv4_mapped() {
        return is_inside_v4(mapped);
    }
    match first {
        // Global unicast is 2000::/3; all else is loopback, unspecified, local, multicast, or of no use here.
        0x2002 => embedded(second, segments[2]),
        0x2001 if second == 0xdb8 || second < 0x200 => true,
        0x2000..=0x3fff => false,
        // NAT64 leads to the IPv4 address inside.
        0x64 if second == 0xff9b => embedded(seventh, eighth),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> Option<Refused> {
        check(url, &Allowed::default()).err()
    }

    #[test]
    fn b092_addresses_inside_the_network_are_refused_in_every_spelling() {
        for url in [
            "http://127.0.0.1:8080/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.0.0.1/",
            "http://017700000001/",
            "http://0.0.0.0/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[64:ff9b::a00:5]/",
            "http://[2002:7f00:1::]/",
            "http://[fe80::1]/",
            "http://[fd00::1]/",
            "http://10.0.0.5/",
            "http://172.16.0.1/",
            "http://192.168.1.1/",
            "http://100.64.0.1/",
            "http://169.254.169.254/latest/",
            "http://224.0.0.1/",
            "http://255.255.255.255/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://a.localhost/",
        ] {
            assert_eq!(refusal(url), Some(Refused::Inside), "{url}");
        }
    }

    #[test]
    fn b092_other_schemes_user_info_and_nonsense_are_refused() {
        assert_eq!(refusal("file:///etc/passwd"), Some(Refused::Scheme));
        assert_eq!(refusal("gopher://x/"), Some(Refused::Scheme));
        assert_eq!(refusal("https://user:secret@shop.example/"), Some(Refused::UserInfo));
        assert_eq!(refusal("https://user@shop.example/"), Some(Refused::UserInfo));
        for bad in ["", "shop.example", "/hook", "http://", "http://[::1/"] {
            assert_eq!(refusal(bad), Some(Refused::NotAUrl), "{bad:?}");
        }
        assert_eq!(refusal(&format!("https://shop.example/{}", "x".repeat(2048))), Some(Refused::TooLong));
    }

    #[test]
    fn public_addresses_pass_and_listed_ones_too() {
        for url in ["https://shop.example/h?x=1", "http://93.184.216.34/", "https://[2606:2800:220:1::1]/"] {
            assert_eq!(refusal(url), None, "{url}");
        }
        let allowed =
            Allowed::new(["127.0.0.1:9000".to_owned(), "[::1]:9000".to_owned(), "Inside.Example".to_owned(), "10.0.0.5".to_owned()]);
        assert!(check("http://127.0.0.1:9000/h", &allowed).is_ok());
        assert!(check("http://127.0.0.1:9001/h", &allowed).is_err(), "the port counts where it is listed");
        assert!(check("http://[::1]:9000/h", &allowed).is_ok());
        let named = check("http://inside.example/h", &allowed).expect("a name");
        assert!(may_connect(&named, IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9)), &allowed));
        let other = check("http://shop.example/h", &allowed).expect("a name");
        assert!(!may_connect(&other, IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9)), &allowed), "a public name that leads inside");
        assert!(may_connect(&other, IpAddr::V4(Ipv4Addr::new(10, 0, 0, 5)), &allowed), "unless it leads to a listed address");
    }
}
