//! Looks over the Thrift structures of a Parquet file before the library reads them.
//!
//! The library passes over what it does not know element by element, and takes the elements
//! of a list of truth values for nothing: a list of a few bytes that claims two thousand
//! million of them, and a list of such lists, keeps it busy far too long: fuzzing found a
//! segment of 2 kB that takes over ten seconds. Whoever makes such a file makes fitting
//! checksums too. Nothing that Parquet has in these places needs such a list.
//!
//! Format: <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>

/// Parquet's own structures are six deep.
const MAX_DEPTH: u32 = 16;

/// A structure at the start of some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Struct {
    /// How many bytes it takes.
    pub(crate) length: usize,
    /// Its own whole numbers, by the number of their field.
    pub(crate) numbers: Vec<(i64, i64)>,
}

impl Struct {
    /// Looks over a structure; `None` when it is not whole or nothing that Parquet has.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut found = Self::default();
        let mut walk = Walk { rest: bytes };
        walk.structure(MAX_DEPTH, &mut |field, number| {
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

    fn structure(&mut self, depth: u32, tell: &mut dyn FnMut(i64, i64)) -> Option<()> {
        let depth = depth.checked_sub(1)?;
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
            match head & 0xf {
                // Truth values of fields are their type.
                1 | 2 => {}
                4..=6 => tell(field, self.signed()?),
                kind => self.value(kind, depth)?,
            }
        }
    }

    /// A value that takes at least one byte, so that all of them take no longer than the
    /// bytes are many.
    fn value(&mut self, kind: u8, depth: u32) -> Option<()> {
        match kind {
            3 => self.skip(1),
            4..=6 => self.varint().map(drop),
            7 => self.skip(8),
            8 => {
                let length = self.varint()?;
                self.skip(length)
            }
            9 | 10 => self.list(depth.checked_sub(1)?),
            12 => self.structure(depth, &mut |_, _| {}),
            _ => None,
        }
    }

    fn list(&mut self, depth: u32) -> Option<()> {
        let head = self.byte()?;
        let n = match head >> 4 {
            15 => self.varint()?,
            n => u64::from(n),
        };
        for _ in 0..n {
            self.value(head & 0xf, depth)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(bytes: &[u8], expected: Option<(usize, &[(i64, i64)])>) {
        let found = Struct::read(bytes);
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
        check(&[0x05, 0x14, 1, 0], Some((4, &[(10, -1)])));
    }

    #[test]
    fn a_list_that_takes_no_bytes_is_refused() {
        check(&[0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 7, 0], None);
        check(&[0x19, 0x01, 0], Some((3, &[])));
        check(&[0x1c; 64], None);
        check(&[0x19, 0x19, 0x19, 0x19], None);
    }

    proptest! {
        #[test]
        fn any_bytes_do(bytes: Vec<u8>) {
            if let Some(found) = Struct::read(&bytes) {
                prop_assert!(found.length <= bytes.len());
            }
        }
    }
}
