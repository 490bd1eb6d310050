//! Which server, whom to trust, and who we are to it.

use std::str::FromStr;

use http::Uri;

use crate::part::Part;

/// A server that is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether the connection is encrypted, and whom to trust.
    pub trust: Trust,
    /// What its certificate must say, where that is not the host.
    pub server_name: Option<String>,
    /// Who we are.
    pub identity: Identity,
}

/// Whether a connection is encrypted, and whose certificates count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Nothing is encrypted.
    Plain,
    /// Certificates of this authority.
    Authority(Part),
    /// Certificates of those that this node trusts.
    System,
}

/// Who we are to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// The bearer of this token.
    Token(Part),
    /// The owner of a certificate.
    Certificate {
        /// The certificate, and those that vouch for it.
        chain: Part,
        /// Its key.
        key: Part,
    },
    /// No identity.
    Anonymous,
}

impl Server {
    /// Its name in messages, and in the header `Host`.
    pub fn name(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// The parts of `http://HOST:PORT/PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Whether it is `https`.
    pub is_https: bool,
    /// Name or address, without brackets.
    pub host: String,
    /// The port, or that of the scheme.
    pub port: u16,
    /// The path, without a slash at its end.
    pub path: String,
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{text:?} is no address of a server: {why}");
        let uri: Uri = text.parse().map_err(|error| wrong(&format!("{error}")))?;
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("write http://HOST:PORT or https://HOST:PORT")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong(
                "write credentials to a file and name it with token_file",
            ));
        }
        if uri.query().is_some() {
            return Err(wrong("leave out what comes after the question mark"));
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']');
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        Ok(Self {
            is_https,
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(if is_https { 443 } else { 80 }),
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(bool, &str, u16, &str)>) {
        let url: Result<Url, String> = text.parse();
        let found = url.as_ref().ok();
        let found = found.map(|url| (url.is_https, &*url.host, url.port, &*url.path));
        assert_eq!(found, expected, "{text}: {url:?}");
    }

    #[test]
    fn an_address_has_a_scheme_and_a_host() {
        check("http://otel:4318", Some((false, "otel", 4318, "")));
        check("https://a.example/x/", Some((true, "a.example", 443, "/x")));
        check("http://[::1]:80/", Some((false, "::1", 80, "")));
        check("http://127.0.0.1", Some((false, "127.0.0.1", 80, "")));
        for wrong in [
            "",
            "otel:4318",
            "otel",
            "ftp://a",
            "http://",
            "http://user:secret@a",
            "http://a/?b=c",
            "http://a b",
        ] {
            check(wrong, None);
        }
    }
}
