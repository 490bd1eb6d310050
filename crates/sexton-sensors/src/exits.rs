//! Tells of processes that end by a signal, with a status that is not 0, or because the
//! kernel ran out of memory; of clients that ask daemons for containers or units; and whose
//! children they are when very many processes exit.
//!
//! Source: the raw tracepoints `sched_process_exit` and `mark_victim`, through a BPF
//! program that reads the process and its cgroup while they are still there; or where none can
//! be loaded, the kernel's accounting of tasks that exit (taskstats).
//! Blind to: what other processes that ended with status 0 did; those are counted.
//! Overhead: `docs/overhead.md#exits`.

mod clients;
mod makers;
mod source;

use std::collections::HashMap;
use std::time::Duration;

use sexton_bpf::prog::exits::{Event, Tally};
use sexton_host::Host;
use sexton_model::fact::exit::{self as fact, ProcessBurst, ProcessExit};
use sexton_model::fact::sexton::SEXTON_STEP_DOWN;
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;

use crate::lineage::Lineage;
use crate::{Sensor, SensorSpec, bpf};
use makers::Makers;
use source::Source;

const NAME: &str = "exits";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "processes that end badly: by a signal, a status, or want of memory",
    emits: &[
        &fact::PROCESS_FAILED.fact,
        &fact::PROCESS_FAILED_BURST.fact,
        &fact::CLIENT_ENDED.fact,
        &fact::PROCESS_MAKER.fact,
        &fact::PROCESS_EXITS_NORMAL,
        &fact::PROCESS_EXITS_ABNORMAL,
        &fact::OOM_VICTIMS,
        &SEXTON_STEP_DOWN.fact,
    ],
    every: Duration::from_secs(1),
    deadline: Duration::from_secs(1),
    examine,
    open,
};

/// Ends of one poll that are told one by one. Scripts end with all kinds of statuses, so
/// the rest is counted by name and status.
const MAX_TOLD: usize = 200;

/// Ends told on top of that when a flood must not hide them: for want of memory, or of a name
/// of which few ended in this poll.
const MAX_NOTABLE: usize = 300;

/// Ends of one name in one poll up to which they are few.
const FEW: usize = 10;

/// Clients of one poll that are told: more ask for nothing that could be counted by hand.
const MAX_CLIENTS: usize = 200;

/// Names and statuses of one poll that are kept apart in a burst.
const MAX_KINDS: usize = 256;

/// Ends that one poll takes at most; the ring holds fewer.
const MAX_DRAINED: usize = 16_384;

fn examine(host: &Host) -> Vec<Sight> {
    const WHAT: &str = "abnormal ends";
    if !host.is_live() {
        return vec![Sight::blind(WHAT, bpf::not_running(NAME).text)];
    }
    let shows = "every process that ends badly from now on: name, status, cgroup, lifetime, OOM";
    vec![match Source::open(host, &[]) {
        Ok(source) => match source.instead_of_bpf() {
            None => Sight::sees(WHAT, shows),
            Some(gap) => bpf::instead(WHAT, "the kernel's accounting (taskstats)", gap),
        },
        Err(gap) => bpf::blind(WHAT, gap),
    }]
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    if !host.is_live() {
        return Err(bpf::not_running(NAME));
    }
    let clients = clients::known().map_err(|error| Gap::new(NAME, Why::Bug, error))?;
    Ok(Box::new(Exits {
        source: Source::open(host, &clients)?,
        told_source: false,
        n_overruns: 0,
        n_lost: 0,
        makers: Makers::default(),
    }))
}

/// The sensor.
struct Exits {
    source: Source,
    /// Whether it was said where exits come from.
    told_source: bool,
    n_overruns: u64,
    /// Losses that have been told.
    n_lost: u64,
    makers: Makers,
}

impl Sensor for Exits {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        let mut teller = Teller::default();
        let malformed = self
            .source
            .drain(host, MAX_DRAINED, |event| teller.tell(&event, out));
        teller.burst.tell(out);
        if teller.n_clients > MAX_CLIENTS {
            let n = (teller.n_clients - MAX_CLIENTS) as u64;
            let text = format!("{n} more ends of clients of daemons in one second");
            out.gap(&Subject::node(), Gap::new(NAME, Why::Lost(n), text));
        }
        let tally = self.source.tally();
        self.sample(&tally, out);
        let n_exits = tally.n_normal + tally.n_abnormal;
        self.makers.poll(n_exits, || self.source.makers(), out);
        self.tell_losses(&tally, malformed, out);
        self.tell_source(out);
    }
}

