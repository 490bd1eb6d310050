//! As much of HTTP/1.1 as a container runtime speaks: the head of an answer, and bodies
//! of a given length, in chunks, or up to the end of the connection.
//!
//! It is fed bytes as they come and keeps little of them, so no length that a peer
//! claims is ever set aside in memory.

/// The longest head. Those of Docker and Podman have about 300 bytes.
pub(super) const HEAD_LIMIT_BYTES: usize = 16 << 10;

/// The longest line with the size of a chunk, and the longest trailer.
const LINE_LIMIT_BYTES: usize = 1024;

/// An answer that is not HTTP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum HttpError {
    #[error("it does not begin as HTTP/1 does")]
    NoStatus,
    #[error("its head is over {HEAD_LIMIT_BYTES} bytes")]
    LongHead,
    #[error("it has a header that makes no sense")]
    BadHeader,
    #[error("it has a chunk that makes no sense")]
    BadChunk,
}

/// The head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) framing: Framing,
}

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Sized(u64),
    Chunked,
    ToEnd,
}

/// The head that `bytes` begin with and its length, once all of it is there.
pub(super) fn head(bytes: &[u8]) -> Result<Option<(Head, usize)>, HttpError> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    match end {
        Some(end) if end <= HEAD_LIMIT_BYTES => {
            Ok(Some((whole_head(&bytes[..end])?, end + b"\r\n\r\n".len())))
        }
        None if bytes.len() <= HEAD_LIMIT_BYTES => Ok(None),
        _ => Err(HttpError::LongHead),
    }
}

fn whole_head(bytes: &[u8]) -> Result<Head, HttpError> {
    let text = str::from_utf8(bytes).map_err(|_| HttpError::BadHeader)?;
    let mut lines = text.split("\r\n");
    let status = status(lines.next().unwrap_or_default()).ok_or(HttpError::NoStatus)?;
    let (mut size, mut is_chunked) = (None, false);
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(HttpError::BadHeader)?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            let told = decimal(value).ok_or(HttpError::BadHeader)?;
            if size.is_some_and(|known| known != told) {
                return Err(HttpError::BadHeader);
            }
            size = Some(told);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case("chunked") {
                return Err(HttpError::BadHeader);
            }
            is_chunked = true;
        }
    }
    // RFC 9112, 6.3: where both are given, the chunks hold.
    let framing = match size {
        _ if is_chunked => Framing::Chunked,
        Some(size) => Framing::Sized(size),
        None => Framing::ToEnd,
    };
    Ok(Head { status, framing })
}

fn status(line: &str) -> Option<u16> {
    let rest = line.strip_prefix("HTTP/1.")?;
    let code = rest.get(1..)?.strip_prefix(' ')?.get(..3)?;
    u16::try_from(decimal(code)?).ok()
}

/// Digits only: `parse` would take a sign too.
fn decimal(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// Takes the frames off a body.
#[derive(Debug)]
pub(super) struct Body(State);

#[derive(Debug)]
enum State {
    /// So many bytes are left.
    Sized(u64),
    ToEnd,
    /// The line with the size of a chunk, as far as it is there.
    ChunkSize(Vec<u8>),
    ChunkData(u64),
    /// The line break after a chunk.
    ChunkEnd,
    /// After the last chunk; the length of the line so far.
    Trailer(usize),
    Done,
}

impl Body {
    pub(super) fn new(framing: Framing) -> Self {
        Self(match framing {
            Framing::Sized(0) => State::Done,
            Framing::Sized(size) => State::Sized(size),
            Framing::Chunked => State::ChunkSize(Vec::new()),
            Framing::ToEnd => State::ToEnd,
        })
    }

    /// Whether all of it was there.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.0, State::Done)
    }

    /// Whether the end of the connection is the end of the body.
    pub(super) fn may_end(&self) -> bool {
        matches!(self.0, State::Done | State::ToEnd)
    }

    /// Puts what `input` holds of the body into `out`. What comes after its end is
    /// dropped: we ask once on each connection.
    pub(super) fn feed(&mut self, mut input: &[u8], out: &mut Vec<u8>) -> Result<(), HttpError> {
        while let [first, rest @ ..] = input {
            let first = *first;
            match &mut self.0 {
                State::Done => return Ok(()),
                State::ToEnd => {
                    out.extend_from_slice(input);
                    return Ok(());
                }
                State::Sized(left) | State::ChunkData(left) => {
                    let n = usize::try_from(*left).unwrap_or(usize::MAX);
                    let (taken, after) = input.split_at(n.min(input.len()));
                    out.extend_from_slice(taken);
                    *left -= taken.len() as u64;
                    input = after;
                    if *left == 0 {
                        self.0 = self.after_data();
                    }
                }
                _ => {
                    self.frame_byte(first)?;
                    input = rest;
                }
            }
        }
        Ok(())
    }

    fn after_data(&self) -> State {
        match self.0 {
            State::ChunkData(_) => State::ChunkEnd,
            _ => State::Done,
        }
    }

    /// A byte that is between the data.
    fn frame_byte(&mut self, byte: u8) -> Result<(), HttpError> {
        match (&mut self.0, byte) {
            (State::ChunkSize(line), b'\n') => {
                self.0 = match chunk_size(line).ok_or(HttpError::BadChunk)? {
                    0 => State::Trailer(0),
                    size => State::ChunkData(size),
                };
            }
            (State::ChunkSize(line), _) if line.len() < LINE_LIMIT_BYTES => line.push(byte),
            (State::ChunkEnd, b'\r') => {}
            (State::ChunkEnd, b'\n') => self.0 = State::ChunkSize(Vec::new()),
            (State::Trailer(0), b'\n') => self.0 = State::Done,
            (State::Trailer(length), b'\n') => *length = 0,
            (State::Trailer(_), b'\r') => {}
            (State::Trailer(length), _) if *length < LINE_LIMIT_BYTES => *length += 1,
            _ => return Err(HttpError::BadChunk),
        }
        Ok(())
    }
}

