//! As much of HTTP/2 (RFC 9113) as one call on one connection needs. With one stream
//! there is nothing to schedule: a peer's frames go in, the answer and our replies come out.
//!
//! It is fed bytes as they come; no length that a peer claims is set aside in memory.

use super::hpack;

/// Sent first. Also that we want nothing pushed, and allow no table of headers.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: [(u16, u32); 2] = [(HEADER_TABLE_SIZE, 0), (ENABLE_PUSH, 0)];
const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;

/// The only stream.
const STREAM: u32 = 1;

/// The longest frame that a peer may send who was told nothing else.
const FRAME_LIMIT_BYTES: usize = 16 << 10;

/// The longest block of headers that is put together.
const BLOCK_LIMIT_BYTES: usize = 64 << 10;

const FRAME_HEAD_BYTES: usize = 9;

mod kind {
    pub(super) const DATA: u8 = 0;
    pub(super) const HEADERS: u8 = 1;
    pub(super) const RST_STREAM: u8 = 3;
    pub(super) const SETTINGS: u8 = 4;
    pub(super) const PUSH_PROMISE: u8 = 5;
    pub(super) const PING: u8 = 6;
    pub(super) const GOAWAY: u8 = 7;
    pub(super) const WINDOW_UPDATE: u8 = 8;
    pub(super) const CONTINUATION: u8 = 9;
}

/// Of DATA and HEADERS; the same bit says ACK of SETTINGS and PING.
const END_STREAM: u8 = 0x1;
const ACK: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// An answer that is not HTTP/2, or the end of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Http2Error {
    #[error("it sent a frame over {FRAME_LIMIT_BYTES} bytes")]
    LongFrame,
    #[error("it sent a frame that makes no sense")]
    BadFrame,
    #[error("its headers are over {BLOCK_LIMIT_BYTES} bytes")]
    LongHeaders,
    #[error("it sent headers that make no sense")]
    BadHeaders,
    #[error("it gave up the call with HTTP/2 error {0}")]
    Reset(u32),
}

/// One call, from its first byte to the end of the answer.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    /// Bytes of a frame that is not complete.
    partial: Vec<u8>,
    /// A block of headers that is not complete, and whether the stream ends with it.
    block: Option<(Vec<u8>, bool)>,
    is_ended: bool,
    /// Headers and trailers so far.
    pub(super) fields: Vec<(String, String)>,
    /// What of the answer was not taken yet.
    pub(super) body: Vec<u8>,
    /// What is to be sent.
    pub(super) replies: Vec<u8>,
}

impl Exchange {
    /// Begins a call whose request is this body. It must fit in the window that every
    /// peer opens with, 64 KiB.
    pub(super) fn begin(headers: &[(&str, &str)], body: &[u8]) -> Self {
        let mut out = PREFACE.to_vec();
        let mut settings = Vec::new();
        for (name, value) in SETTINGS {
            settings.extend_from_slice(&name.to_be_bytes());
            settings.extend_from_slice(&value.to_be_bytes());
        }
        frame(kind::SETTINGS, 0, 0, &settings, &mut out);
        let mut block = Vec::new();
        for (name, value) in headers {
            hpack::encode(name, value, &mut block);
        }
        frame(kind::HEADERS, END_HEADERS, STREAM, &block, &mut out);
        let mut chunks = body.chunks(FRAME_LIMIT_BYTES).peekable();
        while let Some(chunk) = chunks.next() {
            let flags = if chunks.peek().is_none() {
                END_STREAM
            } else {
                0
            };
            frame(kind::DATA, flags, STREAM, chunk, &mut out);
        }
        Self {
            replies: out,
            ..Self::default()
        }
    }

