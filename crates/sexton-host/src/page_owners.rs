//! Which cgroups the pages of memory are charged to, page by page.
//!
//! `/proc/kpagecgroup` has a number for each page of memory: the inode of the cgroup it is
//! charged to, or where that is gone, of the nearest one above it that is still there.
//! `/proc/kpageflags` says what each page is. Nothing is locked, and the kernel lets others run
//! between any two pages, but there are many: a gigabyte has a quarter of a million.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use sexton_model::census::Pages;

use crate::{Host, HostError, clock};

/// Pages that are looked at before the time is checked: a quarter of a gigabyte, so that no
/// huge page is cut in two.
const CHUNK: u64 = 1 << 16;
/// How much longer it may take than the processor time it uses.
const PATIENCE: u32 = 5;
/// Bytes of a page's entry in both files.
const ENTRY: u64 = 8;

// Bits of `/proc/kpageflags` (include/uapi/linux/kernel-page-flags.h).
const LRU: u64 = 1 << 5;
const ANON: u64 = 1 << 12;
const SWAPBACKED: u64 = 1 << 14;
const TAIL: u64 = 1 << 16;
const UNEVICTABLE: u64 = 1 << 18;

/// What pages are charged to.
#[derive(Debug, Default)]
pub struct PageOwners {
    /// Pages on the kernel's lists, by the inode of their cgroup. Swap is not among them.
    pub by_inode: HashMap<u64, Pages>,
    /// Pages the node may have.
    pub n_pages: u64,
    /// Those that were looked at before time ran out, all over the memory.
    pub n_looked: u64,
}

impl PageOwners {
    /// Looks at all pages, or as many as time allows: processor time, and a few times that by
    /// the wall's clock, because others may want the core as well.
    pub fn scan(host: &Host, time: Duration) -> Result<Self, HostError> {
        let (owners, flags) = (host.proc("kpagecgroup")?, host.proc("kpageflags")?);
        let n_pages = last_page(host)?;
        let until = Instant::now() + time * PATIENCE;
        let used_up = clock::thread_cpu_time() + time;
        let mut scan = Self {
            n_pages,
            ..Self::default()
        };
        let n_chunks = n_pages.div_ceil(CHUNK);
        for chunk in scattered(n_chunks) {
            let first = chunk * CHUNK;
            let n = CHUNK.min(n_pages - first);
            let charged = entries(host, &owners, first, n)?;
            // Most of a large node's memory is not in use, or charged to no cgroup.
            if charged.iter().any(|inode| *inode != 0) {
                scan.count(&charged, &entries(host, &flags, first, n)?);
            }
            scan.n_looked += n;
            if clock::thread_cpu_time() >= used_up || Instant::now() >= until {
                break;
            }
        }
        Ok(scan)
    }

    /// Whether every page was looked at.
    pub fn is_whole(&self) -> bool {
        self.n_looked >= self.n_pages
    }

    /// The part of memory that was looked at, from 0 to 1.
    pub fn ratio(&self) -> f64 {
        self.n_looked as f64 / self.n_pages.max(1) as f64
    }

    fn count(&mut self, charged: &[u64], flags: &[u64]) {
        let mut head = (0, 0);
        // Neighbours often belong to the same cgroup.
        let (mut last, mut sum) = (0, Pages::default());
        for (inode, flags) in charged.iter().zip(flags) {
            // What follows the first page of a large one is charged as that is, but says
            // neither so nor what it is on every kernel.
            if flags & TAIL == 0 {
                head = (*inode, *flags);
            }
            let (inode, flags) = head;
            if inode == 0 || flags & LRU == 0 {
                continue;
            }
            if inode != last {
                *self.by_inode.entry(last).or_default() += std::mem::take(&mut sum);
                last = inode;
            }
            let kind = match flags {
                flags if flags & UNEVICTABLE != 0 => &mut sum.unevictable,
                flags if flags & ANON != 0 => &mut sum.anon,
                flags if flags & SWAPBACKED != 0 => &mut sum.shmem,
                _ => &mut sum.file,
            };
            *kind += 1;
        }
        *self.by_inode.entry(last).or_default() += sum;
        self.by_inode.remove(&0);
    }
}

/// The number after that of the last page, holes included.
fn last_page(host: &Host) -> Result<u64, HostError> {
    let path = host.proc("zoneinfo")?;
    let text = host.read_text(&path)?;
    let number = |line: &str, name: &str| -> Option<u64> {
        let rest = line.trim().strip_prefix(name)?;
        rest.trim_start_matches(':').trim().parse().ok()
    };
    let (mut spanned, mut last) = (0, 0);
    for line in text.lines() {
        if let Some(n) = number(line, "spanned") {
            spanned = n;
        }
        if let Some(first) = number(line, "start_pfn") {
            last = last.max(first + spanned);
        }
    }
    (last > 0)
        .then_some(last)
        .ok_or_else(|| HostError::Malformed {
            path,
            what: "it has no pages".into(),
        })
}

/// All numbers below `n`, far apart from each other: where time runs out, what was seen is from
/// all over.
fn scattered(n: u64) -> impl Iterator<Item = u64> {
    let mut step = (n as f64 * 0.618) as u64 | 1;
    while gcd(step, n) > 1 {
        step += 1;
    }
    (0..n).map(move |i| i * step % n)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Entries of some pages, fewer at the end of memory.
fn entries(host: &Host, path: &Path, first: u64, n: u64) -> Result<Vec<u64>, HostError> {
    let read = host
        .root()
        .read_at(path, first * ENTRY, (n * ENTRY) as usize);
    let bytes = read.map_err(|source| HostError::Read {
        path: path.to_owned(),
        source,
    })?;
    let words = bytes.as_chunks::<{ ENTRY as usize }>().0.iter();
    Ok(words.map(|word| u64::from_ne_bytes(*word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_by_owner_and_kind() {
        let mut scan = PageOwners::default();
        let charged = [7, 7, 7, 9, 0, 7, 0, 0, 9];
        let tail = TAIL;
        let flags = [
            LRU,
            LRU | ANON | SWAPBACKED,
            0,
            LRU | SWAPBACKED,
            LRU,
            LRU | UNEVICTABLE,
            tail,
            tail,
            LRU,
        ];
        scan.count(&charged, &flags);
        let of = |inode| {
            let pages = scan.by_inode.get(&inode).copied().unwrap_or_default();
            [pages.file, pages.anon, pages.shmem, pages.unevictable]
        };
        assert_eq!(of(7), [1, 1, 0, 3]);
        assert_eq!(of(9), [1, 0, 1, 0]);
        assert_eq!(scan.by_inode.len(), 2);
    }

    #[test]
    fn every_part_is_looked_at_once() {
        for n in [0, 1, 2, 3, 97, 100, 4096] {
            let mut all: Vec<u64> = scattered(n).collect();
            all.sort_unstable();
            assert_eq!(all, (0..n).collect::<Vec<_>>());
        }
        let first: Vec<u64> = scattered(100).take(3).collect();
        assert_eq!(first, [0, 61, 22]);
    }
}
