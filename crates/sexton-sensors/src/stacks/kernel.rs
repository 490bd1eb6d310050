//! Names of kernel addresses, from a table that is read once and kept small.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sexton_host::{Host, HostError};
use sexton_model::moment::Moment;
use sexton_model::stack::CodeKind;
use sexton_model::text::escape;

use super::place::Place;

/// What is not in the kernel's own text (modules, BPF programs) comes and goes. An address
/// there that was not seen before has the table read again, but not more often than this:
/// the kernel takes tens of milliseconds to write it. Where the table has a module's function
/// for it, another one is unlikely to have come into its place.
const READ_AGAIN: Duration = Duration::from_secs(60);
const READ_AGAIN_FOUND: Duration = Duration::from_secs(600);

/// Places that are kept; beyond that all are forgotten and looked up anew.
const MAX_KNOWN: usize = 1 << 14;

/// No function is longer. Beyond that an address lies in something that has no name.
const MAX_FUNCTION_BYTES: u64 = 1 << 20;

const KERNEL: &str = "[kernel]";

/// Names of kernel addresses.
#[derive(Debug)]
pub(super) struct Kernel {
    table: Table,
    read_at: Option<Moment>,
    known: HashMap<u64, Arc<Place>>,
    modules: HashMap<Box<str>, Arc<str>>,
}

impl Kernel {
    pub(super) fn new() -> Self {
        Self {
            table: Table::default(),
            read_at: None,
            known: HashMap::new(),
            modules: HashMap::new(),
        }
    }

    /// Whether the kernel hides its addresses from us. Known after the first lookup.
    pub(super) fn is_hidden(&self) -> bool {
        self.read_at.is_some() && self.table.starts.is_empty()
    }

    /// The function that an address lies in.
    pub(super) fn place(&mut self, host: &Host, address: u64, now: Moment) -> Arc<Place> {
        if let Some(known) = self.known.get(&address) {
            return Arc::clone(known);
        }
        let mut found = self.table.find(address);
        let age = match found {
            Some(found) if found.module.is_none() => None,
            Some(_) => Some(READ_AGAIN_FOUND),
            None => Some(READ_AGAIN),
        };
        let is_old = |age| self.read_at.is_none_or(|read| now.since(read) >= age);
        if age.is_some_and(is_old) {
            self.read_at = Some(now);
            self.known.clear();
            if let Ok(path) = host.proc("kallsyms")
                && let Ok(table) = Table::read(host, &path)
            {
                self.table = table;
            }
            found = self.table.find(address);
        }
        let place = Arc::new(match found {
            Some(found) => Place {
                kind: CodeKind::Kernel,
                symbol: Some(escape(found.name.as_bytes()).into()),
                module: Some(module(&mut self.modules, found.module.unwrap_or(KERNEL))),
                address: found.start,
            },
            None => Place {
                kind: CodeKind::Kernel,
                symbol: None,
                module: Some(module(&mut self.modules, KERNEL)),
                address,
            },
        });
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(address, Arc::clone(&place));
        place
    }
}

fn module(modules: &mut HashMap<Box<str>, Arc<str>>, name: &str) -> Arc<str> {
    if let Some(known) = modules.get(name) {
        return Arc::clone(known);
    }
    let text: Arc<str> = escape(name.as_bytes()).into();
    modules.insert(name.into(), Arc::clone(&text));
    text
}

/// The functions of `/proc/kallsyms`, by address.
#[derive(Debug, Default)]
struct Table {
    /// Sorted: where a function begins, and where its line is in `text`.
    starts: Vec<(u64, u32)>,
    /// Lines of `name` or `name\t[module]`.
    text: String,
}

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Function<'a> {
    start: u64,
    name: &'a str,
    /// With its brackets; `None` for the kernel itself.
    module: Option<&'a str>,
}

impl Table {
    /// Reads it line by line: the whole is twice as large as what is kept of it.
    fn read(host: &Host, path: &Path) -> Result<Self, HostError> {
        let mut table = Self::default();
        host.each_line(path, |line| table.add(line))?;
        table.finish();
        Ok(table)
    }

    /// Takes a line; what is none, or of no function, is passed over.
    fn add(&mut self, line: &[u8]) {
        let line = std::str::from_utf8(line).unwrap_or_default();
        let mut fields = line.splitn(3, ' ');
        let (Some(start), Some(kind), Some(name)) = (fields.next(), fields.next(), fields.next())
        else {
            return;
        };
        // Where addresses are hidden, they read as zero.
        let start = u64::from_str_radix(start, 16).unwrap_or(0);
        let is_code = start != 0 && matches!(kind, "t" | "T" | "w" | "W");
        let at = u32::try_from(self.text.len()).ok();
        if let Some(at) = at.filter(|_| is_code) {
            self.starts.push((start, at));
            self.text.push_str(name);
            self.text.push('\n');
        }
    }

    fn finish(&mut self) {
        // Of several names for one address the first stays first.
        self.starts.sort_by_key(|(start, _)| *start);
        self.starts.dedup_by_key(|(start, _)| *start);
        self.starts.shrink_to_fit();
        self.text.shrink_to_fit();
    }

    fn find(&self, address: u64) -> Option<Function<'_>> {
        let above = self.starts.partition_point(|(start, _)| *start <= address);
        let (start, at) = *self.starts.get(above.checked_sub(1)?)?;
        let line = self.text.get(at as usize..)?.lines().next()?;
        let (name, module) = match line.split_once('\t') {
            Some((name, module)) => (name, Some(module)),
            None => (line, None),
        };
        (address - start < MAX_FUNCTION_BYTES).then_some(Function {
            start,
            name,
            module,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"00000100 T early\n00900000 t late\t[ena]\n00000200 T middle\n\
        00000200 T alias\n00000210 d data\nx\n\xff\xff\n00000000 T hidden\n";

    fn parse(text: &[u8]) -> Table {
        let mut table = Table::default();
        let lines = text.split(|byte| *byte == b'\n');
        lines.for_each(|line| table.add(line));
        table.finish();
        table
    }

    #[track_caller]
    fn check(address: u64, expected: Option<(&str, Option<&str>, u64)>) {
        let table = parse(TABLE);
        let found = table.find(address);
        let found = found.map(|found| (found.name, found.module, found.start));
        assert_eq!(found, expected);
    }

    #[test]
    fn the_nearest_function_below() {
        check(0x50, None);
        check(0x100, Some(("early", None, 0x100)));
        check(0x1ff, Some(("early", None, 0x100)));
        check(0x215, Some(("middle", None, 0x200)));
        check(0x90_0010, Some(("late", Some("[ena]"), 0x90_0000)));
        check(0x80_0000, None);
    }

    #[test]
    fn a_hidden_table_is_empty() {
        assert!(parse(b"00000000 T a\n00000000 T b\n").starts.is_empty());
    }
}
