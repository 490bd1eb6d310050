//! Tells of cgroups as they are born, removed and released, and who made them.
//!
//! Source: the tracepoints `cgroup_mkdir`, `cgroup_rmdir` and `cgroup_release`, through a
//! BPF program, or through perf where none can be loaded; `/proc` for the cgroups of the creators, after the fact.
//! Blind to: what was there before it began (`memcg` counts that), and the cgroup of a
//! creator that is gone within a poll.
//! Overhead: `docs/overhead.md#cgroups`.

mod book;
mod burst;
mod creator;
mod source;

use std::time::Duration;

use sexton_bpf::prog::cgroups::{Event, Tally, What};
use sexton_host::Host;
use sexton_host::process::{self, Place};
use sexton_model::fact::cgroup::{self as fact, CgroupCreated, CgroupReleased, CgroupRemoved};
use sexton_model::fact::sexton::SEXTON_STEP_DOWN;
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;

use crate::lineage::Lineage;
use crate::{Sensor, SensorSpec, bpf};
use book::Book;
use burst::Burst;
use creator::Creators;
use source::{Described, Source};

const NAME: &str = "cgroups";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "cgroups as they are born, removed and released; who made them",
    emits: &[
        &fact::CGROUP_BORN.fact,
        &fact::CGROUP_REMOVED.fact,
        &fact::CGROUP_RELEASED.fact,
        &fact::CGROUP_BURST.fact,
        &fact::CGROUP_BIRTHS,
        &fact::CGROUP_REMOVALS,
        &fact::CGROUP_RELEASES,
        &fact::CGROUP_BIRTHS_ELSEWHERE,
        &fact::CGROUP_UNRELEASED,
        &SEXTON_STEP_DOWN.fact,
    ],
    every: Duration::from_secs(1),
    deadline: Duration::from_secs(1),
    examine,
    open,
};

/// Events of one poll that are told one by one; the rest is counted by pattern.
///
/// Chosen: more than a machine of two cores can make in a second while doing anything
/// else; five thousand took 15 to 34 ms to tell.
const MAX_TOLD: usize = 5_000;

/// Events that one poll takes at most; the ring holds fewer.
const MAX_DRAINED: usize = 65_536;

fn examine(host: &Host) -> Vec<Sight> {
    const WHAT: &str = "births and deaths";
    const SHOWS: &str =
        "every cgroup that is made, removed or released from now on, and who made it";
    if !host.is_live() {
        return vec![Sight::blind(WHAT, bpf::not_running(NAME).text)];
    }
    let described = match Described::read(host) {
        Ok(described) => described,
        Err(gap) => {
            let without = Sight::blind(WHAT, "not without the tracepoints");
            return vec![bpf::blind("tracepoints", gap), without];
        }
    };
    let root = memory_root(host).unwrap_or(0);
    let program = match Source::open(host, root, &described) {
        Ok(source) => match source.instead_of_bpf() {
            None => Sight::sees(WHAT, SHOWS),
            Some(gap) => bpf::instead(WHAT, "tracepoints through perf", gap),
        },
        Err(gap) => bpf::blind(WHAT, gap),
    };
    let tracepoints = Sight::sees("tracepoints", "tracefs describes them");
    vec![tracepoints, program, examine_creators(host)]
}

fn examine_creators(host: &Host) -> Sight {
    const WHAT: &str = "units of creators";
    if process::numbers_are_the_kernels(host) {
        return Sight::sees(WHAT, "by their cgroup in /proc, or that of a process above");
    }
    Sight::blind(WHAT, "in a PID namespace the kernel's numbers mean nothing")
        .with_remedy("run outside the container, or with the host's PID namespace")
}

/// The number of the hierarchy that the memory controller is in; that of v2 is 0.
fn memory_root(host: &Host) -> Result<i32, Gap> {
    let places =
        Place::read_own(host).map_err(|error| Gap::new(NAME, error.why(), error.chain()))?;
    let memory = places.iter().find(|place| place.is_of("memory"));
    Ok(memory.map_or(0, |place| place.hierarchy))
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    if !host.is_live() {
        return Err(bpf::not_running(NAME));
    }
    let root = memory_root(host)?;
    let source = Source::open(host, root, &Described::read(host)?)?;
    // Records of perf have numbers of our own namespace; a BPF program has the kernel's.
    let is_perf = source.instead_of_bpf().is_some();
    Ok(Box::new(Cgroups {
        source,
        told_source: false,
        n_unseen: 0,
        book: Book::default(),
        same_numbers: is_perf || process::numbers_are_the_kernels(host),
        n_lost: 0,
        n_untracked: 0,
    }))
}

/// The sensor.
struct Cgroups {
    source: Source,
    /// Whether it was said where events come from.
    told_source: bool,
    book: Book,
    same_numbers: bool,
    /// Losses that have been told.
    n_lost: u64,
    n_unseen: u64,
    n_untracked: u64,
}

