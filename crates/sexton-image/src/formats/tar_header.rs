//! Headers of tar: ustar, GNU and pax. Names are bounded, whatever a header claims.

use std::io::{self, Read};

use crate::tree::invalid;

/// One block of a tar.
pub(super) const BLOCK: usize = 512;

/// The kernel allows paths of 4,096 bytes; GNU and pax records hold one of those and a
/// few more attributes.
const RECORD_BYTES_MAX: u64 = 1 << 20;
const PATH_BYTES_MAX: usize = 8 << 10;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    File,
    /// A file with holes. Where its parts are is not worked out.
    Sparse,
    HardLink,
    Link,
    Dir,
    Other,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) path: Vec<u8>,
    pub(super) sort: Sort,
    pub(super) target: Vec<u8>,
    /// As stored here; of a hard link nothing is.
    pub(super) size_bytes: u64,
    pub(super) permissions: u32,
}

/// What a stream of a tar must do beside being read.
pub(super) trait Stream: Read {
    /// Goes past `n` bytes.
    fn skip(&mut self, n: u64) -> io::Result<()>;
    /// How many bytes lie behind.
    fn position(&self) -> u64;
}

/// Names that came in records before the header they belong to.
#[derive(Debug, Default)]
struct Pending {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size_bytes: Option<u64>,
    sparse: bool,
}

/// Whether a block is a header, by its own sum.
pub(super) fn is_header(block: &[u8]) -> bool {
    let Some(block) = block.get(..BLOCK) else {
        return false;
    };
    let sum = |i: usize, b: u8| u64::from(if (148..156).contains(&i) { b' ' } else { b });
    let actual: u64 = block.iter().enumerate().map(|(i, &b)| sum(i, b)).sum();
    number(&block[148..156]) == Some(actual) && block[0] != 0
}

/// The next entry, or `None` at the end. Its content follows in the stream.
pub(super) fn next(stream: &mut dyn Stream) -> io::Result<Option<Header>> {
    let mut pending = Pending::default();
    let mut block = [0; BLOCK];
    loop {
        if !read_block(stream, &mut block)? || block.iter().all(|&b| b == 0) {
            return Ok(None);
        }
        if !is_header(&block) {
            return Err(invalid("a header whose checksum is wrong"));
        }
        let size_bytes =
            number(&block[124..136]).ok_or_else(|| invalid("a size that is no number"))?;
        match block[156] {
            b'L' => pending.path = Some(name_record(stream, size_bytes)?),
            b'K' => pending.target = Some(name_record(stream, size_bytes)?),
            b'x' => pax(&record(stream, size_bytes)?, &mut pending)?,
            b'g' => {
                record(stream, size_bytes)?;
            }
            _ => return header(stream, &block, size_bytes, pending).map(Some),
        }
    }
}

fn header(
    stream: &mut dyn Stream,
    block: &[u8; BLOCK],
    size_bytes: u64,
    pending: Pending,
) -> io::Result<Header> {
    let sort = match block[156] {
        b'0' | 0 | b'7' if pending.sparse => Sort::Sparse,
        // Before ustar a slash at the end was all that told a directory.
        0 | b'0' if until_nul(&block[..100]).ends_with(b"/") => Sort::Dir,
        b'0' | 0 | b'7' => Sort::File,
        b'1' => Sort::HardLink,
        b'2' => Sort::Link,
        b'5' => Sort::Dir,
        b'S' => Sort::Sparse,
        _ => Sort::Other,
    };
    if block[156] == b'S' && block[482] != 0 {
        skip_sparse_maps(stream)?;
    }
    let path = pending.path.unwrap_or_else(|| short_path(block));
    let target = pending
        .target
        .unwrap_or_else(|| until_nul(&block[157..257]).to_vec());
    if path.len() > PATH_BYTES_MAX || target.len() > PATH_BYTES_MAX {
        return Err(invalid("a name longer than any path can be"));
    }
    let has_content = !matches!(sort, Sort::HardLink | Sort::Link | Sort::Dir);
    Ok(Header {
        path,
        sort,
        target,
        size_bytes: if has_content {
            pending.size_bytes.unwrap_or(size_bytes)
        } else {
            0
        },
        permissions: number(&block[100..108]).map_or(0o644, |mode| (mode & 0o7777) as u32),
    })
}

