//! What a client asks, as it says it.

use hyper::Version;
use hyper::http::request::Parts;

use super::response::Problem;

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// `GET`.
    pub(crate) method: String,
    /// The path, with its percent signs resolved.
    pub(crate) path: String,
    /// What stands behind the question mark.
    pub(crate) query: Query,
    headers: Vec<(String, String)>,
    /// Bytes of the body; `None` when it has none.
    pub(crate) length: Option<u64>,
}

impl Request {
    /// What hyper has read, unless it is something that is not answered here.
    pub(super) fn read(head: &Parts) -> Result<Self, Problem> {
        let headers = head.headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
            (name.as_str().to_owned(), value)
        });
        let mut request = Self {
            method: head.method.as_str().to_owned(),
            path: String::new(),
            query: Query::default(),
            headers: headers.collect(),
            length: None,
        };
        if head.uri.authority().is_some() {
            return Err(Problem::new(400, "the target must be a path"));
        }
        let target = head.uri.path_and_query();
        request.take_target(target.map_or("", |target| target.as_str()))?;
        let n_hosts = head.headers.get_all("host").iter().count();
        if n_hosts != 1 && head.version == Version::HTTP_11 {
            return Err(Problem::new(400, "there must be one Host"));
        }
        request.take_length()?;
        Ok(request)
    }

    /// A header, by its name in lower case; the first when there are several.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    fn take_target(&mut self, target: &str) -> Result<(), Problem> {
        if !target.starts_with('/') {
            return Err(Problem::new(400, "the target must be a path"));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = decode(path, false).filter(|path| !path.contains('\0'));
        self.path = path.ok_or_else(|| Problem::new(400, "the path is no text"))?;
        self.query = Query::parse(query)?;
        Ok(())
    }

    fn take_length(&mut self) -> Result<(), Problem> {
        if self.header("transfer-encoding").is_some() {
            let detail = "say how long the body is: chunked bodies are not taken";
            return Err(Problem::new(411, detail));
        }
        // Two that differ are how requests are smuggled past what stands in between; hyper
        // has refused them.
        let length = self.header("content-length").map(str::parse).transpose();
        self.length = length.map_err(|_| Problem::new(400, "Content-Length makes no sense"))?;
        Ok(())
    }
}

/// The parameters of a request, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    fn parse(text: &str) -> Result<Self, Problem> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(key, true)?, decode(value, true)?))
        });
        let pairs: Option<Vec<_>> = pairs.collect();
        pairs
            .map(Self)
            .ok_or_else(|| Problem::new(400, "the query is no text"))
    }

    /// All values of a name, in order.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(key, _)| key == name);
        named.map(|(_, value)| value.as_str())
    }

    /// The same parameters in one order, as a key of what was answered.
    pub(crate) fn key(&self) -> String {
        let mut pairs = self.0.clone();
        pairs.sort();
        let pairs = pairs.iter().map(|(key, value)| format!("{key}={value:?}"));
        pairs.collect::<Vec<_>>().join("&")
    }
}

/// Resolves percent signs; `None` when it is no UTF-8.
fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let hex = |byte: u8| (byte as char).to_digit(16);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'%' => {
                let (high, low) = (hex(*rest.first()?)?, hex(*rest.get(1)?)?);
                bytes.push(u8::try_from(high * 16 + low).ok()?);
                rest = &rest[2..];
            }
            b'+' if plus_is_space => bytes.push(b' '),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::{Told, ask};
    use crate::http::{MAX_HEAD_BYTES, MAX_HEADERS};

    fn status(head: &str) -> u16 {
        let Told { status, requests } = ask(head.as_bytes());
        assert_eq!(requests, [], "it is refused: {head}");
        status
    }

    fn read(head: &str) -> Request {
        let told = ask(head.as_bytes());
        let [request] = &told.requests[..] else {
            panic!("it is well formed: {told:?}");
        };
        request.clone()
    }

    #[test]
    fn a_request_is_read() {
        let head = "GET /a%20b/c?lane=x%26y&lane=z+1&from=3 HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\n";
        let request = read(head);
        assert_eq!(request.path, "/a b/c");
        assert_eq!(
            request.query.all("lane").collect::<Vec<_>>(),
            ["x&y", "z 1"]
        );
        assert_eq!((request.header("x"), request.length), (Some("y"), None));
        assert_eq!(status(&head[..30]), 0, "the rest may still come");
    }

    #[test]
    fn what_may_hide_a_second_request_is_refused() {
        let with =
            |lines: &str| format!("POST /x HTTP/1.1\r\nHost: h\r\n{lines}\r\n\r\n0\r\n\r\nGET /y");
        assert_eq!(status(&with("Transfer-Encoding: chunked")), 411);
        assert_eq!(
            status(&with("Content-Length: 3\r\nTransfer-Encoding: chunked")),
            411
        );
        assert_eq!(status(&with("Content-Length: 3\r\nContent-Length: 4")), 400);
        assert_eq!(status(&with("Content-Length: +3")), 400);
        assert_eq!(
            status(&with("Content-Length: 99999999999999999999999")),
            400
        );
        assert_eq!(status("GET /x HTTP/1.1\r\n\r\n"), 400);
        assert_eq!(status("GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
    }

    #[test]
    fn paths_are_text() {
        for bad in ["/%", "/%f", "/%zz", "/%ff", "/%00", "x", "http://h/x"] {
            assert_eq!(
                status(&format!("GET {bad} HTTP/1.1\r\nHost: h\r\n\r\n")),
                400,
                "{bad}"
            );
        }
    }

    #[test]
    fn heads_end_somewhere() {
        let many = "a: b\r\n".repeat(MAX_HEADERS + 1);
        assert_eq!(
            status(&format!("GET / HTTP/1.1\r\nHost: h\r\n{many}\r\n")),
            431
        );
        let long = "a".repeat(MAX_HEAD_BYTES);
        assert_eq!(
            status(&format!("GET / HTTP/1.1\r\nHost: h\r\nx: {long}")),
            431
        );
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..2000)) {
            let told = ask(&bytes);
            proptest::prop_assert!(matches!(told.status, 0 | 200 | 400 | 411 | 431), "{told:?}");
        }

        #[test]
        fn any_target_is_read_or_refused(target in "/[!-~]{0,200}") {
            let told = ask(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
            proptest::prop_assert!(matches!(told.status, 200 | 400), "{told:?}");
            for request in told.requests {
                proptest::prop_assert!(!request.path.contains('\0'));
            }
        }
    }
}
