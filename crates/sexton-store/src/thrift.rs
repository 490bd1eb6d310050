//! Looks over the Thrift structures of a Parquet file before the library reads them.
//!
//! The library passes over what it does not know element by element, and takes the elements
//! of a list of truth values for nothing: a list of a few bytes that claims two thousand
//! million of them, and a list of such lists, keeps it busy far too long: fuzzing found a
//! segment of 2 kB that takes over ten seconds. Nor does it ask whether a field that it knows
//! has the type that it expects, so that it may see such a list where the bytes have none:
//! fuzzing found that one, too. So each field has to be one that Parquet has, of the type
//! that it has there. Whoever makes such a file makes fitting checksums too.
//!
//! Format: <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>

mod parquet;

pub(crate) use parquet::{FILE_META_DATA, PAGE_HEADER};

/// The fields that a structure may have, by their numbers.
pub(crate) type Fields = &'static [(i64, Type)];

/// What a field may hold. Each but a truth value takes at least one byte, so that all of them
/// take no longer than the bytes are many: there is no list of truth values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Type {
    Bool,
    Byte,
    I16,
    I32,
    I64,
    Binary,
    List(&'static Type),
    Structure(&'static Fields),
}

impl Type {
    /// Whether it is written with this number.
    fn is(self, kind: u8) -> bool {
        match self {
            // Truth values of fields are their type.
            Self::Bool => matches!(kind, 1 | 2),
            Self::Byte => kind == 3,
            Self::I16 => kind == 4,
            Self::I32 => kind == 5,
            Self::I64 => kind == 6,
            Self::Binary => kind == 8,
            Self::List(_) => kind == 9,
            Self::Structure(_) => kind == 12,
        }
    }
}

/// A structure at the start of some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Struct {
    /// How many bytes it takes.
    pub(crate) length: usize,
    /// Its own whole numbers, by the number of their field.
    pub(crate) numbers: Vec<(i64, i64)>,
}

impl Struct {
    /// Looks over a structure of these fields; `None` when it is not whole or has others.
    pub(crate) fn read(bytes: &[u8], fields: Fields) -> Option<Self> {
        let mut found = Self::default();
        let mut walk = Walk { rest: bytes };
        walk.structure(fields, &mut |field, number| {
            found.numbers.push((field, number));
        })?;
        found.length = bytes.len() - walk.rest.len();
        Some(found)
    }

    /// One of its numbers.
    pub(crate) fn number(&self, field: i64) -> Option<i64> {
        let found = self.numbers.iter().find(|(known, _)| *known == field);
        found.map(|(_, number)| *number)
    }
}

struct Walk<'a> {
    rest: &'a [u8],
}

impl Walk<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn skip(&mut self, n: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(n).ok()?..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn structure(&mut self, fields: Fields, tell: &mut dyn FnMut(i64, i64)) -> Option<()> {
        let mut field = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => self.signed()?,
                step => field.checked_add(i64::from(step))?,
            };
            let (_, known) = fields.iter().find(|(number, _)| *number == field)?;
            if !known.is(head & 0xf) {
                return None;
            }
            match known {
                Type::Bool => {}
                Type::I16 | Type::I32 | Type::I64 => tell(field, self.signed()?),
                other => self.value(*other)?,
            }
        }
    }

    /// A value that is no truth value.
    fn value(&mut self, known: Type) -> Option<()> {
        match known {
            Type::Bool => None,
            Type::Byte => self.skip(1),
            Type::I16 | Type::I32 | Type::I64 => self.varint().map(drop),
            Type::Binary => {
                let length = self.varint()?;
                self.skip(length)
            }
            Type::List(of) => self.list(*of),
            Type::Structure(fields) => self.structure(fields, &mut |_, _| {}),
        }
    }

    fn list(&mut self, of: Type) -> Option<()> {
        let head = self.byte()?;
        let n = match head >> 4 {
            15 => self.varint()?,
            n => u64::from(n),
        };
        // An empty one may leave open what it is of.
        if head != 0 && !of.is(head & 0xf) {
            return None;
        }
        for _ in 0..n {
            self.value(of)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    static INNER: Fields = &[(1, Type::I32)];
    static FIELDS: Fields = &[
        (1, Type::I32),
        (2, Type::Bool),
        (4, Type::Binary),
        (5, Type::List(&Type::Structure(&INNER))),
        (10, Type::I64),
    ];

    fn check(bytes: &[u8], expected: Option<(usize, &[(i64, i64)])>) {
        let found = Struct::read(bytes, FIELDS);
        let found = found
            .as_ref()
            .map(|found| (found.length, &found.numbers[..]));
        assert_eq!(found, expected);
    }

    #[test]
    fn numbers_are_told_and_the_rest_is_passed_over() {
        // Field 1: i32 3. Field 2: true. Field 4: text. Field 5: two structures. Then more.
        let bytes = [
            0x15, 6, 0x11, 0x28, 2, b'h', b'i', 0x19, 0x2c, 0x15, 8, 0, 0, 0, 9, 9,
        ];
        check(&bytes, Some((14, &[(1, 3)])));
        check(&bytes[..13], None);
        check(&[0x06, 0x14, 1, 0], Some((4, &[(10, -1)])));
    }

    #[test]
    fn a_list_that_takes_no_bytes_is_refused() {
        // Field 5, a list: of truth values, two thousand million or one or none of them.
        check(&[0x59, 0xf1, 0xff, 0xff, 0xff, 0xff, 7, 0], None);
        check(&[0x59, 0x11, 0], None);
        check(&[0x59, 0x01, 0], None);
        check(&[0x59, 0x00, 0], Some((3, &[])));
        check(&[0x59, 0x0c, 0], Some((3, &[])));
        // Of more structures than there are bytes.
        check(&[0x59, 0xfc, 0xff, 0xff, 0xff, 0xff, 7, 0], None);
    }

    #[test]
    fn a_field_of_another_type_is_refused() {
        // The library reads field 1 as a number, whatever its type: it would go on at the
        // second byte of this text, and find the list of truth values behind it.
        let list = [0x89, 0xf1, 0xff, 0xff, 0xff, 0xff, 7];
        let mut text = vec![0x18, 8, 1];
        text.extend(list);
        text.push(0);
        check(&text, None);
        // A field that there is not.
        check(&[0x35, 6, 0], None);
        check(&[0x15, 6, 0], Some((3, &[(1, 3)])));
    }

    proptest! {
        #[test]
        fn any_bytes_do(bytes: Vec<u8>) {
            for fields in [FIELDS, FILE_META_DATA, PAGE_HEADER] {
                if let Some(found) = Struct::read(&bytes, fields) {
                    prop_assert!(found.length <= bytes.len());
                }
            }
        }
    }
}
