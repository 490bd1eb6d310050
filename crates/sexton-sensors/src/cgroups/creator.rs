//! Who made a cgroup: the process, what it came from, and the unit that leads to.
//!
//! Names and numbers come with the event. Cgroups and units are looked up afterwards, so
//! a process that lived for less than a poll may be gone; the ones above it rarely are.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use sexton_bpf::prog::cgroups::{Ancestor, Event};
use sexton_host::Host;
use sexton_host::cgroup::MemoryHierarchy;
use sexton_host::process::{self, Place, Status};
use sexton_model::fact::task::Task;
use sexton_model::origin::Origin;
use sexton_model::text::escape;

/// How far up we follow the parents of a process.
const MAX_ANCESTORS: usize = 8;

/// Scopes of one poll whose requester is looked for: each costs some reads, and of a loop a
/// few tell as much as all.
const MAX_ASKED: usize = 64;

/// Who made a cgroup, as far as can be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Creator {
    /// Its number.
    pub(super) pid: u32,
    /// Its name, escaped.
    pub(super) comm: String,
    /// Its own cgroup; `vanished` when it was gone. `None` where numbers of processes
    /// mean something else to us than to the kernel.
    pub(super) cgroup: Option<String>,
    /// Its unit, or the nearest one above it.
    pub(super) unit: Option<String>,
    /// Those above it, nearest first.
    pub(super) ancestry: Vec<Task>,
}

/// Who asked systemd for a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requester {
    pub(super) pid: u32,
    pub(super) comm: String,
    pub(super) unit: String,
}

/// Looks creators up, each once. Made anew for every poll: numbers are used again.
pub(super) struct Creators<'h> {
    host: &'h Host,
    /// Whether `/proc` speaks of the same processes as the kernel.
    same_numbers: bool,
    known: HashMap<u32, Creator>,
    places: HashMap<u32, Option<Vec<u8>>>,
    /// Where the memory hierarchy is mounted, once that was looked for.
    mount: Option<Option<PathBuf>>,
    n_asked: usize,
}

impl<'h> Creators<'h> {
    pub(super) fn new(host: &'h Host, same_numbers: bool) -> Self {
        Self {
            host,
            same_numbers,
            known: HashMap::new(),
            places: HashMap::new(),
            mount: None,
            n_asked: 0,
        }
    }

    /// Who asked for a scope that systemd made: the first process in it, or the nearest
    /// above that which is in another unit. Only while something runs in it.
    pub(super) fn requester(&mut self, path: &[u8]) -> Option<Requester> {
        let own = Origin::of(path).host_unit()?.to_owned();
        if !self.same_numbers || !own.ends_with(".scope") || self.n_asked >= MAX_ASKED {
            return None;
        }
        self.n_asked += 1;
        let first = self.first_in(path)?;
        let name = Status::read(self.host, first).ok()?.name.into_bytes();
        let own_task = Ancestor {
            tgid: first,
            comm: name,
        };
        let mut chain = vec![own_task];
        chain.extend(self.parents_of(first));
        chain.into_iter().find_map(|task| {
            let place = self.place_of(task.tgid)?;
            let unit = Origin::of(&place).host_unit()?.to_owned();
            (unit != own).then(|| Requester {
                pid: task.tgid,
                comm: escape(&task.comm),
                unit: escape(unit.as_bytes()),
            })
        })
    }

    fn first_in(&mut self, path: &[u8]) -> Option<u32> {
        let host = self.host;
        let mount = self
            .mount
            .get_or_insert_with(|| MemoryHierarchy::find(host).ok().flatten()?.mount);
        let below = path.strip_prefix(b"/").unwrap_or(path);
        let directory = mount.as_ref()?.join(OsStr::from_bytes(below));
        let text = host.read_text(directory.join("cgroup.procs")).ok()?;
        text.lines().next()?.parse().ok()
    }

    /// Who made the cgroup that was born.
    pub(super) fn of(&mut self, event: &Event) -> Creator {
        if !self.known.contains_key(&event.tgid) {
            let creator = self.look_up(event);
            self.known.insert(event.tgid, creator);
        }
        Creator {
            // It may have executed another program since it was looked up.
            comm: escape(&event.comm),
            ..self.known[&event.tgid].clone()
        }
    }

    fn look_up(&mut self, event: &Event) -> Creator {
        let above = if event.ancestors.is_empty() && self.same_numbers {
            self.parents_of(event.tgid)
        } else {
            event.ancestors.clone()
        };
        let numbers = std::iter::once(event.tgid).chain(above.iter().map(|above| above.tgid));
        let unit = numbers
            .map(|pid| self.place_of(pid))
            .find_map(|place| Some(Origin::of(&place?).host_unit()?.to_owned()));
        let cgroup = self.same_numbers.then(|| {
            let own = self.place_of(event.tgid);
            own.map_or_else(|| "vanished".to_owned(), |path| escape(&path))
        });
        Creator {
            pid: event.tgid,
            comm: escape(&event.comm),
            cgroup,
            unit: unit.map(|unit| escape(unit.as_bytes())),
            ancestry: above.iter().map(task).collect(),
        }
    }

