//! Where events come from: a BPF program on three tracepoints, or the tracepoints themselves
//! through perf where no program can be loaded.

use std::io;

use sexton_bpf::prog::cgroups::{Ancestor, Event, LAYOUT, Tally, Tracepoints, Watch, What};
use sexton_host::perf::{self, Ask, Point, Tasks};
use sexton_host::tracepoint::{Field, Tracefs, Tracepoint};
use sexton_host::{Host, HostError, machine};
use sexton_model::gap::{Gap, Why};

use super::NAME;
use crate::bpf;

/// Names of tasks that have none here: gone before they were asked, or of another PID namespace.
const EXITED: &[u8] = b"[exited]";
const OUTSIDE: &[u8] = b"[outside]";

/// How far up the parents of a creator are followed.
const MAX_ANCESTORS: usize = 8;

/// Room for the records of all cores, and the least and the most of one. A birth takes two
/// hundred bytes, and so does the start of the process that makes it.
const RINGS_BYTES: usize = 8 << 20;
const RING_BYTES: std::ops::RangeInclusive<usize> = 1 << 16..=1 << 19;

/// The three tracepoints, as tracefs describes them.
pub(super) struct Described {
    mkdir: Tracepoint,
    rmdir: Tracepoint,
    release: Tracepoint,
}

impl Described {
    pub(super) fn read(host: &Host) -> Result<Self, Gap> {
        let tracefs = Tracefs::open(host).map_err(|error| no_tracepoint(&error))?;
        let of = |name: &str| {
            let found = tracefs.tracepoint(host, name);
            found.map_err(|error| no_tracepoint(&error))
        };
        Ok(Self {
            mkdir: of("cgroup/cgroup_mkdir")?,
            rmdir: of("cgroup/cgroup_rmdir")?,
            release: of("cgroup/cgroup_release")?,
        })
    }

    /// Their numbers, if they are as the BPF program expects them.
    fn as_the_program_knows(&self) -> Result<Tracepoints, Gap> {
        let all = [
            ("cgroup_mkdir", &self.mkdir),
            ("cgroup_rmdir", &self.rmdir),
            ("cgroup_release", &self.release),
        ];
        for (name, tracepoint) in all {
            check_layout(name, tracepoint)?;
        }
        Ok(Tracepoints {
            mkdir: self.mkdir.id,
            rmdir: self.rmdir.id,
            release: self.release.id,
        })
    }
}

fn check_layout(name: &str, tracepoint: &Tracepoint) -> Result<(), Gap> {
    for (field, offset, size) in LAYOUT {
        let found = tracepoint.field(field);
        if found.is_none_or(|known| (known.offset, known.size) != (offset, size)) {
            let text = format!("this kernel's tracepoint {name} has another layout than ours");
            return Err(Gap::new(NAME, Why::Unsupported, text));
        }
    }
    Ok(())
}

fn no_tracepoint(error: &HostError) -> Gap {
    let gap = Gap::new(NAME, error.why(), error.chain());
    match error {
        HostError::NotMounted(_) => gap.with_remedy("mount -t tracefs tracefs /sys/kernel/tracing"),
        _ if error.why() == Why::Denied => gap.with_remedy("run as root: sudo sexton doctor"),
        _ => gap,
    }
}

/// Something that tells of cgroups.
pub(super) enum Source {
    Bpf(Box<Watch>),
    Perf(Box<ByPerf>),
}

impl Source {
    /// The best source that works here, or why there is none.
    pub(super) fn open(host: &Host, root: i32, described: &Described) -> Result<Self, Gap> {
        match load(host, root, described) {
            Ok(watch) => Ok(Self::Bpf(Box::new(watch))),
            Err(gap) => ByPerf::open(host, root, described, gap)
                .map(Box::new)
                .map(Self::Perf),
        }
    }

    /// Why events come through perf, if they do.
    pub(super) fn instead_of_bpf(&self) -> Option<&Gap> {
        match self {
            Self::Bpf(_) => None,
            Self::Perf(perf) => Some(&perf.instead),
        }
    }

    /// Hands over what has happened; returns how many events made no sense.
    pub(super) fn drain(&mut self, host: &Host, most: usize, mut take: impl FnMut(Event)) -> u64 {
        match self {
            Self::Bpf(watch) => watch.drain(most, take),
            Self::Perf(perf) => perf.drain(host, &mut take),
        }
    }

