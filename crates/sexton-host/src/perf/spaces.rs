//! Which code processes have mapped, as records tell while it happens: a process that exits
//! within milliseconds is gone before `/proc` can be asked.

use std::collections::HashMap;
use std::sync::Arc;

use super::record::{Record, What};
use crate::code::Mapping;

/// Processes that are kept; beyond that the older half is forgotten. `/proc` knows those that
/// still run.
const MAX_SPACES: usize = 4096;
/// Mappings of all of them.
const MAX_MAPPINGS: usize = 1 << 15;
/// Mappings of one program.
const MAX_OF_ONE: usize = 1024;
/// Processes above one that are looked for.
const MAX_ABOVE: usize = 4;

/// The memory of processes that started, or executed a program, since records are taken.
#[derive(Debug, Default)]
pub struct Spaces {
    /// The programs of a process in the order of time; only the last one is kept from one
    /// [`Self::forget_exited`] to the next.
    by_pid: HashMap<u32, Vec<Space>>,
    /// Processes of which there is something to forget.
    stale: Vec<u32>,
}

/// The memory of one program of a process.
#[derive(Debug, Clone)]
pub struct Space {
    since_ns: u64,
    parent: u32,
    n_threads: u32,
    /// It has been forked from this process, which is older than the records, so its first
    /// mappings are those of that process.
    pub base: Option<u32>,
    /// What it has mapped since, sorted and without overlaps.
    pub mappings: Arc<Vec<Mapping>>,
}

/// What is known of a process at a moment.
#[derive(Debug)]
pub enum Known<'a> {
    /// The memory that it had.
    Space(&'a Space),
    /// It ran another program, of which no record tells and `/proc` no longer does.
    Replaced,
    /// No record tells of it: it is older, and `/proc` tells.
    Older,
}

impl Spaces {
    /// Takes note of a record. Records must come in the order of time.
    pub fn note(&mut self, record: &Record) {
        match &record.what {
            What::Forked {
                pid,
                tid: _,
                parent,
                parent_tid: _,
            } if pid == parent => {
                if let Some(space) = self.last_mut(*pid) {
                    space.n_threads += 1;
                }
            }
            What::Forked { pid, parent, .. } => self.fork(record.at_ns, *pid, *parent),
            What::Named {
                pid, by_exec: true, ..
            } => self.execute(record.at_ns, *pid),
            What::Mapped { pid, mapping } => self.map(*pid, mapping),
            What::Exited { pid, .. } => self.exit(*pid),
            What::Named { .. } | What::Sample(_) | What::Made(_) => {}
        }
    }

