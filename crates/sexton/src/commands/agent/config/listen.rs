//! The table `[listen]` of the agent's configuration. What is open to the network has an access
//! token and TLS.

use std::net::IpAddr;
use std::path::PathBuf;

use super::Config;
use super::reader::{Entry, Reader, Wrong};

/// Certificate and key, in PEM form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Config {
    pub(super) fn listen(&mut self, reader: &Reader<'_>, table: &Entry<'_>) -> Result<(), Wrong> {
        let (mut cert, mut key_file, mut is_plain) = (None, None, false);
        reader.each(table, |key| {
            match key.name() {
                "socket" => {
                    let path = reader.path(key)?;
                    self.socket = (!path.as_os_str().is_empty()).then_some(path);
                }
                "http" => self.http = address(reader, key)?,
                "token_file" => self.token_file = Some(reader.path(key)?),
                "tls_cert" => cert = Some(reader.path(key)?),
                "tls_key" => key_file = Some(reader.path(key)?),
                "plain" => is_plain = reader.truth(key)?,
                _ => {
                    let known = "socket, http, token_file, tls_cert, tls_key, plain";
                    return Err(reader.unknown(key, known));
                }
            }
            Ok(())
        })?;
        self.tls = match (cert, key_file) {
            (Some(cert), Some(key)) => Some(TlsFiles { cert, key }),
            (None, None) => None,
            (Some(_), None) => return Err(reader.wrong_at("tls_cert", "tls_cert needs tls_key")),
            (None, Some(_)) => return Err(reader.wrong_at("tls_key", "tls_key needs tls_cert")),
        };
        let is_open = self.http.is_some_and(|http| !is_loopback(http.ip()));
        if is_open && self.token_file.is_none() {
            let text = "http is not on loopback: name a file with an access token by token_file";
            return Err(reader.wrong_at("http", text));
        }
        if is_open && self.tls.is_none() && !is_plain {
            let text = "http is not on loopback: name certificate and key by tls_cert and tls_key, \
                        or set plain = true if a proxy in front speaks TLS";
            return Err(reader.wrong_at("http", text));
        }
        Ok(())
    }
}

fn address(reader: &Reader<'_>, key: &Entry<'_>) -> Result<Option<std::net::SocketAddr>, Wrong> {
    let text = reader.text(key)?;
    if text.is_empty() {
        return Ok(None);
    }
    let address = text.parse().map_err(|_| {
        let text = format!("http = {text:?} is no address; write 127.0.0.1:8642, or \"\" for none");
        reader.wrong(key, text)
    });
    address.map(Some)
}

fn is_loopback(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => {
            ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &str, expected: &str) {
        let said = Config::parse(&format!("[listen]\n{keys}"));
        let said = said.map_or_else(|wrong| wrong.text, |_| String::new());
        assert!(
            said.contains(expected) && said.is_empty() == expected.is_empty(),
            "{keys:?}: {said}"
        );
    }

    #[test]
    fn what_is_open_to_the_network_has_a_token_and_tls() {
        let token = "token_file = \"/t\"\n";
        let tls = "tls_cert = \"/c\"\ntls_key = \"/k\"\n";
        for open in ["0.0.0.0:1", "[::]:1", "10.1.2.3:1", "[2001:db8::1]:1"] {
            let http = format!("http = {open:?}\n");
            check(&http, "token_file");
            check(&format!("{http}{tls}"), "token_file");
            check(&format!("{http}{token}"), "tls_cert and tls_key");
            check(&format!("{http}{token}plain = true\n"), "");
            check(&format!("{http}{token}{tls}"), "");
        }
        for own in [
            "127.0.0.1:1",
            "127.8.8.8:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            check(&format!("http = {own:?}\n"), "");
            check(&format!("http = {own:?}\n{tls}"), "");
        }
        check("tls_cert = \"/c\"\n", "needs tls_key");
        check("tls_key = \"/k\"\n", "needs tls_cert");
        check("tls_file = \"/k\"\n", "there are socket, http");
    }
}