impl Sensor for Cgroups {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        let mut teller = Teller::new(host, self.same_numbers);
        let book = &mut self.book;
        let malformed = self.source.drain(host, MAX_DRAINED, |event| {
            let lasted = book.note(&event);
            teller.tell(&event, lasted, out);
        });
        teller.burst.tell(out);
        let tally = self.source.tally();
        self.sample(&tally, out);
        self.tell_losses(&tally, malformed, out);
        self.tell_source(out);
    }
}

impl Cgroups {
    fn sample(&self, tally: &Tally, out: &mut Sink) {
        let node = Subject::node();
        let values = [
            (&fact::CGROUP_BIRTHS, tally.n_births),
            (&fact::CGROUP_REMOVALS, tally.n_removals),
            (&fact::CGROUP_RELEASES, tally.n_releases),
            (&fact::CGROUP_BIRTHS_ELSEWHERE, tally.n_births_elsewhere),
            (&fact::CGROUP_UNRELEASED, self.book.unreleased() as u64),
        ];
        for (fact, value) in values {
            out.sample(&node, fact, value as f64);
        }
    }

    /// Says once where events come from, if not from BPF, and what that dropped since.
    fn tell_source(&mut self, out: &mut Sink) {
        let node = Subject::node();
        if let Some(gap) = self.source.instead_of_bpf()
            && !self.told_source
        {
            let by = "tracepoints through perf";
            bpf::tell_step_down("births of cgroups", by, gap, out);
        }
        self.told_source = true;
        let n_unseen = self.source.n_unseen();
        let new = n_unseen - self.n_unseen;
        self.n_unseen = n_unseen;
        if new > 0 {
            let text = format!(
                "dropped {new} records of cgroups and tasks (ring buffer full): that many births, \
                 removals or releases may be missing"
            );
            out.gap(&node, Gap::new(NAME, Why::Lost(new), text));
        }
    }

    fn tell_losses(&mut self, tally: &Tally, malformed: u64, out: &mut Sink) {
        let node = Subject::node();
        let lost = tally.n_lost_births + tally.n_lost_removals + tally.n_lost_releases;
        let new = lost - self.n_lost;
        self.n_lost = lost;
        if new > 0 {
            let text = format!(
                "dropped {new} cgroup events (ring buffer full): they are counted, but not recorded one by one; of \
                 all dropped since the start {} were creations, {} removals and {} releases, so the unreleased count is \
                 at most {} too high and {} too low",
                tally.n_lost_births,
                tally.n_lost_removals,
                tally.n_lost_releases,
                tally.n_lost_releases,
                tally.n_lost_removals,
            );
            out.gap(&node, Gap::new(NAME, Why::Lost(new), text));
        }
        bpf::tell_malformed(NAME, malformed, out);
        let untracked = self.book.untracked() - self.n_untracked;
        self.n_untracked = self.book.untracked();
        if untracked > 0 {
            let text = format!(
                "{untracked} removed cgroups are not among the unreleased: their book is full"
            );
            out.gap(&node, Gap::new(NAME, Why::Lost(untracked), text));
        }
    }
}

/// Tells the events of one poll.
struct Teller<'h> {
    creators: Creators<'h>,
    n_told: usize,
    burst: Burst,
}

impl<'h> Teller<'h> {
    fn new(host: &'h Host, same_numbers: bool) -> Self {
        Self {
            creators: Creators::new(host, same_numbers),
            n_told: 0,
            burst: Burst::default(),
        }
    }

    fn tell(&mut self, event: &Event, lasted: Option<Duration>, out: &mut Sink) {
        if self.n_told >= MAX_TOLD {
            if self.burst.add(event) && event.what == What::Born {
                self.burst.name_last(self.creators.of(event));
            }
            return;
        }
        self.n_told += 1;
        let path = escape(&event.path);
        let subject = Subject::new(SubjectKind::Cgroup, path.as_str());
        let at = Moment::from_ns(event.at_ns);
        let lasted_ns = lasted.and_then(|time| u64::try_from(time.as_nanos()).ok());
        let lineage = Lineage::of(&event.path);
        match event.what {
            What::Born => {
                let created = self.created(event, path, lineage);
                out.event(at, &subject, &fact::CGROUP_BORN, created);
            }
            What::Removed => {
                let removed = removed(event, path, lineage, lasted_ns);
                out.event(at, &subject, &fact::CGROUP_REMOVED, removed);
            }
            What::Released => {
                let released = CgroupReleased {
                    path,
                    id: Some(event.id),
                    origin: lineage.origin,
                    unit: lineage.unit,
                    container: lineage.container,
                    dying_ns: lasted_ns,
                };
                out.event(at, &subject, &fact::CGROUP_RELEASED, released);
            }
        }
    }

