//! What is answered.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
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

    /// Head and body as they are sent to whoever asked.
    pub(crate) fn written(self, request: Option<&Request>) -> Vec<u8> {
        let accepts = request.and_then(|request| request.header("accept-encoding"));
        let takes_gzip = accepts.is_some_and(|accepts| {
            let mut words = accepts.split(',').map(str::trim);
            words.any(|word| word == "gzip" || word.starts_with("gzip;") && !word.ends_with("q=0"))
        });
        let tag = format!("\"{:016x}\"", fnv(self.body.bytes()));
        let is_known = request.is_some_and(|request| {
            let tags = request.header("if-none-match").unwrap_or_default();
            self.status == 200 && tags.split(',').any(|known| known.trim() == tag)
        });
        let is_head = request.is_some_and(|request| request.method == "HEAD");
        let status = if is_known { 304 } else { self.status };
        let (body, is_packed) = if is_known {
            (Cow::Borrowed(&[][..]), false)
        } else {
            encoded(&self.body, takes_gzip)
        };
        let mut out = Vec::with_capacity(512 + body.len());
        let _ = write!(out, "HTTP/1.1 {status} {}\r\n", reason(status));
        let _ = write!(
            out,
            "Content-Type: {}\r\nContent-Length: {}\r\n",
            self.kind,
            body.len()
        );
        if self.status == 200 {
            let _ = write!(
                out,
                "ETag: {tag}\r\nCache-Control: no-cache\r\nVary: Accept-Encoding\r\n"
            );
        } else {
            let _ = write!(out, "Cache-Control: no-store\r\n");
        }
        if is_packed {
            let _ = write!(out, "Content-Encoding: gzip\r\n");
        }
        let keeps_alive = request.is_some_and(|request| request.keeps_alive);
        let connection = if keeps_alive { "keep-alive" } else { "close" };
        let _ = write!(out, "Connection: {connection}\r\n{SAFETY}");
        for (name, value) in &self.headers {
            let _ = write!(out, "{name}: {value}\r\n");
        }
        out.extend_from_slice(b"\r\n");
        if !is_head {
            out.extend_from_slice(&body);
        }
        out
    }
}

/// Of every answer. The page loads nothing from elsewhere and is shown in no frame.
const SAFETY: &str = "X-Content-Type-Options: nosniff\r\n\
    Referrer-Policy: no-referrer\r\n\
    X-Frame-Options: DENY\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'\r\n";

fn encoded(body: &Payload, takes_gzip: bool) -> (Cow<'_, [u8]>, bool) {
    match body {
        Payload::StaticPacked(packed) if takes_gzip => (Cow::Borrowed(packed), true),
        Payload::StaticPacked(packed) => (unpacked(packed), false),
        Payload::Static(bytes) => packed(bytes, takes_gzip),
        Payload::Shared(bytes) => packed(bytes, takes_gzip),
    }
}

fn packed(bytes: &[u8], takes_gzip: bool) -> (Cow<'_, [u8]>, bool) {
    if !takes_gzip || bytes.len() < WORTH_PACKING {
        return (Cow::Borrowed(bytes), false);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let done = encoder.write_all(bytes).and_then(|()| encoder.finish());
    match done {
        Ok(packed) => (Cow::Owned(packed), true),
        Err(_) => (Cow::Borrowed(bytes), false),
    }
}

fn unpacked(packed: &[u8]) -> Cow<'_, [u8]> {
    let mut decoder = flate2::write::GzDecoder::new(Vec::new());
    let done = decoder.write_all(packed).and_then(|()| decoder.finish());
    Cow::Owned(done.unwrap_or_default())
}

/// FNV-1a: tags need to differ, not to withstand anybody.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Why something is not answered: RFC 9457.
#[derive(Debug, Clone, Serialize)]
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

    /// Its number.
    #[cfg(test)]
    pub(crate) fn status(&self) -> u16 {
        self.status
    }
}

impl From<Problem> for Response {
    fn from(problem: Problem) -> Self {
        let bytes = serde_json::to_vec(&problem).unwrap_or_default();
        let body = Payload::Shared(bytes.into());
        let mut response = Self::new(problem.status, "application/problem+json", body);
        match problem.status {
            401 => response = response.with("WWW-Authenticate", "Bearer realm=\"sexton\""),
            503 => response = response.with("Retry-After", "1"),
            _ => {}
        }
        if let Some(allow) = problem.allow {
            response = response.with("Allow", allow);
        }
        response
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        507 => "Insufficient Storage",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request;

    fn asked(lines: &str) -> Request {
        let head = format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n");
        let parsed = request::parse(head.as_bytes()).expect("well formed");
        parsed.expect("whole").0
    }

    fn answered(lines: &str) -> String {
        let body = Payload::Static(b"{\"a\":1}");
        let response = Response::new(200, "application/json", body);
        let written = response.written(Some(&asked(lines)));
        String::from_utf8(written).expect("text")
    }

    #[test]
    fn what_is_known_is_not_sent_again() {
        let first = answered("");
        assert!(first.ends_with("\r\n\r\n{\"a\":1}"), "{first}");
        let tag = first.split("ETag: ").nth(1).expect("a tag");
        let tag = tag.split("\r\n").next().expect("a line");
        let again = answered(&format!("If-None-Match: \"x\", {tag}\r\n"));
        assert!(again.starts_with("HTTP/1.1 304 "), "{again}");
        assert!(again.ends_with("\r\n\r\n"), "{again}");
    }

    #[test]
    fn long_answers_are_packed_for_those_who_take_it() {
        let body = Payload::Shared(vec![b'x'; 5000].into());
        let sent = |lines: &str| {
            let response = Response::new(200, "text/plain", body.clone());
            response.written(Some(&asked(lines))).len()
        };
        assert!(sent("") > 5000);
        assert!(sent("Accept-Encoding: gzip;q=0\r\n") > 5000);
        assert!(sent("Accept-Encoding: br, gzip\r\n") < 1500);
    }
}
