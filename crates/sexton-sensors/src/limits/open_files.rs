//! Open files of processes: the process that is nearest to its limit, and inotify instances and
//! watches of each user.
//!
//! The kernel keeps these sums to itself, so the open files of processes are looked through, for
//! no longer than a look may take; what is left is looked at next time. A child that has an
//! instance under the number that its parent has one under got it from there: it counts once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use sexton_host::{Entry, Host};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};

use super::Usage;
use super::node::number;
use crate::effort::Effort;
use crate::tasks;

/// Open files of one process that are looked at.
const MAX_FILES: usize = 4_096;

/// A pass through all processes begins this long after the one before.
const EVERY: Duration = Duration::from_secs(60);

/// What a link to an instance says.
const INSTANCE: &str = "anon_inode:inotify";

const INSTANCES: &str = "fs.inotify.max_user_instances";
const WATCHES: &str = "fs.inotify.max_user_watches";

const FILES: &str = "RLIMIT_NOFILE";

/// A process with fewer open files is near no limit that a program can live with.
const FEW_FILES: usize = 100;

/// The process nearest to its limit is told of from this part of it on.
const TOLD_FROM: f64 = 0.5;

/// A pass through all processes, and when it may go on.
#[derive(Default)]
pub(super) struct OpenFiles {
    left: Vec<u32>,
    /// The process that is nearest to its limit, so far.
    nearest: Option<(u32, Usage)>,
    /// Who has an instance under which number.
    holders: BTreeSet<(u32, u64)>,
    users: BTreeMap<u32, Counts>,
    began: Option<Moment>,
    rests: Option<(Moment, Duration)>,
}

/// Of one user. Watches are at least as many: a look may end before all are counted.
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
struct Counts {
    instances: u64,
    watches: u64,
}

/// Who a process is, as its `status` says.
#[derive(Debug, PartialEq, Eq)]
struct Owner {
    parent: u32,
    user: u32,
}

impl OpenFiles {
    pub(super) fn poll(&mut self, host: &Host, out: &mut Sink) {
        let now = out.now();
        let is_early = |(at, rest): (Moment, Duration)| now.since(at) < rest;
        if !host.is_live() || self.rests.is_some_and(is_early) {
            return;
        }
        let effort = Effort::begin();
        if self.left.is_empty() {
            if self.began.is_some_and(|at| now.since(at) < EVERY) {
                return;
            }
            self.began = Some(now);
            self.holders.clear();
            self.users.clear();
            self.nearest = None;
            // Parents come before most of their children; the last is taken first.
            self.left = tasks::pids(host).unwrap_or_default();
            self.left.reverse();
        }
        while let Some(pid) = self.left.pop() {
            self.count(host, pid, &effort);
            if effort.is_over() {
                break;
            }
        }
        self.rests = Some((now, effort.rest()));
        if self.left.is_empty() {
            self.tell(host, out);
        }
    }

    fn count(&mut self, host: &Host, pid: u32, effort: &Effort) {
        let Ok(folder) = host.proc(&format!("{pid}/fd")) else {
            return;
        };
        let files = host.list(&folder).unwrap_or_default();
        self.compare(host, pid, files.len());
        let instances = instances_of(host, &folder, &files);
        if instances.is_empty() {
            return;
        }
        let status = host.proc(&format!("{pid}/status"));
        let status = status.and_then(|path| host.read_text(path));
        let Some(owner) = status.ok().as_deref().and_then(owner) else {
            return;
        };
        for file in instances {
            self.holders.insert((pid, file));
            if self.holders.contains(&(owner.parent, file)) {
                continue;
            }
            let counts = self.users.entry(owner.user).or_default();
            counts.instances += 1;
            counts.watches += watches_of(host, pid, file, effort);
        }
    }

    fn compare(&mut self, host: &Host, pid: u32, n_files: usize) {
        if n_files < FEW_FILES {
            return;
        }
        let limits = host.proc(&format!("{pid}/limits"));
        let limits = limits.and_then(|path| host.read_text(path));
        let Some(most) = limits.ok().as_deref().and_then(most_files) else {
            return;
        };
        let usage = Usage {
            used: n_files as u64,
            most,
            hits: None,
        };
        let is_nearer = |(_, other): (u32, Usage)| usage.ratio() > other.ratio();
        if usage.ratio() >= TOLD_FROM && self.nearest.is_none_or(is_nearer) {
            self.nearest = Some((pid, usage));
        }
    }

