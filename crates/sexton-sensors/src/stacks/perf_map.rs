//! Names of code that a program made while it ran: `/tmp/perf-PID.map`, as virtual machines
//! write it for `perf`. Whoever owns the process writes it, so nothing in it is believed.

use std::path::PathBuf;
use std::sync::Arc;

use sexton_host::Host;
use sexton_host::code::{FileId, open_in_root};
use sexton_host::process::Inside;
use sexton_model::text::escape;

/// Larger ones are not read: node and Java write a few megabytes.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// What is kept of one.
const MAX_KEPT_BYTES: usize = 2 << 20;
const MAX_NAME_BYTES: usize = 256;

/// The names of one process.
#[derive(Debug)]
pub(super) struct PerfMap {
    id: FileId,
    /// Sorted by where they begin: start, end, name.
    sorted: Vec<(u64, u64, Arc<str>)>,
}

impl PerfMap {
    /// Reads the map of a process, if there is one that is its own and has changed.
    pub(super) fn read(host: &Host, pid: u32, last: Option<&Self>) -> Option<Self> {
        let inside = Inside::read(host, pid)?;
        let name = PathBuf::from(format!("/tmp/perf-{}.map", inside.pid));
        let file = open_in_root(host, pid, &name).ok()?;
        // /tmp is everyone's: only the process itself, or root, may speak for it.
        let is_its_own = file.owner() == inside.user || file.owner() == 0;
        let is_new = last.is_none_or(|last| last.id != file.id());
        if !is_its_own || !is_new || file.size() > MAX_FILE_BYTES {
            return None;
        }
        let mut text = vec![0; usize::try_from(file.size()).ok()?];
        let n = file.read_at(&mut text, 0).ok()?;
        Some(Self {
            id: file.id(),
            sorted: parse(&text[..n]),
        })
    }

    /// The code that an address lies in: its beginning and its name.
    pub(super) fn find(&self, address: u64) -> Option<(u64, &Arc<str>)> {
        let above = self.sorted.partition_point(|(start, ..)| *start <= address);
        let (start, end, name) = self.sorted.get(above.checked_sub(1)?)?;
        (address < *end).then_some((*start, name))
    }
}

/// Lines of `START SIZE name`, the numbers in hexadecimal; others are left out. A place that
/// is named again has its last name.
fn parse(text: &[u8]) -> Vec<(u64, u64, Arc<str>)> {
    let mut kept_bytes = 0;
    let mut sorted = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        let Some((start, end, name)) = parse_line(line) else {
            continue;
        };
        kept_bytes += name.len() + size_of::<(u64, u64, Arc<str>)>() + 16;
        if kept_bytes > MAX_KEPT_BYTES {
            break;
        }
        sorted.push((start, end, name));
    }
    sorted.reverse();
    sorted.sort_by_key(|(start, ..)| *start);
    sorted.dedup_by_key(|(start, ..)| *start);
    sorted
}

fn parse_line(line: &[u8]) -> Option<(u64, u64, Arc<str>)> {
    let mut fields = line.splitn(3, |byte| *byte == b' ');
    let mut number = || {
        let text = std::str::from_utf8(fields.next()?).ok()?;
        u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
    };
    let start = number()?;
    let end = start.checked_add(number()?)?;
    let name = fields.next()?.trim_ascii();
    let name = escape(&name[..name.len().min(MAX_NAME_BYTES)]);
    (!name.is_empty()).then(|| (start, end, name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &[u8], expected: &[(u64, u64, &str)]) {
        let found = parse(text);
        let found: Vec<(u64, u64, &str)> = found
            .iter()
            .map(|(start, end, name)| (*start, *end, &**name))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_of_a_map() {
        check(
            b"2000 10 LazyCompile:~b\x1b c.js:1\n0x1000 20 a\nno\n1000 zz x\n2000 20 later\n",
            &[(0x1000, 0x1020, "a"), (0x2000, 0x2020, "later")],
        );
        check(b"1000 10 a\x1b b", &[(0x1000, 0x1010, "a\\033 b")]);
        check(b"ffffffffffffffff 10 over\n1000 10 \n", &[]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(text in prop::collection::vec(any::<u8>(), 0..500)) {
            parse(&text);
        }
    }
}