    fn created(&mut self, event: &Event, path: String, lineage: Lineage) -> CgroupCreated {
        let creator = self.creators.of(event);
        // What systemd makes is asked for by others; of a scope they are in it.
        let requester = match &event.comm[..] {
            b"systemd" => self.creators.requester(&event.path),
            _ => None,
        };
        CgroupCreated {
            path,
            id: Some(event.id),
            origin: lineage.origin,
            unit: lineage.unit,
            container: lineage.container,
            creator_pid: Some(creator.pid),
            creator_comm: Some(creator.comm),
            creator_cgroup: creator.cgroup,
            creator_unit: creator.unit,
            creator_ancestry: creator.ancestry,
            asker_pid: requester.as_ref().map(|requester| requester.pid),
            asker_comm: requester.as_ref().map(|requester| requester.comm.clone()),
            asker_unit: requester.map(|requester| requester.unit),
        }
    }
}

fn removed(event: &Event, path: String, lineage: Lineage, lived_ns: Option<u64>) -> CgroupRemoved {
    CgroupRemoved {
        path,
        id: Some(event.id),
        origin: lineage.origin,
        unit: lineage.unit,
        container: lineage.container,
        remover_pid: Some(event.tgid),
        remover_comm: Some(escape(&event.comm)),
        lived_ns,
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::{Path, PathBuf};

    use sexton_bpf::prog::cgroups::Ancestor;
    use sexton_host::{Entry, Root};
    use sexton_model::fact::cgroup::{CgroupBurst, CgroupChange};
    use sexton_model::fact::task::Task;
    use sexton_model::record::{Body, Record};

    use super::*;

    /// A node without processes.
    struct Empty;

    impl Root for Empty {
        fn read(&self, path: &Path, _: u64) -> io::Result<Vec<u8>> {
            if path == Path::new("/proc/self/mountinfo") {
                return Ok(b"22 1 0:5 / /proc rw - proc proc rw\n".to_vec());
            }
            Err(io::ErrorKind::NotFound.into())
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

    fn event(what: What, path: &str) -> Event {
        Event {
            at_ns: 5,
            what,
            id: 7,
            path: path.into(),
            tgid: 30,
            comm: b"runc".to_vec(),
            ancestors: vec![Ancestor {
                tgid: 1,
                comm: b"systemd".to_vec(),
            }],
        }
    }

    /// What is told of these events.
    fn told(events: impl IntoIterator<Item = Event>) -> Vec<Record> {
        let host = Host::new(Box::new(Empty)).expect("a mount table");
        let mut out = Sink::new(NAME, Moment::default());
        let mut teller = Teller::new(&host, true);
        for event in events {
            teller.tell(&event, Some(Duration::from_nanos(3)), &mut out);
        }
        teller.burst.tell(&mut out);
        out.into_records()
    }

    fn check(event: Event, expected: &str) {
        let records = told([event]);
        let [record] = &records[..] else {
            panic!("one, not {records:?}")
        };
        let Body::Event { payload, .. } = &record.body else {
            panic!("an event")
        };
        let shown: Vec<String> = payload
            .fields()
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn what_is_told() {
        let path = "/system.slice/ecs.service/a\n";
        let common =
            r"path=/system.slice/ecs.service/a\012 id=7 origin=systemd unit unit=ecs.service";
        check(
            event(What::Born, path),
            &format!(
                "{common} creator_pid=30 creator_comm=runc creator_cgroup=vanished creator_ancestry=[{{comm=systemd pid=1}}]"
            ),
        );
        check(
            event(What::Removed, path),
            &format!("{common} remover_pid=30 remover_comm=runc lived_ns=3"),
        );
        check(event(What::Released, path), &format!("{common} dying_ns=3"));
    }

    #[test]
    fn a_burst_is_counted_by_pattern() {
        let n = MAX_TOLD + 1_009;
        let records = told((0..n).map(|i| event(What::Born, &format!("/a.slice/x-{i}"))));
        assert_eq!(records.len(), MAX_TOLD + 1);
        let burst = records.last().expect("it is there");
        let burst = burst.says(&fact::CGROUP_BURST).expect("a burst");
        let init = Task {
            comm: "systemd".into(),
            pid: 1,
        };
        let expected = CgroupBurst {
            what: Some(CgroupChange::Created),
            pattern: "/a.slice/x-<n>".into(),
            n: 1009,
            creator_pid: Some(30),
            creator_comm: Some("runc".into()),
            creator_cgroup: Some("vanished".into()),
            creator_unit: None,
            creator_ancestry: vec![init],
        };
        assert_eq!(burst, &expected);
    }

    #[test]
    fn patterns_of_a_burst_are_bounded() {
        let letters = |i: usize| -> String {
            let digits = [i / 676 % 26, i / 26 % 26, i % 26];
            let names = digits.map(|digit| char::from(b'a' + digit as u8));
            names.iter().map(|letter| format!("/{letter}z")).collect()
        };
        let n = MAX_TOLD + 1_009;
        let records = told((0..n).map(|i| event(What::Born, &letters(i))));
        assert_eq!(records.len(), MAX_TOLD + burst::MAX_PATTERNS + 1);
        let counts = records
            .iter()
            .filter_map(|record| record.says(&fact::CGROUP_BURST))
            .map(|burst| burst.n);
        assert_eq!(counts.sum::<u64>(), 1_009);
    }
}
