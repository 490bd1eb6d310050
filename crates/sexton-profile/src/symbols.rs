//! Names of functions. Recordings of perf hold addresses only, so the importer asks its
//! caller, who can open files. What is in those files is read here.

pub mod demangle;
pub mod elf;
pub mod kallsyms;
pub mod perf_map;

use std::borrow::Cow;
use std::sync::Arc;

/// A place in code whose name is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The process it was seen in.
    pub pid: u32,
    /// The file it is in, as the recording names it; empty for the kernel itself.
    pub module: &'a str,
    /// What identifies the file's contents, where the recording says.
    pub build_id: Option<&'a [u8]>,
    /// The offset in the file; the address itself for the kernel and for code made at run time.
    pub address: u64,
    /// Whether it is the kernel's or one of its modules'.
    pub is_kernel: bool,
    /// Whether it is code made at run time, which only `/tmp/perf-PID.map` names.
    pub is_jit: bool,
}

/// A function that holds a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// What it is called.
    pub name: Arc<str>,
    /// Where it begins, counted as the place's address is. Samples of one function are one
    /// place: that is what graphs show, and what keeps recordings small.
    pub start: u64,
}

/// Who knows names of functions.
pub trait Symbols {
    /// The function that holds this place; `None` where it is not known. Asked once for
    /// each place.
    fn resolve(&mut self, place: &Place<'_>) -> Option<Function>;

    /// Hears that places will be asked for soon, so that it can begin to read what it needs
    /// for any of them.
    fn prepare(&mut self) {}

    /// Where a symbol of the kernel is by these names. The kernel may have been loaded
    /// elsewhere when it was recorded: what lies between is taken from every address that
    /// is asked for.
    fn kernel_symbol(&mut self, _name: &str) -> Option<u64> {
        None
    }
}

/// Knows no names.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoSymbols;

impl Symbols for NoSymbols {
    fn resolve(&mut self, _: &Place<'_>) -> Option<Function> {
        None
    }
}

/// Names by address: the function that begins at or before it.
#[derive(Debug, Default)]
pub struct AddressMap {
    /// Sorted by start once all are there.
    entries: Vec<Entry>,
    /// Each ends at a zero byte. Nobody asks for most of them, so they stay as they came.
    names: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u64,
    /// Exclusive.
    end: u64,
    name_at: u32,
    rank: u8,
}

/// A function that was found. Its name is read when it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    /// Where it begins.
    pub start: u64,
    names: &'a [u8],
    entry: Entry,
}

impl<'a> Found<'a> {
    /// What it is called.
    pub fn name(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(text(self.names, self.entry))
    }
}

/// Which of two functions that begin at the same place names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefer {
    /// As perf chooses: the higher rank, then fewer underscores in front, then the longer name.
    Best,
    /// The one that was added last.
    Last,
}

/// Names of one file take at most this much; what comes after is not known by name.
const MAX_NAME_BYTES: usize = 1 << 30;

/// A longer name is cut; without a limit a file whose names never end could hold us up for
/// hours.
const MAX_NAME_LEN: usize = 1 << 16;

impl AddressMap {
    /// No functions yet; the names of those to come are in this table.
    pub(crate) fn with_names(names: Vec<u8>) -> Self {
        Self {
            entries: Vec::new(),
            names,
        }
    }

    /// Adds a function; `end` is exclusive, and not after `start` when it is not known.
    pub fn add(&mut self, start: u64, end: u64, rank: u8, name: &str) {
        if self.names.len() + name.len() > MAX_NAME_BYTES {
            return;
        }
        let name_at = u32::try_from(self.names.len()).expect("it is below the limit");
        self.names.extend_from_slice(name.as_bytes());
        self.names.push(0);
        self.add_named_at(start, end, rank, name_at);
    }

    /// Adds a function whose name begins at this byte of the table of names. One without a
    /// name is left out.
    pub(crate) fn add_named_at(&mut self, start: u64, end: u64, rank: u8, name_at: u32) {
        if self.names.get(name_at as usize).is_some_and(|&b| b != 0) {
            self.entries.push(Entry {
                start,
                end,
                name_at,
                rank,
            });
        }
    }

    /// Sorts, keeps one function for each start, and lets a function without an end last
    /// until the next one.
    pub fn finish(&mut self, prefer: Prefer) {
        let names = std::mem::take(&mut self.names);
        self.entries.sort_by_key(|entry| entry.start);
        let mut kept: Vec<Entry> = Vec::with_capacity(self.entries.len());
        for entry in self.entries.drain(..) {
            match kept.last_mut() {
                Some(last) if last.start == entry.start => {
                    let is_better = merit(&names, entry) > merit(&names, *last);
                    if prefer == Prefer::Last || is_better {
                        *last = entry;
                    }
                }
                _ => kept.push(entry),
            }
        }
        let starts: Vec<u64> = kept.iter().skip(1).map(|entry| entry.start).collect();
        for (entry, next) in kept.iter_mut().zip(starts.into_iter().chain([u64::MAX])) {
            if entry.end <= entry.start {
                entry.end = next;
            }
        }
        self.entries = kept;
        self.names = names;
    }

    /// The function at this address.
    pub fn find(&self, address: u64) -> Option<Found<'_>> {
        let after = self.entries.partition_point(|entry| entry.start <= address);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        (address < entry.end).then(|| self.found(*entry))
    }

    /// Every function.
    pub fn iter(&self) -> impl Iterator<Item = Found<'_>> {
        self.entries.iter().map(|entry| self.found(*entry))
    }

    fn found(&self, entry: Entry) -> Found<'_> {
        Found {
            start: entry.start,
            names: &self.names,
            entry,
        }
    }

    /// How many functions are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn text(names: &[u8], entry: Entry) -> &[u8] {
    let rest = names.get(entry.name_at as usize..).unwrap_or(&[]);
    let rest = &rest[..rest.len().min(MAX_NAME_LEN)];
    &rest[..memchr::memchr(0, rest).unwrap_or(rest.len())]
}

/// What perf compares when two symbols begin at the same place.
fn merit(names: &[u8], entry: Entry) -> (u8, std::cmp::Reverse<usize>, usize) {
    let name = text(names, entry);
    let n_underscores = name.iter().take_while(|&&b| b == b'_').count();
    (entry.rank, std::cmp::Reverse(n_underscores), name.len())
}