    /// What has been counted since it began.
    pub(super) fn tally(&self) -> Tally {
        match self {
            Self::Bpf(watch) => watch.tally(),
            Self::Perf(perf) => perf.tally,
        }
    }

    /// Records that were dropped, of which nothing is known, not even their kind.
    pub(super) fn n_unseen(&self) -> u64 {
        match self {
            Self::Bpf(_) => 0,
            Self::Perf(perf) => perf.watch.n_lost(),
        }
    }
}

fn load(host: &Host, root: i32, described: &Described) -> Result<Watch, Gap> {
    if let Some(gap) = bpf::refusal(NAME, host) {
        return Err(gap);
    }
    let blind = |error| bpf::gap(NAME, host, &error, "sudo sexton record");
    let mut watch = Watch::load(root).map_err(blind)?;
    let tracepoints = described.as_the_program_knows()?;
    watch.attach(&tracepoints).map_err(blind)?;
    Ok(watch)
}

/// The tracepoints through perf.
pub(super) struct ByPerf {
    watch: perf::Watch,
    tasks: Tasks,
    layouts: Layouts,
    tally: Tally,
    /// Why there is no BPF program.
    instead: Gap,
}

impl ByPerf {
    fn open(host: &Host, root: i32, described: &Described, instead: Gap) -> Result<Self, Gap> {
        let layouts = Layouts::of(described, root)?;
        let cores = machine::online_cpus(host)
            .map_err(|error| Gap::new(NAME, error.why(), error.chain()))?;
        let room = RINGS_BYTES / cores.len().max(1);
        let room = room.clamp(*RING_BYTES.start(), *RING_BYTES.end());
        let mut by_perf = Self {
            watch: perf::Watch::new(Ask::Tracepoints(points(described, root)), room),
            tasks: Tasks::default(),
            layouts,
            tally: Tally::default(),
            instead,
        };
        match by_perf.watch.follow_cores(&cores) {
            Some(error) if by_perf.watch.cores().is_empty() => Err(by_perf.refused(&error)),
            _ => Ok(by_perf),
        }
    }

    fn refused(self, error: &io::Error) -> Gap {
        if self.instead.why == Why::Denied {
            return self.instead;
        }
        let text = format!("{}; tracepoints through perf: {error}", self.instead.text);
        Gap::new(NAME, Why::Denied, text)
            .with_remedy("allow perf_event_open: seccomp, or kernel.perf_event_paranoid, stops it")
    }

    fn drain(&mut self, host: &Host, take: &mut impl FnMut(Event)) -> u64 {
        if let Ok(online) = machine::online_cpus(host) {
            self.watch.follow_cores(&online);
        }
        let Self {
            tasks,
            layouts,
            tally,
            ..
        } = self;
        let mut senseless = 0;
        let malformed = self.watch.drain(|record| {
            let perf::What::Sample(sample) = &record.what else {
                return tasks.note(host, &record.what);
            };
            match layouts.read(&sample.fields) {
                Some(Told::Elsewhere(what)) => {
                    tally.n_births_elsewhere += u64::from(what == What::Born);
                }
                Some(Told::Here { what, id, path }) => {
                    count(tally, what);
                    // Records say numbers of our own PID namespace, and 0 outside of it: the
                    // idle task, which has that number too, makes no cgroups.
                    let unknown = if sample.pid == 0 { OUTSIDE } else { EXITED };
                    let task = (sample.tid != 0).then(|| tasks.get(host, sample.tid));
                    let comm = task.flatten().map(|task| task.comm.to_vec());
                    take(Event {
                        at_ns: record.at_ns,
                        what,
                        id,
                        path,
                        tgid: sample.pid,
                        comm: comm.unwrap_or_else(|| unknown.to_vec()),
                        ancestors: match what {
                            What::Born if sample.pid != 0 => ancestors(host, tasks, sample.pid),
                            _ => Vec::new(),
                        },
                    });
                }
                None => senseless += 1,
            }
        });
        self.tasks.forget_exited();
        malformed + senseless
    }
}

fn count(tally: &mut Tally, what: What) {
    let n = match what {
        What::Born => &mut tally.n_births,
        What::Removed => &mut tally.n_removals,
        What::Released => &mut tally.n_releases,
    };
    *n += 1;
}

