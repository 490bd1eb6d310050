//! What `/proc` says of one process.

use std::path::Path;

use sexton_model::moment::Moment;

use crate::{Host, HostError};

/// The inode number of the first PID namespace (`PROC_PID_INIT_INO` in
/// include/linux/proc_ns.h), which is part of the kernel's interface.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// Whether the numbers of processes mean the same here as to the kernel.
pub fn numbers_are_the_kernels(host: &Host) -> bool {
    let link = host
        .proc("self/ns/pid")
        .and_then(|path| host.read_link(path));
    link.is_ok_and(|link| link == Path::new(FIRST_NAMESPACE))
}

/// A process, as its `status` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its name, as the kernel escapes it.
    pub name: String,
    /// The process it comes from; 0 for the first.
    pub parent: u32,
}

impl Status {
    /// Reads it.
    pub fn read(host: &Host, pid: u32) -> Result<Self, HostError> {
        let path = host.proc(&format!("{pid}/status"))?;
        let text = host.read_text(&path)?;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::trim)
                .ok_or_else(|| missing(path.clone(), name))
        };
        let parent = field("PPid:")?;
        Ok(Self {
            name: field("Name:")?.to_owned(),
            parent: parent.parse().map_err(|_| HostError::Malformed {
                path: path.clone(),
                what: format!("PPid is {parent:?}"),
            })?,
        })
    }
}

/// When a process was started; `None` when it is gone or does not say. A number is given to another
/// process some time after one has ended, and that one was started later.
pub fn started(host: &Host, pid: u32) -> Option<Moment> {
    let stat = host.read_text(host.proc(&format!("{pid}/stat")).ok()?);
    started_of(&stat.ok()?, rustix::param::clock_ticks_per_second())
}

/// A line of `stat`: the name in brackets may hold any, and 19 fields are between it and the start.
fn started_of(stat: &str, ticks_per_second: u64) -> Option<Moment> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: u64 = fields.split(' ').nth(19)?.parse().ok()?;
    let ns = u128::from(ticks) * 1_000_000_000 / u128::from(ticks_per_second.max(1));
    Some(Moment::from_ns(u64::try_from(ns).ok()?))
}

/// Who a process is to itself: its number in its own PID namespace, and its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inside {
    /// Its number in the innermost PID namespace it is in.
    pub pid: u32,
    /// The user it acts as, as we number them.
    pub user: u32,
}

impl Inside {
    /// Reads it; `None` when the process is gone or does not say.
    pub fn read(host: &Host, pid: u32) -> Option<Self> {
        let text = host
            .read_text(host.proc(&format!("{pid}/status")).ok()?)
            .ok()?;
        Self::parse(&text)
    }

    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let pid = field("NSpid:")?.split_ascii_whitespace().next_back()?;
        let user = field("Uid:")?.split_ascii_whitespace().nth(1)?;
        Some(Self {
            pid: pid.parse().ok()?,
            user: user.parse().ok()?,
        })
    }
}

fn missing(path: std::path::PathBuf, field: &str) -> HostError {
    HostError::Malformed {
        path,
        what: format!("it has no {field}"),
    }
}

/// A process's place in one hierarchy of cgroups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The number of the hierarchy; 0 for cgroup v2.
    pub hierarchy: i32,
    /// The controllers of the hierarchy or its name: `memory`, `cpu,cpuacct`,
    /// `name=systemd`; empty for cgroup v2.
    pub controllers: String,
    /// The path below the root of the hierarchy.
    pub path: Vec<u8>,
}

impl Place {
    /// Every place of a process.
    pub fn read_all(host: &Host, pid: u32) -> Result<Vec<Self>, HostError> {
        Self::read_file(host, &format!("{pid}/cgroup"))
    }

    /// Every place of this process.
    pub fn read_own(host: &Host) -> Result<Vec<Self>, HostError> {
        Self::read_file(host, "self/cgroup")
    }