    /// The processes above one, as `/proc` tells now.
    fn parents_of(&self, pid: u32) -> Vec<Ancestor> {
        let mut above = Vec::new();
        let mut at = Status::read(self.host, pid).ok();
        while let Some(status) = at.take()
            && above.len() < MAX_ANCESTORS
        {
            let Ok(parent) = Status::read(self.host, status.parent) else {
                break;
            };
            above.push(Ancestor {
                tgid: status.parent,
                comm: parent.name.clone().into_bytes(),
            });
            at = Some(parent);
        }
        above
    }

    /// The cgroup of a process that tells its unit; `None` when it is gone.
    fn place_of(&mut self, pid: u32) -> Option<Vec<u8>> {
        if !self.same_numbers {
            return None;
        }
        let host = self.host;
        let place = self.places.entry(pid).or_insert_with(|| {
            let places = Place::read_all(host, pid).ok()?;
            Some(process::unit_place(&places)?.path.clone())
        });
        place.clone()
    }
}

fn task(ancestor: &Ancestor) -> Task {
    Task {
        comm: escape(&ancestor.comm),
        pid: ancestor.tgid,
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::{Path, PathBuf};

    use sexton_bpf::prog::cgroups::What;
    use sexton_host::{Entry, Root};

    use super::*;

    /// A node with three processes: an unplaced tool, its daemon, and the first one.
    struct ThreeProcesses;

    impl Root for ThreeProcesses {
        fn read(&self, path: &Path, _: u64) -> io::Result<Vec<u8>> {
            let text = match path.to_str().expect("plain") {
                "/proc/self/mountinfo" => "22 1 0:5 / /proc rw - proc proc rw\n",
                "/proc/30/status" => "Name:\trunc\nPPid:\t20\n",
                "/proc/30/cgroup" => "0::/\n",
                "/proc/20/status" => "Name:\tdocker\\nd\nPPid:\t1\n",
                "/proc/20/cgroup" => "4:memory:/\n0::/system.slice/docker.service\n",
                "/proc/1/status" => "Name:\tsystemd\nPPid:\t0\n",
                "/proc/1/cgroup" => "0::/init.scope\n",
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

    /// Expects the cgroup and the unit, and the processes above.
    type Expected<'a> = ([Option<&'a str>; 2], &'a str);

    fn check(tgid: u32, above: &[(u32, &str)], same_numbers: bool, expected: Expected<'_>) {
        let host = Host::new(Box::new(ThreeProcesses)).expect("a mount table");
        let ancestors = above.iter().map(|&(tgid, comm)| Ancestor {
            tgid,
            comm: comm.into(),
        });
        let event = Event {
            at_ns: 1,
            what: What::Born,
            id: 1,
            path: b"/x".to_vec(),
            tgid,
            comm: b"runc".to_vec(),
            ancestors: ancestors.collect(),
        };
        let mut creators = Creators::new(&host, same_numbers);
        let creator = creators.of(&event);
        let above = creator.ancestry.iter();
        let above = above.map(|task| format!("{}[{}]", task.comm, task.pid));
        let above: Vec<String> = above.collect();
        let found = [&creator.cgroup, &creator.unit].map(|found| found.as_deref());
        assert_eq!((found, above.join(" < ").as_str()), expected);
        assert_eq!((creator.pid, creator.comm.as_str()), (tgid, "runc"));
        assert_eq!(creators.of(&event), creator);
    }

    #[test]
    fn a_tool_leads_to_the_unit_of_its_daemon() {
        let ancestry = r"docker\nd[20] < systemd[1]";
        let found = [Some("/"), Some("docker.service")];
        check(30, &[], true, (found, ancestry));
    }

    #[test]
    fn one_that_vanished_leads_there_too() {
        let above = [(20, "dockerd"), (1, "systemd")];
        let unit = Some("docker.service");
        let ancestry = "dockerd[20] < systemd[1]";
        check(99, &above, true, ([Some("vanished"), unit], ancestry));
        check(99, &[], true, ([Some("vanished"), None], ""));
    }

    #[test]
    fn numbers_of_another_namespace_are_not_looked_up() {
        check(30, &[(20, "a\nb")], false, ([None, None], r"a\012b[20]"));
        check(30, &[], false, ([None, None], ""));
    }
}