/// The size in the line before a chunk; extensions are left out, as they may be.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let text = str::from_utf8(line).ok()?;
    let size = text.split(';').next()?.trim();
    let is_plain = size.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(size, 16).ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a whole answer says: status and body, and whether that was all of it.
    fn answer(bytes: &[u8]) -> Result<(u16, String, bool), HttpError> {
        let (head, length) = head(bytes)?.ok_or(HttpError::NoStatus)?;
        let mut body = Body::new(head.framing);
        let mut out = Vec::new();
        body.feed(&bytes[length..], &mut out)?;
        Ok((
            head.status,
            String::from_utf8_lossy(&out).into(),
            body.is_done(),
        ))
    }

    fn check(bytes: &str, expected: Result<(u16, &str, bool), HttpError>) {
        let expected = expected.map(|(status, body, done)| (status, body.to_owned(), done));
        assert_eq!(answer(bytes.as_bytes()), expected, "{bytes:?}");
    }

    #[test]
    fn the_length_is_given_or_is_in_chunks_or_is_the_end() {
        check(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOKmore",
            Ok((200, "OK", true)),
        );
        check(
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nOK",
            Ok((200, "OK", false)),
        );
        check(
            "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
            Ok((204, "", true)),
        );
        check(
            "HTTP/1.0 200 OK\r\nServer: x\r\n\r\nall",
            Ok((200, "all", false)),
        );
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        check(
            &format!("{chunks}3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n"),
            Ok((200, "abc0123456789", true)),
        );
        check(
            &format!("{chunks}1\r\na\r\n0\r\nTrailer: x\r\n\r\n"),
            Ok((200, "a", true)),
        );
        check(&format!("{chunks}5\r\nab"), Ok((200, "ab", false)));
    }

    #[test]
    fn nonsense_is_an_error() {
        check("SSH-2.0-OpenSSH_9.2\r\n\r\n", Err(HttpError::NoStatus));
        check("HTTP/2 200\r\n\r\n", Err(HttpError::NoStatus));
        check("HTTP/1.1 2x0 OK\r\n\r\n", Err(HttpError::NoStatus));
        check(
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            Err(HttpError::BadHeader),
        );
        check(
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            Err(HttpError::BadHeader),
        );
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            Err(HttpError::BadHeader),
        );
        check(
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            Err(HttpError::BadHeader),
        );
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        check(&format!("{chunks}zz\r\n"), Err(HttpError::BadChunk));
        check(&format!("{chunks}\r\n"), Err(HttpError::BadChunk));
        check(
            &format!("{chunks}11111111111111111\r\n"),
            Err(HttpError::BadChunk),
        );
        check(&format!("{chunks}1\r\nabc"), Err(HttpError::BadChunk));
        check(
            &format!("{chunks}{}", "0".repeat(LINE_LIMIT_BYTES + 1)),
            Err(HttpError::BadChunk),
        );
        let long = format!(
            "HTTP/1.1 200 OK\r\nX: {}\r\n\r\n",
            "x".repeat(HEAD_LIMIT_BYTES)
        );
        check(&long, Err(HttpError::LongHead));
    }

    #[test]
    fn a_chunk_may_claim_any_size() {
        let mut body = Body::new(Framing::Chunked);
        let mut out = Vec::new();
        body.feed(b"ffffffffffffffff\r\nabc", &mut out)
            .expect("a size");
        assert_eq!((out.as_slice(), out.capacity() < 1024), (&b"abc"[..], true));
    }

    /// Bytes that look like HTTP often enough to get far.
    fn hostile() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            Just(b"HTTP/1.1 200 OK\r\n".to_vec()),
            Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
            Just(b"Content-Length: 7\r\n".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"3\r\nabc\r\n".to_vec()),
            Just(b"0\r\n".to_vec()),
            prop::collection::vec(any::<u8>(), 0..20),
        ];
        prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_an_error(bytes in hostile()) {
            let _ = answer(&bytes);
        }

        #[test]
        fn a_body_does_not_depend_on_how_it_comes(
            framing in prop::sample::select(&[Framing::Chunked, Framing::Sized(9), Framing::ToEnd][..]),
            bytes in hostile(),
            cut in any::<prop::sample::Index>(),
        ) {
            let feed = |parts: &[&[u8]]| {
                let (mut body, mut out) = (Body::new(framing), Vec::new());
                let fed = parts.iter().try_for_each(|part| body.feed(part, &mut out));
                (fed, out, body.is_done())
            };
            let (left, right) = bytes.split_at(cut.index(bytes.len() + 1));
            prop_assert_eq!(feed(&[&bytes]), feed(&[left, right]));
        }
    }
}