    fn read_file(host: &Host, below: &str) -> Result<Vec<Self>, HostError> {
        let path = host.proc(below)?;
        let bytes = host.read(&path)?;
        let lines = bytes.split(|&b| b == b'\n').filter(|line| !line.is_empty());
        lines
            .map(|line| {
                Self::parse(line).ok_or_else(|| HostError::Malformed {
                    path: path.clone(),
                    what: format!("a line is {:?}", String::from_utf8_lossy(line)),
                })
            })
            .collect()
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let mut parts = line.splitn(3, |&b| b == b':');
        let mut text = || std::str::from_utf8(parts.next()?).ok();
        Some(Self {
            hierarchy: text()?.parse().ok()?,
            controllers: text()?.to_owned(),
            path: parts.next()?.to_vec(),
        })
    }

    /// Whether this is the hierarchy of that controller, or of that name.
    pub fn is_of(&self, controller: &str) -> bool {
        self.controllers.split(',').any(|own| own == controller)
    }
}

/// The place that tells the unit of a process: that of systemd's own hierarchy, else
/// that in cgroup v2, else that of the memory controller. One that is the root tells
/// nothing while another does: a hierarchy may be there and unused.
pub fn unit_place(places: &[Place]) -> Option<&Place> {
    let of = |name: &str| places.iter().find(|place| place.is_of(name));
    let known = ["name=systemd", "", "memory"].map(of);
    let mut known = known.into_iter().flatten().peekable();
    let first = known.peek().copied();
    known.find(|place| place.path != b"/").or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &[u8], expected: Option<(i32, &str, &[u8])>) {
        let place = Place::parse(line);
        let shown = place
            .as_ref()
            .map(|place| (place.hierarchy, place.controllers.as_str(), &place.path[..]));
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_line_of_proc_cgroup() {
        check(b"0::/init.scope", Some((0, "", b"/init.scope")));
        check(b"4:cpu,cpuacct:/a:b", Some((4, "cpu,cpuacct", b"/a:b")));
        check(b"1:name=systemd:/\xff", Some((1, "name=systemd", b"/\xff")));
        check(b"x::/", None);
        check(b"0:", None);
        check(b"", None);
    }

    #[test]
    fn when_a_process_was_started() {
        let check = |stat: &str, expected: Option<u64>| {
            assert_eq!(
                started_of(stat, 100),
                expected.map(Moment::from_ns),
                "{stat}"
            );
        };
        let fields = "S 1 2 3 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0";
        check(&format!("7 (a) b) {fields} 250 9 9"), Some(2_500_000_000));
        check(&format!("7 (a) {fields}"), None);
        check("7 (a", None);
        let host = Host::live().expect("this node");
        let own = started(&host, std::process::id()).expect("this process");
        assert!(own <= crate::clock::now(), "{own:?}");
        assert_eq!(started(&host, u32::MAX), None);
    }

    #[test]
    fn a_process_in_a_namespace_of_its_own() {
        let status = "Name:\tx\nUid:\t0\t1000\t0\t0\nNSpid:\t4711\t12\t1\n";
        let inside = Inside { pid: 1, user: 1000 };
        assert_eq!(Inside::parse(status), Some(inside));
        assert_eq!(Inside::parse("Name:\tx\n"), None);
    }

    #[test]
    fn systemds_own_hierarchy_tells_the_unit() {
        let place = |line: &[u8]| Place::parse(line).expect("a line");
        let v2 = place(b"0::/v2");
        let memory = place(b"4:memory:/memory");
        let systemd = place(b"1:name=systemd:/systemd");
        let all = [v2.clone(), memory.clone(), systemd.clone()];
        assert_eq!(unit_place(&all), Some(&systemd));
        assert_eq!(unit_place(&[memory.clone(), v2.clone()]), Some(&v2));
        assert_eq!(unit_place(std::slice::from_ref(&memory)), Some(&memory));
        let unused = place(b"1:name=systemd:/");
        assert_eq!(unit_place(&[unused.clone(), v2.clone()]), Some(&v2));
        assert_eq!(unit_place(&[unused.clone(), place(b"0::/")]), Some(&unused));
        assert_eq!(unit_place(&[]), None);
    }
}
