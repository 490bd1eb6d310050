//! A column of texts as Parquet keeps it: each text once, and which one each row has. To
//! make a text for every row, as the library does, takes most of the time of reading.
//!
//! Nothing in the bytes is believed. A column that is kept in any other way is left to the
//! library.

use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::reader::RowGroupReader;

use crate::sealed::{Damage, malformed, read_column};

/// The number of a row without a text.
const NULL: u32 = u32::MAX;

/// The texts of one column of one row group.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// Each text; some may be there twice.
    pub(crate) words: Vec<ByteArray>,
    /// Which one each row has.
    rows: Vec<u32>,
}

impl Texts {
    /// The column at a place in a row group of `n` rows.
    pub(crate) fn read(
        group: &dyn RowGroupReader,
        at: usize,
        is_nullable: bool,
        n: usize,
    ) -> Result<Self, Damage> {
        let mut pages = group.get_column_page_reader(at).map_err(malformed)?;
        let mut texts = Self::default();
        while let Some(page) = pages.get_next_page().map_err(malformed)? {
            if !texts.take(&page, is_nullable, n)? {
                return Self::of_rows(read_column::<ByteArrayType>(group, at, is_nullable, n)?);
            }
        }
        if texts.rows.len() != n {
            return Err(malformed("a column is too short"));
        }
        Ok(texts)
    }

    /// Which text a row has, as a number of `words`.
    pub(crate) fn word(&self, row: usize) -> Option<usize> {
        let word = *self.rows.get(row)?;
        (word != NULL).then_some(word as usize)
    }

    fn of_rows(rows: Vec<Option<ByteArray>>) -> Result<Self, Damage> {
        let mut texts = Self::default();
        for row in rows {
            let number = match row {
                None => NULL,
                Some(text) => {
                    if texts.words.last() != Some(&text) {
                        texts.words.push(text);
                    }
                    u32::try_from(texts.words.len() - 1).map_err(malformed)?
                }
            };
            texts.rows.push(number);
        }
        Ok(texts)
    }

