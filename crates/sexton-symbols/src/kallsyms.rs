//! `/proc/kallsyms`: one symbol of the kernel, its modules or BPF programs per line.

use std::cmp::Ordering;

use crate::choice::{Binding, merit, rank};

/// No function is longer. Beyond that an address lies in something that has no name.
const MAX_FUNCTION_BYTES: u64 = 1 << 20;

/// Where the kernel was loaded; perf records where one of these is.
const STARTS: [&[u8]; 2] = [b"_text", b"_stext"];

/// Where the kernel's own code ends. What comes after is no part of the last function: the
/// code of a BPF program that is gone, for example.
const ENDS: [&[u8]; 2] = [b"_etext", b"_einittext"];

/// What the names of the padding before functions begin with (`CONFIG_CALL_PADDING`). Nothing
/// runs there, and such names are half of the table.
const PADDING: &[u8] = b"__pfx_";

/// What the names of system calls of 32-bit programs begin with. Those without arguments are the
/// same code as `__x64_` ones, which is what nearly all programs call.
const OF_32_BITS: &[u8] = b"__ia32_";

/// The functions of the kernel, by address.
#[derive(Debug, Default)]
pub struct Kallsyms {
    /// Sorted: where a function begins, and where its line is in `text`.
    starts: Vec<(u64, u32)>,
    /// Lines of the kind of a symbol, its name and perhaps `\t[module]`. Most are never asked
    /// for, so they stay as they came.
    text: Vec<u8>,
    loaded_at: [Option<u64>; 2],
    ends_at: [Option<u64>; 2],
}

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelFunction<'a> {
    /// Where it begins.
    pub start: u64,
    /// What it is called.
    pub name: &'a str,
    /// With its brackets; `None` for the kernel itself.
    pub module: Option<&'a str>,
}

impl KernelFunction<'_> {
    /// Whether it is code that the kernel made while it ran: a BPF program, a trampoline. The
    /// table says where that begins and not where it ends, so that what came later, or is gone,
    /// seems to belong to the nearest before it.
    pub fn is_made(&self) -> bool {
        let module = self.module.unwrap_or_default();
        module == "[bpf]" || module.starts_with("[__builtin__")
    }
}

impl Kallsyms {
    /// Reads a whole text. Without the right to see addresses the kernel shows them as zero:
    /// then nothing is known.
    pub fn parse(text: &[u8]) -> Self {
        let mut table = Self::default();
        for line in text.split(|byte| *byte == b'\n') {
            table.add(line);
        }
        table.finish();
        table
    }

    /// Takes a line; what is none, or of no function, is passed over. After the last one
    /// call [`Self::finish`].
    pub fn add(&mut self, line: &[u8]) {
        let Some((start, kind, name)) = parse_line(line) else {
            return;
        };
        let Ok(at) = u32::try_from(self.text.len()) else {
            return;
        };
        for (marks, places) in [(STARTS, &mut self.loaded_at), (ENDS, &mut self.ends_at)] {
            if let Some(mark) = marks.iter().position(|mark| *mark == name) {
                places[mark] = Some(start);
            }
        }
        self.starts.push((start, at));
        self.text.push(kind);
        self.text.extend_from_slice(name);
        self.text.push(b'\n');
    }

    /// Sorts, and keeps one name for each address.
    pub fn finish(&mut self) {
        let text = std::mem::take(&mut self.text);
        let better = |a: u32, b: u32| {
            let (a, b) = (line_at(&text, a), line_at(&text, b));
            let by_kind = kind_rank(a).cmp(&kind_rank(b));
            let (a, b) = (name_of(a), name_of(b));
            let by_kind = by_kind.then(is_native(a).cmp(&is_native(b)));
            by_kind.then_with(|| merit(a).cmp(&merit(b)))
        };
        self.starts.sort_by_key(|(start, _)| *start);
        self.starts.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same && better(later.1, kept.1) == Ordering::Greater {
                kept.1 = later.1;
            }
            is_same
        });
        self.starts.shrink_to_fit();
        self.text = text;
        self.text.shrink_to_fit();
    }

    /// The function that an address lies in.
    pub fn find(&self, address: u64) -> Option<KernelFunction<'_>> {
        let above = self.starts.partition_point(|(start, _)| *start <= address);
        let (start, at) = *self.starts.get(above.checked_sub(1)?)?;
        let line = line_at(&self.text, at).get(1..)?;
        let tab = line.iter().position(|byte| *byte == b'\t');
        let (name, module) = match tab {
            Some(at) => (&line[..at], Some(&line[at + 1..])),
            None => (line, None),
        };
        let mut ends = self.ends_at.iter().flatten();
        let is_past_end = module.is_none() && ends.any(|end| (start..=address).contains(end));
        let is_inside = address - start < MAX_FUNCTION_BYTES && !is_past_end;
        is_inside.then_some(KernelFunction {
            start,
            name: std::str::from_utf8(name).ok()?,
            module: module.and_then(|module| std::str::from_utf8(module).ok()),
        })
    }

    /// Where `_text` or `_stext` is.
    pub fn address_of(&self, name: &str) -> Option<u64> {
        let at = STARTS.iter().position(|mark| *mark == name.as_bytes())?;
        self.loaded_at[at]
    }

    /// Whether no address is known.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }
}