    /// Whether the answer is over.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Takes what the peer sent.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), Http2Error> {
        self.partial.extend_from_slice(bytes);
        let partial = std::mem::take(&mut self.partial);
        let mut rest = &partial[..];
        while let Some((frame, after)) = split_frame(rest)? {
            self.take(frame)?;
            rest = after;
        }
        self.partial = rest.to_vec();
        Ok(())
    }

    fn take(&mut self, frame: Frame<'_>) -> Result<(), Http2Error> {
        // Nothing may come between the parts of a block.
        if self.block.is_some() != (frame.kind == kind::CONTINUATION) {
            return Err(Http2Error::BadFrame);
        }
        match frame.kind {
            kind::DATA => self.take_data(&frame),
            kind::HEADERS => self.take_headers(&frame),
            kind::CONTINUATION => self.take_block(frame.payload, frame.flags),
            kind::RST_STREAM if frame.stream == STREAM => match number(frame.payload)? {
                // Go's servers end so what they have answered before they read all of it.
                0 if self.is_ended => Ok(()),
                code => Err(Http2Error::Reset(code)),
            },
            kind::SETTINGS if frame.flags & ACK == 0 => {
                reply(kind::SETTINGS, ACK, &[], &mut self.replies);
                Ok(())
            }
            kind::PING if frame.flags & ACK == 0 => {
                let payload: [u8; 8] =
                    frame.payload.try_into().map_err(|_| Http2Error::BadFrame)?;
                reply(kind::PING, ACK, &payload, &mut self.replies);
                Ok(())
            }
            kind::PUSH_PROMISE => Err(Http2Error::BadFrame),
            kind::GOAWAY => self.take_farewell(frame.payload),
            // What we send is small, so no window matters; the rest asks nothing of us.
            _ => Ok(()),
        }
    }

    fn take_data(&mut self, frame: &Frame<'_>) -> Result<(), Http2Error> {
        if frame.stream != STREAM || self.is_ended {
            return Err(Http2Error::BadFrame);
        }
        self.body.extend_from_slice(frame.content()?);
        self.is_ended = frame.flags & END_STREAM != 0;
        // Whoever reads bounds the memory, by not reading; so the window stays open.
        let n_bytes = frame.payload.len() as u32;
        if n_bytes > 0 {
            for stream in [0, STREAM] {
                let payload = n_bytes.to_be_bytes();
                self::frame(kind::WINDOW_UPDATE, 0, stream, &payload, &mut self.replies);
            }
        }
        Ok(())
    }

    fn take_headers(&mut self, frame: &Frame<'_>) -> Result<(), Http2Error> {
        if frame.stream != STREAM || self.is_ended {
            return Err(Http2Error::BadFrame);
        }
        let mut content = frame.content()?;
        if frame.flags & PRIORITY != 0 {
            content = content.get(5..).ok_or(Http2Error::BadFrame)?;
        }
        self.block = Some((Vec::new(), frame.flags & END_STREAM != 0));
        self.take_block(content, frame.flags)
    }

    fn take_block(&mut self, part: &[u8], flags: u8) -> Result<(), Http2Error> {
        let (mut block, is_last) = self.block.take().ok_or(Http2Error::BadFrame)?;
        if block.len() + part.len() > BLOCK_LIMIT_BYTES {
            return Err(Http2Error::LongHeaders);
        }
        block.extend_from_slice(part);
        if flags & END_HEADERS == 0 {
            self.block = Some((block, is_last));
            return Ok(());
        }
        self.is_ended = is_last;
        // Headers and trailers; more than that would be no call's.
        if self.fields.len() > 256 {
            return Err(Http2Error::BadHeaders);
        }
        self.fields.extend(hpack::decode(&block)?);
        Ok(())
    }

    /// The peer will not serve later streams; ours it may, unless it says so.
    fn take_farewell(&self, payload: &[u8]) -> Result<(), Http2Error> {
        let last = number(payload)? & 0x7fff_ffff;
        let code = number(payload.get(4..).unwrap_or_default())?;
        if last < STREAM && !self.is_ended {
            return Err(Http2Error::Reset(code));
        }
        Ok(())
    }
}

struct Frame<'b> {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &'b [u8],
}

impl<'b> Frame<'b> {
    /// The payload without its padding.
    fn content(&self) -> Result<&'b [u8], Http2Error> {
        if self.flags & PADDED == 0 {
            return Ok(self.payload);
        }
        let (&n_padding, content) = self.payload.split_first().ok_or(Http2Error::BadFrame)?;
        let end = content.len().checked_sub(n_padding.into());
        end.map(|end| &content[..end]).ok_or(Http2Error::BadFrame)
    }
}

/// The first frame, if all of it is there, and what follows.
fn split_frame(bytes: &[u8]) -> Result<Option<(Frame<'_>, &[u8])>, Http2Error> {
    let Some((head, rest)) = bytes.split_first_chunk::<FRAME_HEAD_BYTES>() else {
        return Ok(None);
    };
    let [a, b, c, kind, flags, stream @ ..] = *head;
    let length = u32::from_be_bytes([0, a, b, c]) as usize;
    if length > FRAME_LIMIT_BYTES {
        return Err(Http2Error::LongFrame);
    }
    let Some((payload, rest)) = rest.split_at_checked(length) else {
        return Ok(None);
    };
    let frame = Frame {
        kind,
        flags,
        stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
        payload,
    };
    Ok(Some((frame, rest)))
}