    fn tell(&self, host: &Host, out: &mut Sink) {
        if let Some((pid, usage)) = self.nearest
            && let Some(comm) = tasks::comm(host, pid)
        {
            let name = format!("{FILES} pid {pid} {comm}");
            usage.tell(&Subject::new(SubjectKind::Limit, name), out);
        }
        self.tell_inotify(host, out);
    }

    fn tell_inotify(&self, host: &Host, out: &mut Sink) {
        type Count = fn(&Counts) -> u64;
        let limits: [(&str, Count); 2] = [
            (INSTANCES, |counts| counts.instances),
            (WATCHES, |counts| counts.watches),
        ];
        for (setting, count) in limits {
            let file = format!("sys/{}", setting.replace('.', "/"));
            // A kernel without inotify has no limit.
            let Ok(Some(most)) = number(host, &file) else {
                continue;
            };
            // The nearest to it: one for all is enough, as each user has the same limit.
            let users = self.users.iter();
            let Some((user, counts)) = users.max_by_key(|(_, counts)| count(counts)) else {
                continue;
            };
            let usage = Usage {
                used: count(counts),
                most,
                hits: None,
            };
            let name = format!("{setting} user {user}");
            usage.tell(&Subject::new(SubjectKind::Limit, name), out);
        }
    }
}

/// The numbers under which a process has instances; none of one that is gone.
fn instances_of(host: &Host, folder: &Path, files: &[Entry]) -> Vec<u64> {
    let is_instance = |file: &str| {
        let link = host.read_link(folder.join(file));
        link.is_ok_and(|link| link.to_str() == Some(INSTANCE))
    };
    files
        .iter()
        .take(MAX_FILES)
        .filter_map(|file| file.name.to_str())
        .filter(|file| is_instance(file))
        .filter_map(|file| file.parse().ok())
        .collect()
}

/// Watches of one instance: a line each.
fn watches_of(host: &Host, pid: u32, file: u64, effort: &Effort) -> u64 {
    let Ok(path) = host.proc(&format!("{pid}/fdinfo/{file}")) else {
        return 0;
    };
    let mut n = 0;
    // It ends early where there are more lines than a look has time for.
    let _ = host.each_line_while(path, |line| {
        n += u64::from(line.starts_with(b"inotify "));
        !(n % 1_024 == 1_023 && effort.is_over())
    });
    n
}

/// How many files a process may have open: its soft limit.
fn most_files(limits: &str) -> Option<u64> {
    let mut lines = limits.lines();
    let rest = lines.find_map(|line| line.strip_prefix("Max open files"))?;
    // `unlimited` is no limit to be near to.
    let most = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(most).filter(|most| *most > 0)
}

/// The parent of a process, and the user whose limits count for it.
fn owner(status: &str) -> Option<Owner> {
    let field = |name: &str, n: usize| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().nth(n)?.parse().ok()
    };
    Some(Owner {
        parent: field("PPid:", 0)?,
        // Real, effective, saved, and that of files.
        user: field("Uid:", 1)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_user_counts() {
        let status = "Name:\ta\nPPid:\t7\nUid:\t1000\t0\t0\t0\nGid:\t1\t1\t1\t1\n";
        let expected = Owner { parent: 7, user: 0 };
        assert_eq!(owner(status), Some(expected));
        assert_eq!(owner("Name:\ta\nUid:\t1000\n"), None);
    }

    #[test]
    fn the_soft_limit_of_open_files() {
        let check = |line: &str, expected| {
            let head =
                "Limit                     Soft Limit           Hard Limit           Units\n";
            assert_eq!(most_files(&format!("{head}{line}\n")), expected, "{line}");
        };
        let line = "Max open files            1024                 524288               files";
        check(line, Some(1024));
        check(
            "Max open files            unlimited            unlimited            files",
            None,
        );
        check(
            "Max open files            0                    0                    files",
            None,
        );
        check(
            "Max processes             7                    7                    processes",
            None,
        );
        check("Max open files", None);
    }
}
