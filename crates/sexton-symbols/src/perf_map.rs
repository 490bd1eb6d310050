//! Names of code that a program made while it ran: `/tmp/perf-PID.map`, as virtual machines
//! write it for perf. The owner of the process writes it, so nothing in it is believed.

use std::sync::Arc;

use crate::demangle::plain;

/// What is kept of one while a node is watched.
pub const MAX_LIVE_BYTES: usize = 2 << 20;

/// The names of one process.
#[derive(Debug, Default)]
pub struct PerfMap {
    /// Sorted by where they begin: start, end, where the name is in `text`.
    sorted: Vec<(u64, u64, u32)>,
    /// Names, each with a line feed behind it.
    text: Vec<u8>,
}

impl PerfMap {
    /// Reads lines of `START SIZE name`, the numbers in hexadecimal; others are left out, and
    /// so is what comes after `max_bytes` are kept. A place that is named again has its last
    /// name: a compiler may use it twice.
    pub fn parse(text: &[u8], max_bytes: usize) -> Self {
        let mut map = Self::default();
        for line in text.split(|byte| *byte == b'\n') {
            let Some((start, end, name)) = parse_line(line) else {
                continue;
            };
            let kept = map.text.len() + name.len() + size_of_val(&map.sorted[..]);
            let Some(at) = u32::try_from(map.text.len())
                .ok()
                .filter(|_| kept < max_bytes)
            else {
                break;
            };
            map.sorted.push((start, end, at));
            map.text.extend_from_slice(name);
            map.text.push(b'\n');
        }
        map.sorted.reverse();
        map.sorted.sort_by_key(|(start, ..)| *start);
        map.sorted.dedup_by_key(|(start, ..)| *start);
        map
    }

    /// The code that an address lies in: its beginning and its name.
    pub fn find(&self, address: u64) -> Option<(u64, Arc<str>)> {
        let above = self.sorted.partition_point(|(start, ..)| *start <= address);
        let (start, end, at) = *self.sorted.get(above.checked_sub(1)?)?;
        let rest = self.text.get(at as usize..).filter(|_| address < end)?;
        let name = rest.split(|byte| *byte == b'\n').next()?;
        Some((start, plain(name).into()))
    }
}

fn parse_line(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut fields = line.splitn(3, |byte| *byte == b' ');
    let mut number = || {
        let text = std::str::from_utf8(fields.next()?).ok()?;
        u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
    };
    let start = number()?;
    let end = start.checked_add(number()?)?;
    let name = fields.next()?.trim_ascii();
    (!name.is_empty()).then_some((start, end, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &[u8], expected: &[(u64, u64, &str)]) {
        let map = PerfMap::parse(text, 1000);
        let found: Vec<(u64, u64, Arc<str>)> = map
            .sorted
            .iter()
            .map(|(start, end, _)| (*start, *end, map.find(*start).expect("it is there").1))
            .collect();
        let found: Vec<(u64, u64, &str)> = found.iter().map(|(s, e, n)| (*s, *e, &**n)).collect();
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

    #[test]
    fn a_place_past_the_end_has_no_name() {
        let map = PerfMap::parse(b"1000 10 first one\n1000 20 second one\n", 1000);
        assert_eq!(map.find(0x101f), Some((0x1000, "second one".into())));
        assert_eq!(map.find(0x1020), None);
        assert_eq!(map.find(0xfff), None);
    }

    #[test]
    fn it_stays_small() {
        let text: Vec<u8> = (1..10_000)
            .flat_map(|n| format!("{n}000 10 name\n").into_bytes())
            .collect();
        let map = PerfMap::parse(&text, 10_000);
        assert!(map.text.len() + size_of_val(&map.sorted[..]) < 11_000);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(text in prop::collection::vec(any::<u8>(), 0..500), at: u64) {
            PerfMap::parse(&text, 300).find(at);
        }
    }
}
