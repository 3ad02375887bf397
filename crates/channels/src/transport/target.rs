//! Where a request goes. In: an absolute address. Out: host, port, whether it is encrypted, and the path exactly as it was written.

use http::Uri;

/// A parsed address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Connections are kept by this.
    pub(super) origin: Origin,
    /// Path and query, untouched: signatures cover them.
    pub(super) path_and_query: String,
    /// The value of the `Host` header.
    pub(super) authority: String,
}

/// What one connection can be used for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    /// `https`.
    pub(super) encrypted: bool,
    /// Without brackets.
    pub(super) host: String,
    /// The given port, or the scheme's.
    pub(super) port: u16,
}

impl Target {
    /// Parses `url`; the error says what is wrong with it and not what it is.
    pub(super) fn parse(url: &str) -> Result<Self, &'static str> {
        let uri: Uri = url.parse().map_err(|_| "the address is not a URL")?;
        let encrypted = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) | None => return Err("the address begins with neither https:// nor http://"),
        };
        let authority = uri.authority().ok_or("the address has no host")?;
        if authority.as_str().contains('@') {
            return Err("the address holds a user name");
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err("the address has no host");
        }
        let port = authority.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        let path_and_query = uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
        Ok(Self { origin: Origin { encrypted, host, port }, path_and_query, authority: authority.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_kept_as_written() {
        let target = Target::parse("https://pay.example.test/v3/a%2Fb/c?x=%E4%B8%AD&y=1+2").expect("fine");
        assert_eq!(target.path_and_query, "/v3/a%2Fb/c?x=%E4%B8%AD&y=1+2");
        assert_eq!(target.origin, Origin { encrypted: true, host: "pay.example.test".to_owned(), port: 443 });
        assert_eq!(
            Target::parse("http://[::1]:8080").expect("fine").origin,
            Origin { encrypted: false, host: "::1".to_owned(), port: 8080 }
        );
        for bad in ["", "/only/path", "ftp://x/", "https://", "https://user@host/", "https://ho st/", "localhost:80"] {
            assert!(Target::parse(bad).is_err(), "{bad:?}");
        }
    }
}