    /// The memory of a process at a moment.
    pub fn at(&self, pid: u32, at_ns: u64) -> Known<'_> {
        let Some(spaces) = self.by_pid.get(&pid) else {
            return Known::Older;
        };
        let begun = spaces.iter().rev().find(|space| space.since_ns <= at_ns);
        begun.map_or(Known::Replaced, Known::Space)
    }

    /// Whether records tell of a process, so that what `/proc` says of it may be of another
    /// program than it had before.
    pub fn has(&self, pid: u32) -> bool {
        self.by_pid.contains_key(&pid)
    }

    /// The processes above one, nearest first, as far as records tell.
    pub fn above(&self, pid: u32) -> Vec<u32> {
        let parent = |pid: &u32| Some(self.by_pid.get(pid)?.last()?.parent);
        std::iter::successors(parent(&pid), parent)
            .take(MAX_ABOVE)
            .collect()
    }

    /// Forgets processes that have exited and programs that were replaced, and returns the
    /// former. For after all samples up to the last record have been named.
    pub fn forget_exited(&mut self) -> Vec<u32> {
        let mut exited = Vec::new();
        for pid in std::mem::take(&mut self.stale) {
            let Some(spaces) = self.by_pid.get_mut(&pid) else {
                continue;
            };
            spaces.drain(..spaces.len().saturating_sub(1));
            if spaces.last().is_none_or(|space| space.n_threads == 0) {
                self.by_pid.remove(&pid);
                exited.push(pid);
            }
        }
        self.make_room();
        exited
    }

    /// Forgets everything: records were lost, and with them perhaps that a process executed
    /// another program.
    pub fn forget_all(&mut self) {
        *self = Self::default();
    }

    fn last_mut(&mut self, pid: u32) -> Option<&mut Space> {
        self.by_pid.get_mut(&pid)?.last_mut()
    }

    fn push(&mut self, pid: u32, space: Space) {
        let spaces = self.by_pid.entry(pid).or_default();
        if !spaces.is_empty() {
            self.stale.push(pid);
        }
        spaces.push(space);
    }

    fn fork(&mut self, at_ns: u64, pid: u32, parent: u32) {
        let (base, mappings) = match self.last_mut(parent) {
            Some(from) => (from.base, Arc::clone(&from.mappings)),
            None => (Some(parent), Arc::default()),
        };
        let space = Space {
            since_ns: at_ns,
            parent,
            n_threads: 1,
            base,
            mappings,
        };
        self.push(pid, space);
    }

    fn execute(&mut self, at_ns: u64, pid: u32) {
        let space = Space {
            since_ns: at_ns,
            parent: self.last_mut(pid).map_or(0, |last| last.parent),
            // All other threads end by it.
            n_threads: 1,
            base: None,
            mappings: Arc::default(),
        };
        self.push(pid, space);
    }

    fn map(&mut self, pid: u32, mapping: &Mapping) {
        let Some(space) = self.last_mut(pid) else {
            return;
        };
        let mappings = Arc::make_mut(&mut space.mappings);
        // Nothing tells what was unmapped before.
        mappings.retain(|old| old.end <= mapping.start || mapping.end <= old.start);
        if mappings.len() < MAX_OF_ONE {
            let i = mappings.partition_point(|old| old.start < mapping.start);
            mappings.insert(i, mapping.clone());
        }
    }

    fn exit(&mut self, pid: u32) {
        if let Some(space) = self.last_mut(pid) {
            space.n_threads = space.n_threads.saturating_sub(1);
            if space.n_threads == 0 {
                self.stale.push(pid);
            }
        }
    }

    fn make_room(&mut self) {
        let spaces = || self.by_pid.values().flatten();
        let n_mappings: usize = spaces().map(|space| space.mappings.len()).sum();
        if self.by_pid.len() <= MAX_SPACES && n_mappings <= MAX_MAPPINGS {
            return;
        }
        let mut begun: Vec<u64> = spaces().map(|space| space.since_ns).collect();
        begun.sort_unstable();
        let middle = begun[begun.len() / 2];
        self.by_pid
            .retain(|_, spaces| spaces.last().is_some_and(|space| space.since_ns > middle));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at_ns: u64, what: What) -> Record {
        Record {
            at_ns,
            cpu: 0,
            what,
        }
    }

    fn forked(pid: u32, tid: u32, parent: u32) -> What {
        What::Forked {
            pid,
            tid,
            parent,
            parent_tid: parent,
        }
    }

    fn executed(pid: u32) -> What {
        What::Named {
            pid,
            tid: pid,
            comm: b"a".to_vec(),
            by_exec: true,
        }
    }

    fn mapped(pid: u32, start: u64, end: u64) -> What {
        let mapping = Mapping {
            start,
            end,
            offset: 0,
            inode: 1,
            path: b"/a".to_vec(),
            is_deleted: false,
        };
        What::Mapped { pid, mapping }
    }

    fn told(story: Vec<(u64, What)>) -> Spaces {
        let mut spaces = Spaces::default();
        for (at_ns, what) in story {
            spaces.note(&record(at_ns, what));
        }
        spaces
    }

    #[track_caller]
    fn check(spaces: &Spaces, (pid, at_ns): (u32, u64), base: Option<u32>, starts: &[u64]) {
        let Known::Space(space) = spaces.at(pid, at_ns) else {
            panic!("{pid} at {at_ns} is not known");
        };
        let found: Vec<u64> = space.mappings.iter().map(|map| map.start).collect();
        assert_eq!((space.base, &found[..]), (base, starts));
    }

    #[test]
    fn each_moment_has_its_program() {
        let mut spaces = told(vec![
            (10, forked(5, 5, 1)),
            (20, executed(5)),
            (21, mapped(5, 0x2000, 0x3000)),
            (22, mapped(5, 0x1000, 0x1800)),
            (30, forked(6, 6, 5)),
            (31, mapped(6, 0x2800, 0x4000)),
            (40, What::Exited { pid: 5, tid: 5 }),
            (50, forked(5, 5, 1)),
        ]);
        check(&spaces, (5, 15), Some(1), &[]);
        check(&spaces, (5, 25), None, &[0x1000, 0x2000]);
        check(&spaces, (6, 35), None, &[0x1000, 0x2800]);
        check(&spaces, (5, 55), Some(1), &[]);
        assert!(matches!(spaces.at(5, 9), Known::Replaced));
        assert!(matches!(spaces.at(1, 9), Known::Older));
        assert_eq!(spaces.above(6), [5, 1]);
        assert!(spaces.forget_exited().is_empty());
        // Its number is used again; the child keeps what it has from the one before.
        assert!(matches!(spaces.at(5, 25), Known::Replaced));
        check(&spaces, (6, 60), None, &[0x1000, 0x2800]);
    }

    #[test]
    fn a_process_ends_with_its_last_thread() {
        let mut spaces = told(vec![
            (1, forked(5, 5, 1)),
            (2, forked(5, 7, 5)),
            (3, What::Exited { pid: 5, tid: 5 }),
        ]);
        assert!(spaces.forget_exited().is_empty());
        spaces.note(&record(4, What::Exited { pid: 5, tid: 7 }));
        assert_eq!(spaces.forget_exited(), [5]);
        assert!(!spaces.has(5));
    }

    #[test]
    fn memory_is_bounded() {
        let mut spaces = Spaces::default();
        for i in 0..3 * MAX_SPACES as u32 {
            spaces.note(&record(i.into(), forked(i + 2, i + 2, 1)));
            spaces.note(&record(i.into(), executed(i + 2)));
            for j in 0..u64::from(i % 30) {
                spaces.note(&record(i.into(), mapped(i + 2, j * 16, j * 16 + 16)));
            }
            spaces.forget_exited();
            let n = spaces.by_pid.values().flatten();
            let n: usize = n.map(|space| space.mappings.len()).sum();
            assert!(spaces.by_pid.len() <= MAX_SPACES && n <= MAX_MAPPINGS);
        }
        assert!(spaces.has(3 * MAX_SPACES as u32 + 1), "the newest is there");
    }
}
