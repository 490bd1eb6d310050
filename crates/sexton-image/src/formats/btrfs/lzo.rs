//! LZO1X, as Btrfs packs with it: segments of one sector each.
//!
//! The stream is described in the kernel's Documentation/staging/lzo.rst.

use std::io;

use super::layout::{part, size};
use crate::tree::invalid;

/// Unpacks an extent: its length, then segments, each with its length in front.
pub(super) fn unpack(packed: &[u8], sector_bytes: usize, limit: usize) -> io::Result<Vec<u8>> {
    let total = size(packed, 0)?;
    let packed = part(packed, 0, total)?;
    let mut unpacked = Vec::new();
    let mut at = 4;
    while at < total && unpacked.len() < limit {
        // A length never lies across two sectors.
        let left = sector_bytes - at % sector_bytes;
        if left < 4 {
            at += left;
            continue;
        }
        let len = size(packed, at)?;
        let segment = part(packed, at + 4, len)?;
        let room = sector_bytes.min(limit - unpacked.len());
        segment_into(segment, &mut unpacked, room)?;
        at = at.saturating_add(4).saturating_add(len);
    }
    Ok(unpacked)
}

/// The bytes of one segment, read one after the other.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> io::Result<usize> {
        let (first, rest) = self.0.split_first().ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0 = rest;
        Ok(usize::from(*first))
    }

    /// A length that did not fit: zeros count 255 each, and the byte after them itself.
    fn longer(&mut self, base: usize) -> io::Result<usize> {
        let mut len = base;
        loop {
            match self.byte()? {
                0 => len += 255,
                last => return Ok(len + last),
            }
        }
    }

    fn pair(&mut self) -> io::Result<usize> {
        let low = self.byte()?;
        Ok(low | self.byte()? << 8)
    }
}

/// What is unpacked of one segment.
struct Output<'a> {
    bytes: &'a mut Vec<u8>,
    from: usize,
    end: usize,
}

impl Output<'_> {
    fn literals(&mut self, input: &mut Input<'_>, n: usize) -> io::Result<()> {
        if n > self.end - self.bytes.len() {
            return Err(invalid("more is packed than fits"));
        }
        let (literals, rest) = input
            .0
            .split_at_checked(n)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        self.bytes.extend_from_slice(literals);
        input.0 = rest;
        Ok(())
    }

    fn copy(&mut self, distance: usize, n: usize) -> io::Result<()> {
        if distance > self.bytes.len() - self.from || n > self.end - self.bytes.len() {
            return Err(invalid("more is packed than fits"));
        }
        // It may reach into what it writes itself.
        for _ in 0..n {
            self.bytes.push(self.bytes[self.bytes.len() - distance]);
        }
        Ok(())
    }
}

/// After a long run of literals; fewer are counted as they are.
const MANY: usize = 4;

fn segment_into(segment: &[u8], unpacked: &mut Vec<u8>, room: usize) -> io::Result<()> {
    let from = unpacked.len();
    let mut output = Output {
        end: from + room,
        from,
        bytes: unpacked,
    };
    let mut input = Input(segment);
    // Literals that the last instruction ended with.
    let mut n_before = 0;
    if let Some(&first) = segment.first()
        && first > 17
    {
        input.byte()?;
        let n = usize::from(first) - 17;
        output.literals(&mut input, n)?;
        n_before = n.min(MANY);
    }
    loop {
        let code = input.byte()?;
        if code < 16 && n_before == 0 {
            let len = match code {
                0 => input.longer(15)?,
                len => len,
            };
            output.literals(&mut input, len + 3)?;
            n_before = MANY;
            continue;
        }
        let Some((distance, len, n_after)) = matched(code, n_before, &mut input)? else {
            return Ok(());
        };
        output.copy(distance, len)?;
        output.literals(&mut input, n_after)?;
        n_before = n_after;
    }
}

/// What is copied: how far back it is, how long, and how many literals follow. `None` is the end.
fn matched(
    code: usize,
    n_before: usize,
    input: &mut Input<'_>,
) -> io::Result<Option<(usize, usize, usize)>> {
    Ok(Some(match code {
        0..16 => {
            let distance = (input.byte()? << 2) + (code >> 2) + 1;
            match n_before {
                MANY => (distance + 2048, 3, code & 3),
                _ => (distance, 2, code & 3),
            }
        }
        16..32 => {
            let len = match code & 7 {
                0 => input.longer(7)?,
                len => len,
            };
            let low = input.pair()?;
            let distance = 16_384 + ((code & 8) << 11) + (low >> 2);
            if distance == 16_384 {
                return Ok(None);
            }
            (distance, len + 2, low & 3)
        }
        32..64 => {
            let len = match code & 31 {
                0 => input.longer(31)?,
                len => len,
            };
            let low = input.pair()?;
            ((low >> 2) + 1, len + 2, low & 3)
        }
        _ => {
            let len = match code {
                64..128 => 3 + (code >> 5 & 1),
                _ => 5 + (code >> 5 & 3),
            };
            let distance = (input.byte()? << 3) + (code >> 2 & 7) + 1;
            (distance, len, code & 3)
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(segment: &[u8]) -> Vec<u8> {
        let len = segment.len() as u32;
        let mut packed = (len + 8).to_le_bytes().to_vec();
        packed.extend_from_slice(&len.to_le_bytes());
        packed.extend_from_slice(segment);
        packed
    }

    #[test]
    fn literals_and_matches() {
        // Four literals, then five bytes from a distance of four, then the end.
        let segment = [21, b'a', b'b', b'c', b'd', 0b1000_1100, 0, 17, 0, 0];
        let unpacked = unpack(&packed(&segment), 4096, 4096).expect("unpacked");
        assert_eq!(unpacked, b"abcdabcda");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let check = |segment: &[u8]| {
            unpack(&packed(segment), 4096, 8).expect_err("refused");
        };
        check(&[21, b'a', b'b', b'c', b'd', 0b1000_1100, 0, 17, 0, 0]);
        check(&[18, b'a', 0b1000_1100, 9, 17, 0, 0]);
        check(&[21, b'a']);
        check(&[]);
        check(&[0, 0, 0, 0]);
        unpack(&[9, 0, 0], 4096, 8).expect_err("cut off");
        unpack(&[255, 255, 255, 255, 1], 4096, 8).expect_err("cut off");
    }
}
