//! Who may ask.

use std::net::IpAddr;

use crate::http::{Payload, Problem, Request, Response};

const COOKIE: &str = "sexton_token";

/// Decides who may ask.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    token: Option<String>,
}

impl Guard {
    pub(crate) fn new(token: Option<String>) -> Self {
        Self { token }
    }

    /// Lets the request pass, or answers it: with a problem, or with a cookie. What is open
    /// needs no token.
    pub(crate) fn check(&self, request: &Request, is_open: bool) -> Result<(), Response> {
        self.check_name(request)?;
        check_site(request)?;
        let Some(token) = self.token.as_ref().filter(|_| !is_open) else {
            return Ok(());
        };
        if is_equal(&given(request), token) {
            return Ok(());
        }
        let mut in_address = request.query.all("token");
        match in_address.next() {
            Some(said) if request.path == "/" && is_equal(said, token) => Err(welcome(token)),
            _ => Err(Problem::new(
                401,
                "a token is needed: open the address that the server printed, or send \
                 Authorization: Bearer TOKEN",
            )
            .into()),
        }
    }

    /// A page of another site can lead its own name to our address, and is then allowed by
    /// the browser to read what we answer. It cannot do that with an address; and with a
    /// token it has none to show.
    fn check_name(&self, request: &Request) -> Result<(), Problem> {
        let host = request.header("host").unwrap_or_default();
        if self.token.is_some() || is_address(host) {
            return Ok(());
        }
        let detail = "this server is asked by its address, or as localhost; names need --token";
        Err(Problem::new(403, detail))
    }
}

fn is_address(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// Other sites may lead to the page, and do nothing else.
fn check_site(request: &Request) -> Result<(), Problem> {
    let host = request.header("host").unwrap_or_default();
    let is_ours = |origin: &str| {
        let name = origin
            .strip_prefix("http://")
            .or(origin.strip_prefix("https://"));
        name.is_some_and(|name| name.eq_ignore_ascii_case(host))
    };
    let is_foreign_origin = request.header("origin").is_some_and(|from| !is_ours(from));
    let site = request.header("sec-fetch-site").unwrap_or("none");
    let leads_here = request.method == "GET" && request.path == "/";
    if is_foreign_origin || !leads_here && matches!(site, "cross-site" | "same-site") {
        return Err(Problem::new(403, "pages of other sites may not ask"));
    }
    Ok(())
}

fn given(request: &Request) -> String {
    let bearer = request.header("authorization").and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| token.trim().to_owned())
    });
    let cookies = request.header("cookie").unwrap_or_default();
    let cookie = cookies.split(';').find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == COOKIE).then(|| value.to_owned())
    });
    bearer.or(cookie).unwrap_or_default()
}

fn welcome(token: &str) -> Response {
    let cookie = format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict");
    Response::new(302, "text/plain", Payload::Static(b""))
        .with("location", "/")
        .with("set-cookie", cookie)
}

/// Takes as long for a token that is nearly right as for any other of its length.
fn is_equal(said: &str, token: &str) -> bool {
    let differ = said.bytes().zip(token.bytes());
    let differ = differ.fold(0, |all, (a, b)| all | (a ^ b));
    said.len() == token.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_names() {
        for address in [
            "127.0.0.1",
            "127.0.0.1:80",
            "[::1]:80",
            "[::1]",
            "localhost:9",
            "10.1.2.3:4",
        ] {
            assert!(is_address(address), "{address}");
        }
        for name in [
            "",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "localhost.evil.example:1",
            "[evil]:1",
        ] {
            assert!(!is_address(name), "{name}");
        }
    }

    #[test]
    fn only_the_whole_token_is_the_token() {
        assert!(is_equal("abc", "abc"));
        for wrong in ["", "ab", "abd", "abcd", "ABC"] {
            assert!(!is_equal(wrong, "abc"), "{wrong}");
        }
    }
}