    /// Takes a page; `false` when it is kept in a way that is not read here.
    fn take(&mut self, page: &Page, is_nullable: bool, n: usize) -> Result<bool, Damage> {
        let bad = || malformed("a page of texts makes no sense");
        match page {
            Page::DictionaryPage { buf, .. } => {
                self.words = words(buf, n.max(1)).ok_or_else(bad)?;
                Ok(true)
            }
            #[allow(deprecated, reason = "the older name of the same encoding")]
            Page::DataPage {
                buf,
                num_values,
                encoding: Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY,
                def_level_encoding: Encoding::RLE,
                ..
            } => {
                let n_values = *num_values as usize;
                if n_values > n - self.rows.len().min(n) {
                    return Err(bad());
                }
                self.take_rows(buf, is_nullable, n_values).ok_or_else(bad)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn take_rows(&mut self, page: &[u8], is_nullable: bool, n: usize) -> Option<()> {
        let mut values = page;
        let mut levels = Vec::new();
        if is_nullable {
            let (size, rest) = page.split_first_chunk::<4>()?;
            let (packed, rest) = rest.split_at_checked(u32::from_le_bytes(*size) as usize)?;
            runs(packed, 1, n, &mut levels)?;
            values = rest;
        }
        let n_there = if is_nullable {
            levels.iter().filter(|level| **level == 1).count()
        } else {
            n
        };
        let mut numbers = Vec::with_capacity(n_there);
        if n_there > 0 {
            let (width, packed) = values.split_first()?;
            runs(packed, u32::from(*width), n_there, &mut numbers)?;
        }
        let known = |number: &u32| (*number as usize) < self.words.len();
        if !numbers.iter().all(known) {
            return None;
        }
        if is_nullable {
            let mut numbers = numbers.into_iter();
            let row = |level: u32| match level {
                1 => numbers.next().unwrap_or(NULL),
                _ => NULL,
            };
            self.rows.extend(levels.into_iter().map(row));
        } else {
            self.rows.extend(numbers);
        }
        Some(())
    }
}

/// The texts of a dictionary: a length of four bytes before each. There are no more of them
/// than rows.
fn words(mut page: &[u8], limit: usize) -> Option<Vec<ByteArray>> {
    let mut words = Vec::new();
    while let Some((size, rest)) = page.split_first_chunk::<4>() {
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*size) as usize)?;
        words.push(ByteArray::from(text.to_vec()));
        page = rest;
        if words.len() > limit {
            return None;
        }
    }
    page.is_empty().then_some(words)
}

/// Reads `n` numbers of `width` bits: runs of one number, and numbers side by side.
fn runs(mut packed: &[u8], width: u32, n: usize, out: &mut Vec<u32>) -> Option<()> {
    if width > 32 {
        return None;
    }
    let end = out.len().checked_add(n)?;
    while out.len() < end {
        let header = varint(&mut packed)?;
        let left = end - out.len();
        let count = usize::try_from(header >> 1).ok()?;
        if header & 1 == 0 {
            let (value, rest) = packed.split_at_checked(width.div_ceil(8) as usize)?;
            let value = value
                .iter()
                .rev()
                .fold(0, |value, byte| value << 8 | u32::from(*byte));
            out.resize(out.len() + count.min(left), value);
            packed = rest;
            // A run of nothing would go on for ever.
            (count > 0).then_some(())?;
        } else {
            let bytes = count.checked_mul(width as usize)?;
            let (group, rest) = packed.split_at_checked(bytes)?;
            unpack(group, width, left.min(count.checked_mul(8)?), out);
            packed = rest;
            (count > 0).then_some(())?;
        }
    }
    Some(())
}

/// Numbers side by side, the lowest bits first.
fn unpack(bytes: &[u8], width: u32, n: usize, out: &mut Vec<u32>) {
    let mask = (1u64 << width) - 1;
    let (mut bits, mut n_bits) = (0u64, 0);
    let mut bytes = bytes.iter();
    for _ in 0..n {
        while n_bits < width {
            bits |= u64::from(bytes.next().copied().unwrap_or(0)) << n_bits;
            n_bits += 8;
        }
        out.push((bits & mask) as u32);
        bits >>= width;
        n_bits -= width;
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(packed: &[u8], width: u32, n: usize, expected: Option<&[u32]>) {
        let mut out = Vec::new();
        let read = runs(packed, width, n, &mut out);
        assert_eq!(read.map(|()| &out[..]), expected);
    }

    #[test]
    fn runs_and_groups_are_read() {
        // The example of the format's own description: 0 to 7 in three bits each.
        check(
            &[0x03, 0x88, 0xc6, 0xfa],
            3,
            8,
            Some(&[0, 1, 2, 3, 4, 5, 6, 7]),
        );
        check(&[0x08, 0x05], 3, 4, Some(&[5, 5, 5, 5]));
        check(
            &[0x04, 0x01, 0x03, 0x88, 0xc6, 0xfa],
            3,
            4,
            Some(&[1, 1, 0, 1]),
        );
        check(&[0x08], 0, 3, Some(&[0, 0, 0]));
    }

    #[test]
    fn what_is_cut_or_endless_is_refused() {
        check(&[0x03, 0x88], 3, 8, None);
        check(&[0x00, 0x01], 3, 4, None);
        check(&[0x01], 3, 4, None);
        check(&[0x08, 0x05], 33, 4, None);
        check(&[], 3, 4, None);
    }

    proptest! {
        #[test]
        fn any_bytes_do(bytes: Vec<u8>, width in 0u32..40, n in 0usize..4096) {
            let mut out = Vec::new();
            if runs(&bytes, width, n, &mut out).is_some() {
                prop_assert_eq!(out.len(), n);
            }
            prop_assert!(out.len() <= n);
            let _ = words(&bytes, n);
        }
    }
}
