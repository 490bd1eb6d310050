//! Calls a method of a gRPC service on a Unix socket, within a time and a size.
//!
//! Each call has a connection of its own, as each question to Docker has: a stuck call
//! then holds up no other, and ending one is closing its socket.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use prost::Message;
use sexton_host::socket;

use super::client::{ANSWER_LIMIT_BYTES, Got, Trouble, broken, read};
use super::http2::Exchange;

/// Before each message: whether it is packed, and its length.
const PREFIX_BYTES: usize = 5;

/// The largest read. One frame of HTTP/2, as daemons send them.
const READ_BYTES: usize = 16 << 10;

/// What is said of a refusal at most.
const SAID_BYTES: usize = 200;

/// Where a call goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Method<'m> {
    pub(super) socket: &'m Path,
    /// As in `/containerd.services.version.v1.Version/Version`.
    pub(super) path: &'m str,
    /// What containerd keeps apart by; empty where nothing is.
    pub(super) namespace: &'m str,
}

/// A call that is answered with any number of messages.
#[derive(Debug)]
pub(super) struct Call {
    stream: UnixStream,
    exchange: Exchange,
}

/// What came of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came<A> {
    Message(A),
    Nothing,
    End,
}

impl Method<'_> {
    /// Asks, and waits at most so long for the one message of the answer.
    pub(super) fn ask<A: Message + Default>(
        self,
        question: &impl Message,
        within: Duration,
    ) -> Result<A, Trouble> {
        let until = Instant::now() + within;
        match self.call(question, within)?.next(until)? {
            Came::Message(answer) => Ok(answer),
            Came::Nothing => Err(Trouble::Silent(within)),
            Came::End => Err(Trouble::Malformed("it holds no message".into())),
        }
    }

    /// Asks, and waits for nothing yet.
    pub(super) fn call(self, question: &impl Message, within: Duration) -> Result<Call, Trouble> {
        let mut stream = socket::connect_unix(self.socket, within)
            .map_err(|error| Trouble::connect(error, within))?;
        stream
            .set_write_timeout(Some(within))
            .map_err(Trouble::Broken)?;
        let mut headers = vec![
            (":method", "POST"),
            (":scheme", "http"),
            (":path", self.path),
            (":authority", "localhost"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", "sexton"),
        ];
        if !self.namespace.is_empty() {
            headers.push(("containerd-namespace", self.namespace));
        }
        let mut exchange = Exchange::begin(&headers, &framed(question));
        let sent = stream.write_all(&exchange.replies);
        sent.map_err(|error| broken(error, within))?;
        exchange.replies.clear();
        Ok(Call { stream, exchange })
    }
}

fn framed(message: &impl Message) -> Vec<u8> {
    let length = message.encoded_len() as u32;
    let mut out = vec![0];
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&message.encode_to_vec());
    out
}

impl Call {
    /// The next message, if one comes until then.
    pub(super) fn next<A: Message + Default>(
        &mut self,
        until: Instant,
    ) -> Result<Came<A>, Trouble> {
        let mut bytes = Vec::new();
        loop {
            if let Some(message) = split_message(&mut self.exchange.body)? {
                let message = A::decode(&message[..]);
                let message = message.map_err(|error| Trouble::Malformed(error.to_string()))?;
                return Ok(Came::Message(message));
            }
            if self.exchange.is_ended() {
                return self.end();
            }
            match read(&mut self.stream, until, READ_BYTES, &mut bytes)? {
                Got::Bytes => {}
                Got::Nothing if Instant::now() < until => continue,
                Got::Nothing => return Ok(Came::Nothing),
                Got::End => return Err(Trouble::Ended),
            }
            self.exchange.feed(&bytes).map_err(Trouble::NoHttp2)?;
            bytes.clear();
            let replies = std::mem::take(&mut self.exchange.replies);
            // The answer may be over, and the peer gone, before it hears these.
            let sent = self.stream.write_all(&replies);
            if let Err(error) = sent
                && !self.exchange.is_ended()
            {
                return Err(Trouble::Broken(error));
            }
        }
    }

    /// What the trailers say.
    fn end<A>(&self) -> Result<Came<A>, Trouble> {
        let field = |name: &str| {
            let mut fields = self.exchange.fields.iter().rev();
            fields
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.as_str())
        };
        let said = field("grpc-message").unwrap_or_default();
        let end = said.floor_char_boundary(SAID_BYTES);
        match field("grpc-status").map(str::parse) {
            Some(Ok(0)) => Ok(Came::End),
            Some(Ok(code)) => Err(Trouble::Declined {
                code,
                message: sexton_model::text::escape(&said.as_bytes()[..end]),
            }),
            _ => {
                let status = field(":status").and_then(|status| status.parse().ok());
                match status {
                    Some(200) | None => Err(Trouble::Malformed("it ends without a status".into())),
                    Some(status) => Err(Trouble::Refused {
                        status,
                        message: "this is no gRPC".into(),
                    }),
                }
            }
        }
    }
}

/// Takes the first message off, if all of it is there.
fn split_message(body: &mut Vec<u8>) -> Result<Option<Vec<u8>>, Trouble> {
    let Some(&[is_packed, length @ ..]) = body.first_chunk::<PREFIX_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(length) as usize;
    if length > ANSWER_LIMIT_BYTES {
        return Err(Trouble::TooLarge);
    }
    if is_packed != 0 {
        return Err(Trouble::Malformed(
            "it is packed, which nobody asked for".into(),
        ));
    }
    if body.len() < PREFIX_BYTES + length {
        return Ok(None);
    }
    let rest = body.split_off(PREFIX_BYTES + length);
    let mut message = std::mem::replace(body, rest);
    message.drain(..PREFIX_BYTES);
    Ok(Some(message))
}
