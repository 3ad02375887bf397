//! Addresses and TLS.
//!
//! In: a `postgres://` address. Out: the driver's configuration, and a TLS connector where the address asks for it. Without `sslmode` a connection is
//! plain. With `require`, `verify-ca` or `verify-full` it is encrypted and the server's certificate is checked against `sslrootcert`, or against the
//! usual public roots: there is no mode that encrypts and trusts anybody.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use payonce_core::ports::StoreFault;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Where to connect, and how.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
    pub(crate) tls: Option<MakeRustlsConnect>,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The configuration holds a password.
        f.debug_struct("Address").field("tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}

impl Address {
    pub(crate) fn parse(url: &str, timeout: Duration) -> Result<Self, StoreFault> {
        let (plain, verify, roots) = split(url);
        // The driver's message may repeat the address, and with it the password.
        let mut config = Config::from_str(&plain).map_err(|_| StoreFault::Refused("the database's address cannot be read".to_owned()))?;
        if config.get_application_name().is_none() {
            config.application_name("payonce");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(timeout);
        }
        if config.get_target_session_attrs() == TargetSessionAttrs::Any {
            // Every decision is taken on the primary (B042): of several hosts, only one that takes writes will do.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let required = verify || config.get_ssl_mode() == SslMode::Require;
        if !required {
            config.ssl_mode(SslMode::Disable);
            return Ok(Self { config, tls: None });
        }
        config.ssl_mode(SslMode::Require);
        Ok(Self { config, tls: Some(connector(roots.as_deref())?) })
    }
}

/// Takes out what the driver does not know: `sslmode=verify-…` and `sslrootcert=…`.
fn split(url: &str) -> (String, bool, Option<String>) {
    let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), false, None) };
    let (mut verify, mut roots, mut kept) = (false, None, Vec::new());
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", "verify-ca" | "verify-full")) => verify = true,
            Some(("sslrootcert", path)) => roots = Some(path.replace("%2F", "/").replace("%2f", "/")),
            Some(_) | None => kept.push(pair),
        }
    }
    let plain = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
    (plain, verify, roots)
}

fn connector(roots: Option<&str>) -> Result<MakeRustlsConnect, StoreFault> {
    let mut store = RootCertStore::empty();
    match roots {
        None => store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => {
            let refused = |why: String| StoreFault::Refused(format!("sslrootcert {path}: {why}"));
            let certificates = CertificateDer::pem_file_iter(path).map_err(|error| refused(error.to_string()))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| refused(error.to_string()))?;
                store.add(certificate).map_err(|error| refused(error.to_string()))?;
            }
            if store.is_empty() {
                return Err(refused("holds no certificate".to_owned()));
            }
        }
    }
    // A library must not set the process's default provider, so it names its own.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreFault::Refused(error.to_string()))?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Address, StoreFault> {
        Address::parse(url, Duration::from_secs(5))
    }

    #[test]
    fn plain_by_default_and_checked_where_asked() {
        assert!(parse("postgres://u@h/d").expect("reads").tls.is_none());
        assert!(parse("postgres://u@h/d?sslmode=disable").expect("reads").tls.is_none());
        for mode in ["require", "verify-ca", "verify-full"] {
            let address = parse(&format!("postgres://u@h/d?sslmode={mode}&application_name=x")).expect("reads");
            assert!(address.tls.is_some(), "{mode}");
            assert_eq!(address.config.get_ssl_mode(), SslMode::Require, "{mode}");
            assert_eq!(address.config.get_application_name(), Some("x"));
        }
        assert!(parse("postgres://u@h/d?sslmode=require&sslrootcert=/nowhere.pem").is_err(), "roots that cannot be read are not skipped");
    }

    #[test]
    fn an_address_that_cannot_be_read_is_not_repeated() {
        let fault = parse("postgres://u:geheim@h:port/d").expect_err("the port is no number");
        assert!(!fault.to_string().contains("geheim"));
    }
}