impl Exits {
    fn sample(&self, tally: &Tally, out: &mut Sink) {
        let node = Subject::node();
        let values = [
            (&fact::PROCESS_EXITS_NORMAL, tally.n_normal),
            (&fact::PROCESS_EXITS_ABNORMAL, tally.n_abnormal),
            (&fact::OOM_VICTIMS, tally.n_oom_victims),
        ];
        for (fact, value) in values {
            out.sample(&node, fact, value as f64);
        }
    }

    /// Says once where exits come from, if not from BPF, and what that dropped since.
    fn tell_source(&mut self, out: &mut Sink) {
        let node = Subject::node();
        if let Some(gap) = self.source.instead_of_bpf()
            && !self.told_source
        {
            bpf::tell_step_down("exits of processes", "taskstats", gap, out);
        }
        self.told_source = true;
        let n_overruns = self.source.n_overruns();
        if n_overruns > self.n_overruns {
            let text = "dropped exits of processes (socket buffer full); how many is not known";
            out.gap(&node, Gap::new(NAME, Why::Lost(0), text));
        }
        self.n_overruns = n_overruns;
    }

    fn tell_losses(&mut self, tally: &Tally, malformed: u64, out: &mut Sink) {
        let new = tally.n_lost - self.n_lost;
        self.n_lost = tally.n_lost;
        if new > 0 {
            let text = format!("dropped {new} exit events: ring buffer full");
            out.gap(&Subject::node(), Gap::new(NAME, Why::Lost(new), text));
        }
        bpf::tell_malformed(NAME, malformed, out);
    }
}

/// Tells the ends of one poll.
#[derive(Debug, Default)]
struct Teller {
    n_told: usize,
    n_notable: usize,
    n_clients: usize,
    n_of_name: HashMap<Vec<u8>, usize>,
    burst: Burst,
}

impl Teller {
    fn tell(&mut self, event: &Event, out: &mut Sink) {
        let subject = Subject::new(SubjectKind::Process, event.tgid.to_string());
        let at = Moment::from_ns(event.at_ns);
        if event.code == 0 {
            self.n_clients += 1;
            if self.n_clients <= MAX_CLIENTS {
                out.event(at, &subject, &fact::CLIENT_ENDED, describe(event));
            }
            return;
        }
        if !self.has_room(event) {
            return self.burst.add(event);
        }
        out.event(at, &subject, &fact::PROCESS_FAILED, describe(event));
    }

    /// Whether an end is told by itself: within the bound, or beyond it when it is one of few.
    fn has_room(&mut self, event: &Event) -> bool {
        if !event.oom && self.n_told < MAX_TOLD {
            self.n_told += 1;
            self.count(event);
            return true;
        }
        let is_notable = event.oom || self.count(event) <= FEW;
        let has_room = is_notable && self.n_notable < MAX_NOTABLE;
        self.n_notable += usize::from(has_room);
        has_room
    }

    /// How many of this name ended in this poll, this one included. The ring bounds the names.
    fn count(&mut self, event: &Event) -> usize {
        let n = self.n_of_name.entry(event.comm.clone()).or_default();
        *n += 1;
        *n
    }
}

fn describe(event: &Event) -> ProcessExit {
    let (exit_code, signal) = event.code_and_signal();
    // Empty where it is not known.
    let cgroup = Some(&event.cgroup[..]).filter(|cgroup| !cgroup.is_empty());
    let lineage = cgroup.map(Lineage::of).unwrap_or_default();
    ProcessExit {
        pid: Some(event.pid),
        tgid: Some(event.tgid),
        comm: Some(escape(&event.comm)),
        exit_code,
        signal,
        core_dumped: signal.map(|_| event.dumped_core()),
        uid: Some(event.uid),
        cgroup: cgroup.map(escape),
        cgroup_is_cut: event.cgroup_is_cut.then_some(true),
        cgroup_id: Some(event.cgroup_id).filter(|id| *id != 0),
        origin: lineage.origin,
        unit: lineage.unit,
        container: lineage.container,
        lifetime_ns: Some(event.at_ns.saturating_sub(event.start_ns)),
        oom: Some(event.oom),
        role: None,
    }
}