fn short_path(block: &[u8; BLOCK]) -> Vec<u8> {
    let name = until_nul(&block[..100]);
    let prefix = until_nul(&block[345..500]);
    // Only ustar has a prefix there; GNU keeps times in its place.
    if &block[257..263] != b"ustar\0" || prefix.is_empty() {
        return name.to_vec();
    }
    [prefix, b"/", name].concat()
}

fn skip_sparse_maps(stream: &mut dyn Stream) -> io::Result<()> {
    let mut block = [0; BLOCK];
    loop {
        if !read_block(stream, &mut block)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if block[504] == 0 {
            return Ok(());
        }
    }
}

/// `false` at the end of the stream.
fn read_block(stream: &mut dyn Stream, block: &mut [u8; BLOCK]) -> io::Result<bool> {
    let mut done = 0;
    while done < BLOCK {
        match stream.read(&mut block[done..])? {
            0 if done == 0 => return Ok(false),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => done += n,
        }
    }
    Ok(true)
}

fn record(stream: &mut dyn Stream, size_bytes: u64) -> io::Result<Vec<u8>> {
    if size_bytes > RECORD_BYTES_MAX {
        return Err(invalid("a name record over 1 MiB"));
    }
    let mut content = Vec::new();
    stream.take(size_bytes).read_to_end(&mut content)?;
    if (content.len() as u64) < size_bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    stream.skip(padding(size_bytes))?;
    Ok(content)
}

fn name_record(stream: &mut dyn Stream, size_bytes: u64) -> io::Result<Vec<u8>> {
    Ok(until_nul(&record(stream, size_bytes)?).to_vec())
}

/// What fills up the last block.
pub(super) fn padding(size_bytes: u64) -> u64 {
    (BLOCK as u64 - size_bytes % BLOCK as u64) % BLOCK as u64
}

/// Lines of `LENGTH KEY=VALUE`, where the length counts all of the line.
fn pax(content: &[u8], pending: &mut Pending) -> io::Result<()> {
    let mut rest = content;
    while !rest.is_empty() {
        let bad = || invalid("a pax record that cannot be read");
        let space = rest.iter().position(|&b| b == b' ').ok_or_else(bad)?;
        let len = decimal(&rest[..space]).ok_or_else(bad)?;
        let len = usize::try_from(len).map_err(|_| bad())?;
        let line = rest.get(space + 1..len).ok_or_else(bad)?;
        let line = line.strip_suffix(b"\n").ok_or_else(bad)?;
        let equals = line.iter().position(|&b| b == b'=').ok_or_else(bad)?;
        let value = &line[equals + 1..];
        match &line[..equals] {
            b"path" | b"GNU.sparse.name" => pending.path = Some(value.to_vec()),
            b"linkpath" => pending.target = Some(value.to_vec()),
            b"size" => pending.size_bytes = Some(decimal(value).ok_or_else(bad)?),
            key if key.starts_with(b"GNU.sparse.") => pending.sparse = true,
            _ => {}
        }
        rest = &rest[len..];
    }
    Ok(())
}

fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn until_nul(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|&b| b == 0);
    &field[..end.unwrap_or(field.len())]
}

/// Octal text, or a big-endian number where the highest bit is set.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let (first, rest) = field.split_first()?;
        let start = u64::from(first & 0x7f);
        return rest.iter().try_fold(start, |sum, &b| {
            sum.checked_mul(256).map(|sum| sum + u64::from(b))
        });
    }
    let text = std::str::from_utf8(field).ok()?;
    let text = text.trim_matches(['\0', ' ']);
    if text.is_empty() {
        return Some(0);
    }
    u64::from_str_radix(text, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_binary() {
        let check = |field: &[u8], expected| assert_eq!(number(field), expected);
        check(b"0000644\0", Some(0o644));
        check(b"      0 ", Some(0));
        check(b"\0\0\0\0", Some(0));
        check(b"\x80\0\0\x01\0", Some(256));
        check(b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff", None);
        check(b"9999", None);
    }

    #[test]
    fn pax_lines_count_themselves() {
        let check = |text: &[u8], expected: Option<&[u8]>| {
            let mut pending = Pending::default();
            let read = pax(text, &mut pending);
            assert_eq!(read.ok().and(pending.path).as_deref(), expected);
        };
        check(b"12 path=abc\n", Some(b"abc"));
        check(b"18 linkpath=x/y/z\n12 path=a\nc\n", Some(b"a\nc"));
        check(b"12 path=abc", None);
        check(b"999 path=abc\n", None);
        check(b"0 path=abc\n", None);
        check(b"path=abc\n", None);
    }
}
