//! As much of tar as a packed bundle needs: plain files, named as POSIX.1-1988 does (ustar).
//! Archives that others made with tar(1) have directories and a folder around, which do
//! no harm; links, devices and names in other formats are no part of a bundle.

use std::io::{self, Read, Write};

const BLOCK: usize = 512;
const NAME: std::ops::Range<usize> = 0..100;
const SIZE: std::ops::Range<usize> = 124..136;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const KIND: usize = 156;
const MAGIC: std::ops::Range<usize> = 257..262;
const PREFIX: std::ops::Range<usize> = 345..500;

/// One file, or something that has no content.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) is_dir: bool,
}

/// The header of the next entry; `None` at the end of the archive.
pub(super) fn read_header(from: &mut dyn Read) -> io::Result<Option<Entry>> {
    let mut block = [0; BLOCK];
    from.read_exact(&mut block)?;
    if block.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let entry = parse(&block).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
    Ok(Some(entry))
}

fn parse(block: &[u8; BLOCK]) -> Result<Entry, String> {
    if octal(&block[CHECKSUM]) != Some(checksum(block)) {
        return Err("it has a header whose checksum does not fit".into());
    }
    let text = |field: &[u8]| {
        let end = field.iter().position(|byte| *byte == 0);
        str::from_utf8(&field[..end.unwrap_or(field.len())])
            .map(str::to_owned)
            .map_err(|_| "it has a name that is no text".to_owned())
    };
    let mut name = text(&block[NAME])?;
    // GNU tar keeps times where others keep the rest of a name, and says so after the magic.
    if &block[MAGIC] == b"ustar" && block[MAGIC.end] == 0 {
        let prefix = text(&block[PREFIX])?;
        if !prefix.is_empty() {
            name = format!("{prefix}/{name}");
        }
    }
    let is_dir = match block[KIND] {
        b'0' | 0 => false,
        b'5' => true,
        kind => {
            let (kind, name) = (kind.escape_ascii(), name.escape_debug());
            return Err(format!("{name} is of kind {kind}, and no plain file"));
        }
    };
    let bytes = octal(&block[SIZE]).ok_or_else(|| "it has a size that is no number".to_owned())?;
    Ok(Entry {
        name,
        bytes: if is_dir { 0 } else { bytes },
        is_dir,
    })
}

/// How many bytes follow a content, so that the next header is on a block.
pub(super) fn padding(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK as u64) - bytes
}

/// Writes a header; false for a name that does not fit into one.
pub(super) fn write_header(to: &mut dyn Write, name: &str, bytes: u64) -> io::Result<bool> {
    let Some((prefix, rest)) = split(name) else {
        return Ok(false);
    };
    let mut block = [0; BLOCK];
    block[NAME][..rest.len()].copy_from_slice(rest.as_bytes());
    block[PREFIX][..prefix.len()].copy_from_slice(prefix.as_bytes());
    block[100..108].copy_from_slice(b"0000644\0");
    block[108..116].copy_from_slice(b"0000000\0");
    block[116..124].copy_from_slice(b"0000000\0");
    // Eleven digits are 8 GiB, more than a file of a bundle has.
    let size = format!("{bytes:011o}\0");
    if size.len() != SIZE.len() {
        return Ok(false);
    }
    block[SIZE].copy_from_slice(size.as_bytes());
    block[136..148].copy_from_slice(b"00000000000\0");
    block[KIND] = b'0';
    block[MAGIC].copy_from_slice(b"ustar");
    block[MAGIC.end + 1..MAGIC.end + 3].copy_from_slice(b"00");
    let sum = format!("{:06o}\0 ", checksum(&block));
    block[CHECKSUM].copy_from_slice(sum.as_bytes());
    to.write_all(&block)?;
    Ok(true)
}

/// The two empty blocks at the end.
pub(super) fn write_end(to: &mut dyn Write) -> io::Result<()> {
    to.write_all(&[0; 2 * BLOCK])
}

/// A name in two parts that fit, cut at a slash.
fn split(name: &str) -> Option<(&str, &str)> {
    if name.len() <= NAME.len() {
        return Some(("", name));
    }
    let cuts = name.match_indices('/').map(|(at, _)| name.split_at(at));
    let mut parts = cuts.map(|(prefix, rest)| (prefix, &rest[1..]));
    parts.find(|(prefix, rest)| prefix.len() <= PREFIX.len() && rest.len() <= NAME.len())
}

/// The sum of all bytes, those of itself taken as blanks.
fn checksum(block: &[u8; BLOCK]) -> u64 {
    let byte = |(at, byte): (usize, &u8)| match CHECKSUM.contains(&at) {
        true => u64::from(b' '),
        false => u64::from(*byte),
    };
    block.iter().enumerate().map(byte).sum()
}

fn octal(field: &[u8]) -> Option<u64> {
    let text = str::from_utf8(field).ok()?;
    let digits = text.trim_matches(['\0', ' ']);
    let is_plain = digits.bytes().all(|digit| digit.is_ascii_digit());
    u64::from_str_radix(digits, 8).ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, bytes: u64, fits: bool) {
        let mut archive = Vec::new();
        let written = write_header(&mut archive, name, bytes).expect("memory");
        assert_eq!(written, fits, "{name}");
        if fits {
            let entry = read_header(&mut &archive[..]).expect("it is good");
            let expected = Entry {
                name: name.to_owned(),
                bytes,
                is_dir: false,
            };
            assert_eq!(entry, Some(expected));
        }
    }

    #[test]
    fn what_is_written_is_read() {
        check("bundle.json", 7, true);
        check(&"a".repeat(100), 0, true);
        check(&"a".repeat(101), 0, false);
        check(&format!("{}/{}", "a".repeat(155), "b".repeat(100)), 1, true);
        check(
            &format!("{}/{}", "a".repeat(156), "b".repeat(100)),
            1,
            false,
        );
        check("x", (8 << 30) - 1, true);
        check("x", 8 << 30, false);
    }

    #[test]
    fn a_changed_header_is_refused() {
        let mut archive = Vec::new();
        write_header(&mut archive, "bundle.json", 7).expect("memory");
        archive[3] ^= 1;
        assert!(read_header(&mut &archive[..]).is_err());
    }
}
