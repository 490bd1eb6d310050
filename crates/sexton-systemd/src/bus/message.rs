//! Messages of the bus, to bytes and back. The bytes come from outside: what does not
//! make sense is an error, whatever it is.

use zbus::wire::serialized::{Context, Data};
use zbus::wire::{Endian, to_bytes};
use zbus::{ObjectPath, Signature, Str, Type, Variant};

use super::error::Malformed;

/// The part of a message that tells how long the rest is.
pub(super) const PREFIX_BYTES: usize = 16;

/// A message that is larger is refused.
///
/// Chosen: a listing of 10,000 units is 3 MB. The protocol allows 128 MiB.
const LIMIT_BYTES: usize = 16 << 20;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Call,
    Return,
    Error,
    Signal,
}

/// A message that came in.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) reply_to: Option<u32>,
    pub(super) sender: String,
    pub(super) path: String,
    pub(super) interface: String,
    pub(super) member: String,
    pub(super) error: String,
    /// Its length, all in all.
    pub(super) n_bytes: usize,
    signature: String,
    body: Data<'static, 'static>,
}

/// How long the message is that begins so.
pub(super) fn length(prefix: &[u8; PREFIX_BYTES]) -> Result<usize, Malformed> {
    let endian = endian(prefix[0])?;
    let number = |at: usize| -> u64 {
        let bytes = [prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]];
        u64::from(match endian {
            Endian::Little => u32::from_le_bytes(bytes),
            Endian::Big => u32::from_be_bytes(bytes),
        })
    };
    // The fields are padded, so that the body is aligned.
    let total = PREFIX_BYTES as u64 + number(12).next_multiple_of(8) + number(4);
    match usize::try_from(total) {
        Ok(total) if total <= LIMIT_BYTES => Ok(total),
        _ => Err(Malformed::TooLarge(total)),
    }
}

fn endian(mark: u8) -> Result<Endian, Malformed> {
    match mark {
        b'l' => Ok(Endian::Little),
        b'B' => Ok(Endian::Big),
        _ => Err(Malformed::Mark),
    }
}

impl Message {
    /// Reads a whole message.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let prefix = bytes.first_chunk().ok_or(Malformed::Mark)?;
        if length(prefix)? != bytes.len() {
            return Err(Malformed::Header("its length is wrong".into()));
        }
        let endian = endian(prefix[0])?;
        let kind = match prefix[1] {
            1 => Kind::Call,
            2 => Kind::Return,
            3 => Kind::Error,
            4 => Kind::Signal,
            other => return Err(Malformed::Header(format!("kind {other} is unknown"))),
        };
        let data = Data::new(&bytes[12..], Context::new(endian, 12));
        let (fields, used): (Vec<(u8, Variant<'_>)>, usize) = data
            .deserialize()
            .map_err(|error| Malformed::Header(error.to_string()))?;
        let body = bytes
            .get((12 + used).next_multiple_of(8)..)
            .unwrap_or_default();
        let mut message = Self {
            kind,
            reply_to: None,
            sender: String::new(),
            path: String::new(),
            interface: String::new(),
            member: String::new(),
            error: String::new(),
            n_bytes: bytes.len(),
            signature: String::new(),
            body: Data::new(body.to_vec(), Context::new(endian, 0)),
        };
        for (code, value) in fields {
            message.set(code, value);
        }
        Ok(message)
    }

    fn set(&mut self, code: u8, value: Variant<'_>) {
        match (code, value) {
            (1, Variant::ObjectPath(path)) => self.path = path.as_str().to_owned(),
            (2, Variant::Str(name)) => self.interface = name.as_str().to_owned(),
            (3, Variant::Str(name)) => self.member = name.as_str().to_owned(),
            (4, Variant::Str(name)) => self.error = name.as_str().to_owned(),
            (5, Variant::U32(serial)) => self.reply_to = Some(serial),
            (7, Variant::Str(name)) => self.sender = name.as_str().to_owned(),
            (8, Variant::Signature(signature)) => {
                self.signature = signature.to_string_no_parens();
            }
            // Others may be added to the protocol, and are to be ignored.
            _ => {}
        }
    }

    /// What it carries, which must be of the type asked for.
    pub(super) fn body<'m, T>(&'m self) -> Result<T, Malformed>
    where
        T: serde::Deserialize<'m> + Type,
    {
        let expected = T::SIGNATURE.to_string_no_parens();
        if expected != self.signature {
            return Err(Malformed::Signature {
                member: self.member.clone(),
                expected,
                found: self.signature.clone(),
            });
        }
        let done = self.body.deserialize();
        done.map(|(value, _)| value)
            .map_err(|error| Malformed::Body {
                member: self.member.clone(),
                what: error.to_string(),
            })
    }
}