/// A name, with a status or a signal.
type Kind = (Vec<u8>, (Option<u32>, Option<u32>));

/// The ends that are not told one by one: how many of what name and status.
#[derive(Debug, Default)]
struct Burst {
    /// In the order they came: name and status (`None`: any other), first moment, how many.
    rows: Vec<(Option<Kind>, u64, u64)>,
    at: HashMap<Option<Kind>, usize>,
}

impl Burst {
    fn add(&mut self, event: &Event) {
        let mut kind = Some((event.comm.clone(), event.code_and_signal()));
        if self.rows.len() >= MAX_KINDS && !self.at.contains_key(&kind) {
            kind = None;
        }
        let rows = &mut self.rows;
        let at = *self.at.entry(kind).or_insert_with_key(|kind| {
            rows.push((kind.clone(), event.at_ns, 0));
            rows.len() - 1
        });
        rows[at].2 += 1;
    }

    fn tell(self, out: &mut Sink) {
        for (kind, at_ns, n) in self.rows {
            let (comm, (exit_code, signal)) = match kind {
                Some((comm, end)) => (escape(&comm), end),
                None => ("(others)".to_owned(), (None, None)),
            };
            let burst = ProcessBurst {
                comm: Some(comm),
                exit_code,
                signal,
                n,
            };
            let at = Moment::from_ns(at_ns);
            out.event(at, &Subject::node(), &fact::PROCESS_FAILED_BURST, burst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(comm: &str, code: u32) -> Event {
        Event {
            at_ns: 1_000,
            start_ns: 400,
            cgroup_id: 7,
            cgroup: b"/system.slice/a\x1b.service/x".to_vec(),
            cgroup_is_cut: false,
            pid: 12,
            tgid: 11,
            uid: 1000,
            code,
            oom: false,
            comm: comm.into(),
        }
    }

    fn check(event: &Event, expected: &str) {
        let mut out = Sink::new(NAME, Moment::default());
        Teller::default().tell(event, &mut out);
        let records = out.into_records();
        let [record] = &records[..] else {
            panic!("one, not {records:?}")
        };
        let sexton_model::record::Body::Event { payload, .. } = &record.body else {
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
    fn ends_are_told_as_wait_would() {
        let cgroup = r"uid=1000 cgroup=/system.slice/a\033.service/x cgroup_id=7 origin=made by hand lifetime_ns=600 oom=";
        check(
            &event("sh", 3 << 8),
            &format!("pid=12 tgid=11 comm=sh exit_code=3 {cgroup}false"),
        );
        check(
            &event("sh\n", 11 | 0x80),
            &format!(r"pid=12 tgid=11 comm=sh\012 signal=11 core_dumped=true {cgroup}false"),
        );
        let mut killed = event("raylet", 9);
        killed.oom = true;
        check(
            &killed,
            &format!("pid=12 tgid=11 comm=raylet signal=9 core_dumped=false {cgroup}true"),
        );
    }

    #[test]
    fn a_burst_is_counted_and_hides_nothing_that_matters() {
        let mut out = Sink::new(NAME, Moment::default());
        let mut teller = Teller::default();
        for i in 0..1_000_u32 {
            teller.tell(&event("sh", (i % 2 + 1) << 8), &mut out);
        }
        teller.tell(&event("raylet", 1 << 8), &mut out);
        teller.burst.tell(&mut out);
        let records = out.into_records();
        let failed: Vec<&ProcessExit> = records
            .iter()
            .filter_map(|record| record.says(&fact::PROCESS_FAILED))
            .collect();
        assert_eq!(failed.len(), MAX_TOLD + 1);
        let told = failed.last().and_then(|last| last.comm.as_deref());
        assert_eq!(told, Some("raylet"));
        let counts: Vec<_> = records
            .iter()
            .filter_map(|record| record.says(&fact::PROCESS_FAILED_BURST))
            .map(|burst| (burst.exit_code, burst.n))
            .collect();
        assert_eq!(counts, [(Some(1), 400), (Some(2), 400)]);
    }
}