fn ancestors(host: &Host, tasks: &mut Tasks, pid: u32) -> Vec<Ancestor> {
    let above = tasks.above(host, pid, MAX_ANCESTORS).into_iter();
    above
        .map(|(tgid, comm)| Ancestor {
            tgid,
            comm: comm.to_vec(),
        })
        .collect()
}

/// What to ask for. In this order: of what is seen to be removed, the release is seen too. Births
/// elsewhere are counted, so they are not filtered.
fn points(described: &Described, root: i32) -> Vec<Point> {
    let here = Some(format!("root == {root}"));
    let point = |tracepoint: &Tracepoint, filter: &Option<String>| Point {
        id: tracepoint.id,
        filter: filter.clone(),
    };
    vec![
        point(&described.release, &here),
        point(&described.rmdir, &here),
        point(&described.mkdir, &None),
    ]
}

/// Where the fields of the three tracepoints are on this kernel.
struct Layouts {
    root: i32,
    all: [(u64, What, Layout); 3],
}

struct Layout {
    kind: Field,
    root: Field,
    id: Field,
    path: Field,
}

/// What a hit of a tracepoint says.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    /// It is of another hierarchy.
    Elsewhere(What),
    Here {
        what: What,
        id: u64,
        path: Vec<u8>,
    },
}

impl Layouts {
    fn of(described: &Described, root: i32) -> Result<Self, Gap> {
        let layout = |what, tracepoint: &Tracepoint| {
            let layout = Layout::of(tracepoint).ok_or_else(|| {
                let text = "this kernel's tracepoints of cgroups lack a root, an id or a path";
                Gap::new(NAME, Why::Unsupported, text)
            })?;
            Ok((tracepoint.id, what, layout))
        };
        let all = [
            layout(What::Born, &described.mkdir)?,
            layout(What::Removed, &described.rmdir)?,
            layout(What::Released, &described.release)?,
        ];
        Ok(Self { root, all })
    }

    fn read(&self, fields: &[u8]) -> Option<Told> {
        let (_, what, layout) = self
            .all
            .iter()
            .find(|(number, _, layout)| layout.kind.number(fields) == Some(*number))?;
        if layout.root.number(fields)? as i32 != self.root {
            return Some(Told::Elsewhere(*what));
        }
        Some(Told::Here {
            what: *what,
            id: layout.id.number(fields)?,
            path: layout.path.text(fields)?.to_vec(),
        })
    }
}

impl Layout {
    fn of(tracepoint: &Tracepoint) -> Option<Self> {
        let field = |name| tracepoint.field(name).cloned();
        Some(Self {
            kind: field("common_type")?,
            root: field("root")?,
            id: field("id")?,
            path: field("path")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 5.4 describes them.
    const OLD: &str = "\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
        \tfield:int root;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:int id;\toffset:12;\tsize:4;\tsigned:1;\n\
        \tfield:int level;\toffset:16;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] path;\toffset:20;\tsize:4;\tsigned:1;\n";

    fn layouts() -> Layouts {
        let of = |id| Tracepoint::parse(OLD, id).expect("fields");
        let described = Described {
            mkdir: of(384),
            rmdir: of(383),
            release: of(382),
        };
        assert!(described.as_the_program_knows().is_err());
        Layouts::of(&described, 5).expect("all fields")
    }

    fn bytes(kind: u16, root: i32, id: i32, path: &[u8]) -> Vec<u8> {
        let located = 24 | (path.len() as u32) << 16;
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend([0; 6]);
        bytes.extend(root.to_ne_bytes());
        bytes.extend(id.to_ne_bytes());
        bytes.extend(2_i32.to_ne_bytes());
        bytes.extend(located.to_ne_bytes());
        bytes.extend(path);
        bytes
    }

    #[test]
    fn events_of_an_old_kernel() {
        let layouts = layouts();
        let here = Told::Here {
            what: What::Removed,
            id: 77,
            path: b"/docker/a".to_vec(),
        };
        let fields = bytes(383, 5, 77, b"/docker/a\0");
        assert_eq!(layouts.read(&fields), Some(here));
        let elsewhere = Some(Told::Elsewhere(What::Born));
        assert_eq!(layouts.read(&bytes(384, 9, 77, b"/a\0")), elsewhere);
        assert_eq!(layouts.read(&bytes(1, 5, 77, b"/a\0")), None);
        for n in 0..fields.len() {
            assert_eq!(layouts.read(&fields[..n]), None, "{n} bytes");
        }
    }
}