/// A call to be sent. All the calls that are made here carry one text or nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) destination: &'a str,
    pub(super) path: &'a str,
    pub(super) interface: &'a str,
    pub(super) member: &'a str,
    pub(super) text: Option<&'a str>,
}

impl Call<'_> {
    /// Its bytes. A peer without a bus in between is given no destination.
    pub(super) fn encode(&self, serial: u32, has_bus: bool) -> Result<Vec<u8>, Malformed> {
        let header = |error: zbus::Error| Malformed::Header(error.to_string());
        let path = ObjectPath::try_from(self.path)
            .map_err(|error| Malformed::Header(error.to_string()))?;
        let mut fields = vec![
            (1u8, Variant::ObjectPath(path)),
            (2, Variant::Str(Str::from(self.interface))),
            (3, Variant::Str(Str::from(self.member))),
        ];
        if has_bus {
            fields.push((6, Variant::Str(Str::from(self.destination))));
        }
        let mut body = Vec::new();
        if let Some(text) = self.text {
            fields.push((8, Variant::Signature(Signature::Str)));
            let data = to_bytes(Context::new(Endian::Little, 0), text).map_err(header)?;
            body.extend_from_slice(data.bytes());
        }
        let fields = to_bytes(Context::new(Endian::Little, 12), &fields).map_err(header)?;
        let body_len = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let mut bytes = vec![b'l', 1, 0, 1];
        bytes.extend_from_slice(&body_len.to_le_bytes());
        bytes.extend_from_slice(&serial.to_le_bytes());
        bytes.extend_from_slice(fields.bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.append(&mut body);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::property::BorrowedProperties as Properties;
    use super::*;
    use proptest::prelude::*;

    const CALL: Call<'_> = Call {
        destination: "org.example",
        path: "/org/example",
        interface: "org.example.Thing",
        member: "Get",
        text: Some("all"),
    };

    #[test]
    fn a_call_reads_as_it_was_written() {
        let bytes = CALL.encode(7, true).expect("a plain call");
        let prefix = bytes.first_chunk().expect("a prefix");
        assert_eq!(length(prefix), Ok(bytes.len()));
        let message = Message::parse(&bytes).expect("a message");
        assert_eq!(message.kind, Kind::Call);
        assert_eq!(message.path, CALL.path);
        assert_eq!(message.interface, CALL.interface);
        assert_eq!(message.member, CALL.member);
        assert_eq!(message.body::<&str>(), Ok("all"));
        assert!(matches!(
            message.body::<u32>(),
            Err(Malformed::Signature { .. })
        ));
    }

    #[test]
    fn a_huge_message_is_refused_by_its_prefix() {
        let mut prefix = [0; PREFIX_BYTES];
        prefix[0] = b'l';
        prefix[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        prefix[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(length(&prefix), Err(Malformed::TooLarge(_))));
        prefix[0] = b'H';
        assert_eq!(length(&prefix), Err(Malformed::Mark));
    }

    /// Reads it as all that a message may be read as.
    fn read_all(bytes: &[u8]) {
        let Ok(mut message) = Message::parse(bytes) else {
            return;
        };
        message.body::<&str>().ok();
        message.signature = "a{sv}".into();
        message.body::<Properties<'_>>().ok();
        message.signature = "sa{sv}as".into();
        message.body::<(&str, Properties<'_>, Vec<&str>)>().ok();
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            read_all(&bytes);
        }

        #[test]
        fn a_spoilt_message_is_read_without_panic(
            body in prop::collection::vec(any::<u8>(), 0..200),
            spoils in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let mut bytes = CALL.encode(7, true).expect("a plain call");
            bytes.extend_from_slice(&body);
            let len = u32::try_from(bytes.len() - 96).expect("small");
            bytes[4..8].copy_from_slice(&len.to_le_bytes());
            for (at, byte) in spoils {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            read_all(&bytes);
        }
    }
}