fn number(bytes: &[u8]) -> Result<u32, Http2Error> {
    let bytes = bytes.first_chunk().ok_or(Http2Error::BadFrame)?;
    Ok(u32::from_be_bytes(*bytes))
}

/// A frame of the connection itself.
fn reply(kind: u8, flags: u8, payload: &[u8], out: &mut Vec<u8>) {
    frame(kind, flags, 0, payload, out);
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    let length = payload.len() as u32;
    out.extend_from_slice(&length.to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn begun() -> Exchange {
        let mut exchange = Exchange::begin(&[(":method", "POST")], b"body");
        exchange.replies.clear();
        exchange
    }

    fn one(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        frame(kind, flags, stream, payload, &mut out);
        out
    }

    fn check_error(frames: &[Vec<u8>], expected: Http2Error) {
        let fed = begun().feed(&frames.concat());
        assert_eq!(fed, Err(expected), "{frames:x?}");
    }

    #[test]
    fn an_answer_is_put_together_from_pieces_of_any_size() {
        let answer = [
            one(kind::SETTINGS, 0, 0, &[]),
            one(kind::HEADERS, 0, STREAM, b"\x88"),
            one(kind::CONTINUATION, END_HEADERS, STREAM, b"\x00\x01a\x01b"),
            one(kind::DATA, PADDED, STREAM, b"\x02helloXX"),
            one(kind::PING, 0, 0, b"12345678"),
            one(0xfa, 0xff, 7, b"of an extension"),
            one(kind::DATA, 0, STREAM, b" world"),
            one(
                kind::HEADERS,
                END_HEADERS | END_STREAM | PRIORITY,
                STREAM,
                b"\x00\x00\x00\x00\x00\x00\x0bgrpc-status\x010",
            ),
        ]
        .concat();
        for size in [1, 2, 7, answer.len()] {
            let mut exchange = begun();
            for piece in answer.chunks(size) {
                exchange.feed(piece).expect("an answer");
            }
            assert!(exchange.is_ended());
            assert_eq!(exchange.body, b"hello world");
            let fields = [(":status", "200"), ("a", "b"), ("grpc-status", "0")];
            let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(exchange.fields, fields);
            let expected = [
                one(kind::SETTINGS, ACK, 0, &[]),
                // Padding takes of the window too.
                one(kind::WINDOW_UPDATE, 0, 0, &8_u32.to_be_bytes()),
                one(kind::WINDOW_UPDATE, 0, STREAM, &8_u32.to_be_bytes()),
                one(kind::PING, ACK, 0, b"12345678"),
                one(kind::WINDOW_UPDATE, 0, 0, &6_u32.to_be_bytes()),
                one(kind::WINDOW_UPDATE, 0, STREAM, &6_u32.to_be_bytes()),
            ];
            assert_eq!(exchange.replies, expected.concat());
        }
    }

    #[test]
    fn nonsense_is_an_error() {
        check_error(
            &[b"HTTP/1.1 400 Bad Request\r\n".to_vec()],
            Http2Error::LongFrame,
        );
        check_error(&[one(kind::DATA, 0, 3, b"x")], Http2Error::BadFrame);
        check_error(
            &[one(kind::DATA, PADDED, STREAM, b"\x09x")],
            Http2Error::BadFrame,
        );
        check_error(
            &[one(kind::CONTINUATION, END_HEADERS, STREAM, b"")],
            Http2Error::BadFrame,
        );
        check_error(
            &[
                one(kind::HEADERS, 0, STREAM, b"\x88"),
                one(kind::DATA, 0, STREAM, b"x"),
            ],
            Http2Error::BadFrame,
        );
        check_error(
            &[one(kind::RST_STREAM, 0, STREAM, &8_u32.to_be_bytes())],
            Http2Error::Reset(8),
        );
        check_error(
            &[one(kind::GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 2])],
            Http2Error::Reset(2),
        );
        let endless = std::iter::once(one(kind::HEADERS, 0, STREAM, b""))
            .chain((0..9).map(|_| one(kind::CONTINUATION, 0, STREAM, &[0; 10_000])));
        check_error(&endless.collect::<Vec<_>>(), Http2Error::LongHeaders);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = begun().feed(&bytes);
        }

        #[test]
        fn any_frames_are_read_without_panic(
            frames in prop::collection::vec(
                (0_u8..11, any::<u8>(), 0_u32..3, prop::collection::vec(any::<u8>(), 0..40)),
                0..12,
            ),
        ) {
            let mut exchange = begun();
            for (kind, flags, stream, payload) in frames {
                if exchange.feed(&one(kind, flags, stream, &payload)).is_err() {
                    break;
                }
            }
        }
    }
}
