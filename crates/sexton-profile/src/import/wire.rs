//! Protobuf as it lies in memory: fields are handed over one by one, and nothing is allocated. A
//! message that names a length it does not have, or an old kind of field, is malformed.

use super::Position;

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'b> {
    Varint(u64),
    Fixed(u64),
    Bytes(&'b [u8]),
}

impl<'b> Value<'b> {
    /// A number; 0 for what is none, as for a field that is not there.
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Varint(number) | Self::Fixed(number) => number,
            Self::Bytes(_) => 0,
        }
    }

    /// A message or a text; empty for what is none.
    pub(super) fn bytes(self) -> &'b [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// Numbers that are packed, or one that is not. Those behind a damaged one are left out.
    pub(super) fn numbers(self) -> Numbers<'b> {
        match self {
            Self::Bytes(rest) => Numbers { rest, one: None },
            one => Numbers {
                rest: &[],
                one: Some(one.number()),
            },
        }
    }

    /// Numbers of eight bytes each, packed, or one that is not.
    pub(super) fn fixed(self) -> impl Iterator<Item = u64> + use<'b> {
        let (packed, one) = match self {
            Self::Bytes(packed) => (packed, None),
            one => (&[][..], Some(one.number())),
        };
        let number = |eight: &[u8]| eight.try_into().map(u64::from_le_bytes).unwrap_or(0);
        packed.chunks_exact(8).map(number).chain(one)
    }
}

/// Packed numbers.
#[derive(Debug)]
pub(super) struct Numbers<'b> {
    rest: &'b [u8],
    one: Option<u64>,
}

impl Iterator for Numbers<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.one.take().or_else(|| varint(&mut self.rest))
    }
}

/// The fields of a message.
#[derive(Debug, Clone)]
pub(super) struct Fields<'b> {
    all: &'b [u8],
    rest: &'b [u8],
}

/// Where a message makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) Position);

impl<'b> Fields<'b> {
    pub(super) fn of(message: &'b [u8]) -> Self {
        Self {
            all: message,
            rest: message,
        }
    }

    fn field(&mut self) -> Option<(u64, Value<'b>)> {
        let tag = varint(&mut self.rest)?;
        let value = match tag & 7 {
            0 => Value::Varint(varint(&mut self.rest)?),
            1 => Value::Fixed(u64::from_le_bytes(
                take(&mut self.rest, 8)?.try_into().ok()?,
            )),
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                Value::Bytes(take(&mut self.rest, length)?)
            }
            5 => {
                let four = take(&mut self.rest, 4)?.try_into().ok()?;
                Value::Fixed(u64::from(u32::from_le_bytes(four)))
            }
            _ => return None,
        };
        (tag >> 3 > 0).then_some((tag >> 3, value))
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = Result<(u64, Value<'b>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let at = (self.all.len() - self.rest.len()) as u64;
        match self.field() {
            Some(field) => Some(Ok(field)),
            None => {
                self.rest = &[];
                Some(Err(Malformed(Position::Byte(at))))
            }
        }
    }
}

/// The fields of a part, as far as they make sense.
pub(super) fn fields(message: &[u8]) -> impl Iterator<Item = (u64, Value<'_>)> {
    Fields::of(message).map_while(Result::ok)
}

fn take<'b>(rest: &mut &'b [u8], n: usize) -> Option<&'b [u8]> {
    let (taken, left) = rest.split_at_checked(n)?;
    *rest = left;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for (n, byte) in rest.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * n).min(63);
        if byte & 0x80 == 0 {
            *rest = &rest[n + 1..];
            return Some(number);
        }
    }
    None
}

/// What the beginning of a file says: pprof, OTLP, or neither. It may be cut anywhere.
pub(super) fn kind(start: &[u8]) -> Option<super::Format> {
    use super::Format::{Otlp, Pprof};
    let mut rest = start;
    let tag = varint(&mut rest)?;
    let length = usize::try_from(varint(&mut rest)?).ok()?;
    let (first, second) = (rest.first().copied(), rest.get(1).copied());
    // A first message that is there as a whole must make sense as a whole.
    let is_whole = rest
        .get(..length)
        .is_some_and(|message| Fields::of(message).all(|field| field.is_ok()));
    let is_cut = rest.len() < length && start.len() >= super::SNIFFED;
    if tag != 0x32 && !(is_whole || is_cut) {
        return None;
    }
    match (tag, first?, second) {
        // The types of pprof's values, the resource of OTLP.
        (0x0a, 0x08 | 0x10, _) => Some(Pprof),
        (0x0a, 0x0a | 0x12 | 0x1a, _) => Some(Otlp),
        // The dictionary of OTLP, whose first mapping is empty; samples of pprof.
        (0x12, 0x0a, Some(0)) => Some(Otlp),
        (0x12, 0x0a | 0x08 | 0x12, _) => Some(Pprof),
        // Mappings, locations, functions; strings, of which the first is empty.
        (0x1a | 0x22 | 0x2a, 0x08, _) => Some(Pprof),
        (0x32, _, _) if length == 0 => Some(Pprof),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_damage_is_found() {
        let message = b"\x08\x96\x01\x12\x03abc\x19\x01\0\0\0\0\0\0\0\x25\x02\0\0\0";
        let found: Vec<_> = Fields::of(message).map(Result::unwrap).collect();
        let expected = [
            (1, Value::Varint(150)),
            (2, Value::Bytes(b"abc")),
            (3, Value::Fixed(1)),
            (4, Value::Fixed(2)),
        ];
        assert_eq!(found, expected);
        for (damaged, at) in [
            (&b"\x08\x01\x12\x04abc"[..], 2),
            (b"\x0b", 0),
            (b"\x00\x01", 0),
            (b"\x08\x01\x08", 2),
            (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0),
        ] {
            let last = Fields::of(damaged).last().expect("a field");
            assert_eq!(last, Err(Malformed(Position::Byte(at))), "{damaged:?}");
        }
    }

    #[test]
    fn packed_numbers_and_single_ones_are_alike() {
        let packed: Vec<u64> = Value::Bytes(b"\x01\x96\x01\x03").numbers().collect();
        assert_eq!(packed, [1, 150, 3]);
        assert_eq!(Value::Varint(7).numbers().collect::<Vec<_>>(), [7]);
        let eight = Value::Bytes(b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03");
        assert_eq!(eight.fixed().collect::<Vec<_>>(), [1, 2]);
    }
}
