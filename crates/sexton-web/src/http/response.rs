//! What is answered.

use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use schemars::JsonSchema;
use serde::Serialize;

use super::request::Request;

/// Smaller answers are not packed: one packet holds them anyway.
const WORTH_PACKING: usize = 1024;

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Payload,
}

/// The bytes of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Payload {
    /// Of the program.
    Static(&'static [u8]),
    /// Packed with gzip, of the program.
    StaticPacked(&'static [u8]),
    /// Made for this answer, or kept from one before.
    Shared(Arc<[u8]>),
}

impl Payload {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Static(bytes) | Self::StaticPacked(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Response {
    /// So many bytes of a kind.
    pub(crate) fn new(status: u16, kind: &'static str, body: Payload) -> Self {
        Self {
            status,
            kind,
            headers: Vec::new(),
            body,
        }
    }

    /// A value as JSON.
    pub(crate) fn json(value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(bytes) => Self::new(200, "application/json", Payload::Shared(bytes.into())),
            Err(error) => Problem::new(500, format!("cannot write the answer: {error}")).into(),
        }
    }

    /// The same, with a header.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Head and body as they are sent to the client that asked; `None` when its request was
    /// not understood.
    pub(super) fn written(self, request: Option<&Request>) -> hyper::Response<Bytes> {
        let header = |name: &str| request.and_then(|request| request.header(name));
        let takes_gzip = header("accept-encoding").is_some_and(|accepts| {
            let mut words = accepts.split(',').map(str::trim);
            words.any(|word| word == "gzip" || word.starts_with("gzip;") && !word.ends_with("q=0"))
        });
        let tag = format!("\"{:016x}\"", fnv(self.body.bytes()));
        let is_known = self.status == 200
            && header("if-none-match")
                .is_some_and(|tags| tags.split(',').any(|known| known.trim() == tag));
        let mut headers = self.headers;
        headers.push(("content-type", self.kind.to_owned()));
        if self.status == 200 {
            headers.push(("etag", tag));
            headers.push(("cache-control", "no-cache".to_owned()));
            headers.push(("vary", "accept-encoding".to_owned()));
        } else {
            headers.push(("cache-control", "no-store".to_owned()));
        }
        let safety = SAFETY
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        headers.extend(safety);
        if is_known {
            return built(304, headers, Bytes::new());
        }
        let (mut body, is_packed) = encoded(self.body, takes_gzip);
        headers.push(("content-length", body.len().to_string()));
        if is_packed {
            headers.push(("content-encoding", "gzip".to_owned()));
        }
        if request.is_some_and(|request| request.method == "HEAD") {
            body = Bytes::new();
        }
        built(self.status, headers, body)
    }

    /// Head and body, byte by byte, for a client with which hyper has ended.
    pub(super) fn raw(self) -> Vec<u8> {
        let (head, body) = self.written(None).into_parts();
        let mut raw = format!("HTTP/1.1 {}\r\nconnection: close\r\n", head.status).into_bytes();
        for (name, value) in &head.headers {
            raw.extend_from_slice(name.as_str().as_bytes());
            raw.extend_from_slice(b": ");
            raw.extend_from_slice(value.as_bytes());
            raw.extend_from_slice(b"\r\n");
        }
        raw.extend_from_slice(b"\r\n");
        raw.extend_from_slice(&body);
        raw
    }
}

/// A header that hyper refuses is left out: ours are all of plain text.
fn built(status: u16, headers: Vec<(&'static str, String)>, body: Bytes) -> hyper::Response<Bytes> {
    let mut response = hyper::Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// Of every answer. The page loads nothing from elsewhere and is shown in no frame.
const SAFETY: [(&str, &str); 6] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
         font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
    ),
];

fn encoded(body: Payload, takes_gzip: bool) -> (Bytes, bool) {
    match body {
        Payload::StaticPacked(packed) if takes_gzip => (Bytes::from_static(packed), true),
        Payload::StaticPacked(packed) => (unpacked(packed), false),
        Payload::Static(bytes) => packed(Bytes::from_static(bytes), takes_gzip),
        Payload::Shared(bytes) => packed(Bytes::from_owner(bytes), takes_gzip),
    }
}

fn packed(bytes: Bytes, takes_gzip: bool) -> (Bytes, bool) {
    if !takes_gzip || bytes.len() < WORTH_PACKING {
        return (bytes, false);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let done = encoder.write_all(&bytes).and_then(|()| encoder.finish());
    match done {
        Ok(packed) => (packed.into(), true),
        Err(_) => (bytes, false),
    }
}

fn unpacked(packed: &[u8]) -> Bytes {
    let mut decoder = flate2::write::GzDecoder::new(Vec::new());
    let done = decoder.write_all(packed).and_then(|()| decoder.finish());
    done.unwrap_or_default().into()
}

/// FNV-1a: tags need to differ, not to withstand anybody.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Why something is not answered: RFC 9457.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Problem {
    status: u16,
    title: &'static str,
    detail: String,
    #[serde(skip)]
    allow: Option<&'static str>,
}

impl Problem {
    /// A problem.
    pub(crate) fn new(status: u16, detail: impl Into<String>) -> Self {
        Self {
            status,
            title: reason(status),
            detail: detail.into(),
            allow: None,
        }
    }

    /// Only these methods are known there.
    pub(crate) fn only(allow: &'static str) -> Self {
        Self {
            allow: Some(allow),
            ..Self::new(405, format!("only {allow} is answered here"))
        }
    }
}

impl From<Problem> for Response {
    fn from(problem: Problem) -> Self {
        let bytes = serde_json::to_vec(&problem).unwrap_or_default();
        let body = Payload::Shared(bytes.into());
        let mut response = Self::new(problem.status, "application/problem+json", body);
        match problem.status {
            401 => response = response.with("www-authenticate", "Bearer realm=\"sexton\""),
            503 => response = response.with("retry-after", "1"),
            _ => {}
        }
        if let Some(allow) = problem.allow {
            response = response.with("allow", allow);
        }
        response
    }
}

/// What RFC 9110 calls a status.
fn reason(status: u16) -> &'static str {
    let status = StatusCode::from_u16(status).ok();
    let reason = status.and_then(|status| status.canonical_reason());
    reason.unwrap_or("Internal Server Error")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::ask;

    fn asked(lines: &str) -> Request {
        let told = ask(format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n").as_bytes());
        told.requests.into_iter().next().expect("well formed")
    }

    fn answered(lines: &str) -> hyper::Response<Bytes> {
        let body = Payload::Static(b"{\"a\":1}");
        let response = Response::new(200, "application/json", body);
        response.written(Some(&asked(lines)))
    }

    #[test]
    fn what_is_known_is_not_sent_again() {
        let first = answered("");
        assert_eq!(&first.body()[..], b"{\"a\":1}");
        let tag = first.headers()["etag"].to_str().expect("text");
        let again = answered(&format!("If-None-Match: \"x\", {tag}\r\n"));
        assert_eq!((again.status().as_u16(), again.body().len()), (304, 0));
    }

    #[test]
    fn long_answers_are_packed_for_those_who_take_it() {
        let body = Payload::Shared(vec![b'x'; 5000].into());
        let sent = |lines: &str| {
            let response = Response::new(200, "text/plain", body.clone());
            response.written(Some(&asked(lines))).body().len()
        };
        assert_eq!(sent(""), 5000);
        assert_eq!(sent("Accept-Encoding: gzip;q=0\r\n"), 5000);
        assert!(sent("Accept-Encoding: br, gzip\r\n") < 1000);
    }
}