/// Address, kind and the rest of a line that is a function's.
fn parse_line(line: &[u8]) -> Option<(u64, u8, &[u8])> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    let address = std::str::from_utf8(&line[..space]).ok()?;
    // Where addresses are hidden, they read as zero.
    let address = u64::from_str_radix(address, 16).ok()?;
    let (kind, rest) = line[space + 1..].split_first()?;
    let name = rest.strip_prefix(b" ")?;
    let is_code = matches!(kind, b't' | b'T' | b'w' | b'W') && !name.starts_with(PADDING);
    (address != 0 && is_code && !name.is_empty()).then_some((address, *kind, name))
}

fn line_at(text: &[u8], at: u32) -> &[u8] {
    let rest = text.get(at as usize..).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == b'\n');
    &rest[..end.unwrap_or(rest.len())]
}

/// A name that others may use ranks above a local one, and that above a weak one.
fn kind_rank(line: &[u8]) -> u8 {
    let binding = match line.first() {
        Some(b'T') => Binding::Global,
        Some(b't') => Binding::Local,
        _ => Binding::Weak,
    };
    rank(binding, true)
}

fn is_native(name: &[u8]) -> bool {
    !name.starts_with(OF_32_BITS)
}

fn name_of(line: &[u8]) -> &[u8] {
    let name = line.get(1..).unwrap_or_default();
    let end = name.iter().position(|byte| *byte == b'\t');
    &name[..end.unwrap_or(name.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLE: &[u8] = b"00000100 T early\n00900000 t late\t[ena]\n00000200 t middle\n\
        00000200 T alias\n00000210 d data\nx\n\xff\xff\n00000000 T hidden\n\
        00000300 T _etext\n";

    #[track_caller]
    fn check(address: u64, expected: Option<(&str, Option<&str>, u64)>) {
        let table = Kallsyms::parse(TABLE);
        let found = table.find(address);
        let found = found.map(|found| (found.name, found.module, found.start));
        assert_eq!(found, expected);
    }

    #[test]
    fn the_nearest_function_below() {
        check(0x50, None);
        check(0x100, Some(("early", None, 0x100)));
        check(0x1ff, Some(("early", None, 0x100)));
        check(0x215, Some(("alias", None, 0x200)));
        check(0x90_0010, Some(("late", Some("[ena]"), 0x90_0000)));
        check(0xa0_0000, None);
    }

    #[test]
    fn nothing_reaches_beyond_the_end_of_the_kernel() {
        check(0x2ff, Some(("alias", None, 0x200)));
        check(0x300, None);
        check(0x1000, None);
    }

    #[test]
    fn where_the_kernel_was_loaded() {
        let text = b"ffffffff81000000 T _stext\nffffffff81000000 T _text\n";
        let table = Kallsyms::parse(text);
        assert_eq!(table.address_of("_text"), Some(0xffff_ffff_8100_0000));
        assert_eq!(table.address_of("main"), None);
        let found = table.find(0xffff_ffff_8100_003f);
        assert_eq!(found.map(|found| found.name), Some("_stext"));
    }

    #[test]
    fn the_padding_before_a_function_is_none() {
        let table = Kallsyms::parse(b"100 t __pfx_one\n110 t one\n200 t __pfx_two\n210 t two\n");
        let name = |address| table.find(address).map(|found| found.name);
        assert_eq!(
            [0x100, 0x110, 0x1ff, 0x210].map(name),
            [None, Some("one"), Some("one"), Some("two")]
        );
    }

    #[test]
    fn system_calls_are_those_of_64_bits() {
        for text in [
            &b"100 T __ia32_sys_vfork\n100 T __x64_sys_vfork\n"[..],
            b"100 T __x64_sys_vfork\n100 T __ia32_sys_vfork\n",
        ] {
            let table = Kallsyms::parse(text);
            let name = table.find(0x100).map(|found| found.name);
            assert_eq!(name, Some("__x64_sys_vfork"));
        }
    }

    #[test]
    fn a_hidden_table_is_empty() {
        assert!(Kallsyms::parse(b"00000000 T a\n00000000 T b\n").is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(text in prop::collection::vec(any::<u8>(), 0..500), at: u64) {
            Kallsyms::parse(&text).find(at);
        }
    }
}
