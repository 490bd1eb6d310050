//! Names of tasks, and where they come from: records of perf say numbers only.

use std::collections::HashMap;
use std::sync::Arc;

use super::record::What;
use crate::Host;
use crate::process::Place;

/// Tasks that are known; beyond that all are forgotten and looked up anew.
const MAX_TASKS: usize = 1 << 14;

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its process.
    pub pid: u32,
    /// The process that it comes from; 0 for the first one.
    pub parent: u32,
    /// Its name.
    pub comm: Arc<[u8]>,
    /// Tells one program of a process from the next that it executes, and from that of another
    /// process of the same number.
    pub program: u64,
    /// Its cgroup in the memory hierarchy, or where that is the root, in cgroup v2. `None` when
    /// it is not known, or was not asked for.
    pub cgroup: Option<Arc<[u8]>>,
}

/// Whether cgroups of tasks are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cgroups {
    /// They are not asked for.
    #[default]
    Unasked,
    /// Those that `/proc` shows: in cgroup v2 a task may start in another one than its parent.
    Shown,
    /// Those too that a task has from its parent, which in cgroup v1 every task has.
    Inherited,
}

/// The tasks of a node, as records and `/proc` tell.
#[derive(Debug, Default)]
pub struct Tasks {
    known: HashMap<u32, Task>,
    /// Gone, but what happened before that may still be told.
    exited: Vec<u32>,
    n_programs: u64,
    cgroups: Cgroups,
}

impl Tasks {
    /// Of which cgroups are known as well.
    pub fn with_cgroups(cgroups: Cgroups) -> Self {
        Self {
            cgroups,
            ..Self::default()
        }
    }

    /// Takes note of a task that was moved to another cgroup.
    pub fn moved(&mut self, host: &Host, tid: u32, cgroup: &[u8]) {
        self.get(host, tid);
        if let Some(task) = self.known.get_mut(&tid) {
            task.cgroup = Some(cgroup.into());
        }
    }

    /// Takes note of a record. Records must come in the order of time.
    pub fn note(&mut self, host: &Host, what: &What) {
        match what {
            What::Named {
                pid,
                tid,
                comm,
                by_exec,
            } => self.name(host, (*pid, *tid), comm, *by_exec),
            What::Forked {
                pid,
                tid,
                parent,
                parent_tid,
            } => self.fork(host, (*pid, *tid), (*parent, *parent_tid)),
            What::Exited { tid, .. } => self.exited.push(*tid),
            What::Sample(_) | What::Mapped { .. } | What::Made(_) => {}
        }
    }

    /// A task by its number; `None` when it is gone and was never seen.
    pub fn get(&mut self, host: &Host, tid: u32) -> Option<&Task> {
        if !self.known.contains_key(&tid) {
            let task = self.look_up(host, tid)?;
            self.insert(tid, task);
        }
        self.known.get(&tid)
    }

    /// The processes above one, nearest first, at most that many: number and name.
    pub fn above(&mut self, host: &Host, pid: u32, most: usize) -> Vec<(u32, Arc<[u8]>)> {
        let mut above = Vec::new();
        let mut at = pid;
        while above.len() < most {
            let Some(parent) = self.get(host, at).map(|task| task.parent) else {
                break;
            };
            let Some(task) = (parent != 0).then(|| self.get(host, parent)).flatten() else {
                break;
            };
            above.push((parent, Arc::clone(&task.comm)));
            at = parent;
        }
        above
    }

    /// Forgets the tasks that have exited: their numbers may be used again. For after all
    /// records of a drain have been seen.
    pub fn forget_exited(&mut self) {
        for tid in self.exited.drain(..) {
            self.known.remove(&tid);
        }
    }

    fn name(&mut self, host: &Host, (pid, tid): (u32, u32), comm: &[u8], by_exec: bool) {
        if by_exec {
            self.n_programs += 1;
        }
        let last = self.get(host, tid);
        let parent = last.map_or(0, |task| task.parent);
        let cgroup = last.and_then(|task| task.cgroup.clone());
        let program = match self.known.get(&tid) {
            Some(task) if !by_exec => task.program,
            _ => self.n_programs,
        };
        let task = Task {
            pid,
            parent,
            comm: comm.into(),
            program,
            cgroup,
        };
        self.insert(tid, task);
    }

    fn fork(&mut self, host: &Host, (pid, tid): (u32, u32), (parent, parent_tid): (u32, u32)) {
        // Of the number's last owner, which may have exited in the same drain.
        self.exited.retain(|exited| *exited != tid);
        self.n_programs += 1;
        let is_thread = pid == parent;
        let fresh = self.n_programs;
        let inherits = is_thread || self.cgroups == Cgroups::Inherited;
        let Some(from) = self.get(host, parent_tid) else {
            self.known.remove(&tid);
            return;
        };
        let task = Task {
            pid,
            parent: if is_thread { from.parent } else { parent },
            comm: Arc::clone(&from.comm),
            program: if is_thread { from.program } else { fresh },
            cgroup: from.cgroup.clone().filter(|_| inherits),
        };
        self.insert(tid, task);
    }

    fn insert(&mut self, tid: u32, task: Task) {
        if self.known.len() >= MAX_TASKS {
            self.known.clear();
        }
        self.known.insert(tid, task);
    }

    /// What `/proc` says of a task, which shows threads by their number too.
    fn look_up(&mut self, host: &Host, tid: u32) -> Option<Task> {
        let path = host.proc(&format!("{tid}/status")).ok()?;
        let text = host.read(path).ok()?;
        self.n_programs += 1;
        let mut task = parse(&text, self.n_programs)?;
        if self.cgroups != Cgroups::Unasked {
            task.cgroup = home(&Place::read_all(host, tid).unwrap_or_default());
        }
        Some(task)
    }
}

/// The cgroup that says most: that of the memory controller, or at its root that in v2.
fn home(places: &[Place]) -> Option<Arc<[u8]>> {
    let of = |name: &str| places.iter().find(|place| place.is_of(name));
    let memory = of("memory").filter(|place| place.path != b"/");
    let home = memory.or_else(|| of("")).or_else(|| of("memory"))?;
    Some(home.path.as_slice().into())
}

fn parse(status: &[u8], program: u64) -> Option<Task> {
    let field = |name: &[u8]| {
        let mut lines = status.split(|&b| b == b'\n');
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(b":\t"))
    };
    let number = |name| std::str::from_utf8(field(name)?).ok()?.trim().parse().ok();
    Some(Task {
        pid: number(b"Tgid")?,
        parent: number(b"PPid")?,
        comm: field(b"Name")?.into(),
        program,
        cgroup: None,
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::{Entry, Root};

    /// A node with one process, and its parent.
    struct Two;

    impl Root for Two {
        fn read(&self, path: &Path, _: u64) -> io::Result<Vec<u8>> {
            let text = match path.to_str().expect("plain") {
                "/proc/self/mountinfo" => "22 1 0:5 / /proc rw - proc proc rw\n",
                "/proc/20/status" => "Name:\tdockerd\nTgid:\t20\nPid:\t20\nPPid:\t1\n",
                "/proc/20/cgroup" => "4:memory:/system.slice/docker.service\n",
                "/proc/1/status" => "Name:\tsystemd\nTgid:\t1\nPid:\t1\nPPid:\t0\n",
                _ => return Err(io::ErrorKind::NotFound.into()),
            };
            Ok(text.into())
        }
        fn list(&self, _: &Path) -> io::Result<Vec<Entry>> {
            Err(io::ErrorKind::NotFound.into())
        }
        fn read_link(&self, _: &Path) -> io::Result<PathBuf> {
            Err(io::ErrorKind::NotFound.into())
        }
        fn is_live(&self) -> bool {
            false
        }
    }

    fn forked(pid: u32, tid: u32, parent: u32, parent_tid: u32) -> What {
        What::Forked {
            pid,
            tid,
            parent,
            parent_tid,
        }
    }

    fn named(pid: u32, comm: &str) -> What {
        What::Named {
            pid,
            tid: pid,
            comm: comm.into(),
            by_exec: true,
        }
    }

    #[test]
    fn one_that_lived_between_two_drains_is_known_with_all_above_it() {
        let host = Host::new(Box::new(Two)).expect("a mount table");
        let mut tasks = Tasks::default();
        let story = [
            forked(30, 30, 20, 20),
            named(30, "runc"),
            forked(30, 31, 30, 30),
            forked(32, 32, 30, 31),
            What::Exited { pid: 30, tid: 30 },
        ];
        for what in &story {
            tasks.note(&host, what);
        }
        let comm = |tasks: &mut Tasks, tid| tasks.get(&host, tid).map(|task| task.comm.to_vec());
        assert_eq!(comm(&mut tasks, 32), Some(b"runc".to_vec()));
        let above = tasks.above(&host, 32, 8);
        let shown: Vec<(u32, &[u8])> = above.iter().map(|(pid, comm)| (*pid, &comm[..])).collect();
        assert_eq!(
            shown,
            [(30, &b"runc"[..]), (20, b"dockerd"), (1, b"systemd")]
        );
        let programs = [30, 31, 32].map(|tid| tasks.get(&host, tid).map(|task| task.program));
        assert_eq!(programs[0], programs[1]);
        assert_ne!(programs[1], programs[2]);
        tasks.forget_exited();
        assert_eq!(comm(&mut tasks, 30), None);
        assert_eq!(comm(&mut tasks, 32), Some(b"runc".to_vec()));
    }

    #[test]
    fn a_cgroup_is_inherited_until_a_task_is_moved() {
        let check = |cgroups, expected: [Option<&str>; 3]| {
            let host = Host::new(Box::new(Two)).expect("a mount table");
            let mut tasks = Tasks::with_cgroups(cgroups);
            tasks.note(&host, &forked(30, 30, 20, 20));
            tasks.note(&host, &named(30, "docker"));
            tasks.note(&host, &forked(31, 31, 30, 30));
            tasks.moved(&host, 31, b"/docker/a");
            let found = [20, 30, 31].map(|tid| {
                let cgroup = tasks.get(&host, tid)?.cgroup.clone()?;
                Some(String::from_utf8_lossy(&cgroup).into_owned())
            });
            assert_eq!(found.each_ref().map(Option::as_deref), expected);
        };
        let unit = Some("/system.slice/docker.service");
        check(Cgroups::Inherited, [unit, unit, Some("/docker/a")]);
        check(Cgroups::Shown, [unit, None, Some("/docker/a")]);
    }

    #[test]
    fn a_number_that_is_used_again_in_the_same_drain_is_the_new_task() {
        let host = Host::new(Box::new(Two)).expect("a mount table");
        let mut tasks = Tasks::default();
        let story = [
            forked(30, 30, 20, 20),
            What::Exited { pid: 30, tid: 30 },
            forked(30, 30, 1, 1),
        ];
        for what in &story {
            tasks.note(&host, what);
        }
        tasks.forget_exited();
        let parent = tasks.get(&host, 30).map(|task| task.parent);
        assert_eq!(parent, Some(1));
    }
}
