//! Times how long tasks that could run wait for a core, and names who runs meanwhile.
//!
//! Source: a BPF program on the scheduler's tracepoints. Waits that go on are read from
//! its table, so that a core that never switches is seen too. Without BPF, means from
//! `/proc/schedstat`.
//! Blind to: why a task was not let run. One that a CPU quota holds back waits as well.
//! Overhead: `docs/overhead.md#runq`.

mod by_schedstat;

use std::collections::HashSet;
use std::time::Duration;

use sexton_bpf::LoadError;
use sexton_bpf::prog::runq::{Core, Options, Waited, Waiting, Watch};
use sexton_host::{Host, process};
use sexton_model::fact::EventFact;
use sexton_model::fact::runq::{self as fact, CoreWait};
use sexton_model::fact::sexton::SEXTON_STEP_DOWN;
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::Subject;

use crate::delays::Delays;
use crate::tasks::Place;
use crate::{Sensor, SensorSpec, bpf, tasks};
use by_schedstat::BySchedstat;

const NAME: &str = "runq";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "waits for a core: how long, who waited, who ran meanwhile",
    emits: &[
        &fact::RUNQ_DELAY_P50_NS,
        &fact::RUNQ_DELAY_P99_NS,
        &fact::RUNQ_DELAY_MAX_NS,
        &fact::RUNQ_DELAY_MEAN_NS,
        &fact::RUNQ_WAITING_TASKS,
        &fact::RUNQ_WAITING_NS,
        &fact::RUNQ_WAIT.fact,
        &fact::RUNQ_WAITING.fact,
        &fact::RUNQ_LONGEST.fact,
        &SEXTON_STEP_DOWN.fact,
    ],
    every: Duration::from_secs(1),
    deadline: Duration::from_secs(2),
    examine,
    open,
};

/// Waits of at least this length are told one by one.
///
/// Chosen: twenty-five ticks of a 250 Hz kernel; a core shared fairly by a few busy tasks
/// gives each a turn well before that.
const THRESHOLD: Duration = Duration::from_millis(100);

/// The longest wait of an interval is told from here on.
const LONGEST_FLOOR_NS: u64 = 10_000_000;

/// Who held a core is asked where it belongs and how it is scheduled only for waits that are
/// far above any fair turn.
const ASKS_HOLDER_NS: u64 = 500_000_000;

/// Waits that go on and are told in one poll; all of them are counted.
const MAX_TOLD: usize = 16;

/// Tasks that waited and are asked where they belong, in one poll.
const MAX_ASKED: usize = 64;

const N_BUCKETS: usize = 37;

struct Runq {
    watch: Watch,
    cores: Vec<Read>,
    /// Waits that were told and went on at the last poll.
    told: HashSet<u64>,
}

/// What has been read of one core.
struct Read {
    delays: Delays<N_BUCKETS>,
    n_waited: u64,
    n_lost: u64,
}

fn load(host: &Host) -> Result<Watch, Gap> {
    let options = Options {
        n_cores: bpf::possible_cores(NAME, host)?,
        threshold: THRESHOLD,
    };
    Watch::load(options).map_err(|error| failure(host, &error))
}

fn failure(host: &Host, error: &LoadError) -> Gap {
    bpf::gap(NAME, host, error, "sudo sexton record")
}

fn examine(host: &Host) -> Vec<Sight> {
    const WHAT: &str = "waits for a core";
    if !host.is_live() {
        return vec![bpf::blind(WHAT, bpf::not_running(NAME))];
    }
    vec![match load(host) {
        Ok(_) => Sight::sees(WHAT, "BPF on the scheduler's tracepoints"),
        Err(gap) => match BySchedstat::open(host, gap.clone()) {
            Ok(_) => bpf::instead(WHAT, "means from /proc/schedstat", &gap),
            Err(gap) => bpf::blind(WHAT, gap),
        },
    }]
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    if !host.is_live() {
        return Err(bpf::not_running(NAME));
    }
    match open_program(host) {
        Ok(runq) => Ok(Box::new(runq)),
        Err(gap) => Ok(Box::new(BySchedstat::open(host, gap)?)),
    }
}

fn open_program(host: &Host) -> Result<Runq, Gap> {
    let mut watch = load(host)?;
    watch.attach().map_err(|error| failure(host, &error))?;
    let read = |_| Read {
        delays: Delays::new(),
        n_waited: 0,
        n_lost: 0,
    };
    Ok(Runq {
        cores: (0..watch.n_cores()).map(read).collect(),
        watch,
        told: HashSet::new(),
    })
}

impl Sensor for Runq {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        let mut asks = Asks::new(host);
        let mut longest: Option<(u32, Waited)> = None;
        for (cpu, read) in (0..).zip(&mut self.cores) {
            let Some(core) = self.watch.core(cpu) else {
                continue;
            };
            self.watch.reset_longest(cpu);
            read.tell(&mut asks, cpu, &core, out);
            if longest.is_none_or(|(_, known)| length_ns(&known) < length_ns(&core.longest)) {
                longest = Some((cpu, core.longest));
            }
        }
        // Longer ones have been told one by one.
        let span = u128::from(LONGEST_FLOOR_NS)..THRESHOLD.as_nanos();
        if let Some((cpu, waited)) = longest
            && span.contains(&length_ns(&waited).into())
        {
            tell_waited(&mut asks, cpu, &waited, &fact::RUNQ_LONGEST, out);
        }
        self.tell_waiting(host, out);
    }
}

/// Asks for the cgroup and the priority of those that waited, of a bounded number in a poll.
struct Asks<'h> {
    host: &'h Host,
    left: usize,
}

impl<'h> Asks<'h> {
    fn new(host: &'h Host) -> Self {
        // In a namespace of PIDs another process may have that number.
        let can_ask = process::numbers_are_the_kernels(host);
        Self {
            host,
            left: if can_ask { MAX_ASKED } else { 0 },
        }
    }

    /// Nothing of one that has exited since.
    fn of(&mut self, pid: u32) -> (Option<String>, Option<Place>) {
        let Some(left) = self.left.checked_sub(1) else {
            return (None, None);
        };
        self.left = left;
        let cgroup = tasks::cgroup(self.host, pid);
        (cgroup, tasks::place(self.host, pid))
    }
}

fn length_ns(waited: &Waited) -> u64 {
    waited.until_ns.saturating_sub(waited.since_ns)
}

fn tell_waited(
    asks: &mut Asks<'_>,
    cpu: u32,
    waited: &Waited,
    fact: &'static EventFact<CoreWait>,
    out: &mut Sink,
) {
    let (cgroup, place) = asks.of(waited.pid);
    let is_long = length_ns(waited) >= ASKS_HOLDER_NS;
    let holder = Some(waited.holder.pid).filter(|pid| is_long && *pid != 0);
    let (holder_cgroup, holder_place) = holder.map_or((None, None), |pid| asks.of(pid));
    let wait = CoreWait {
        pid: waited.pid,
        comm: Some(tasks::name_of(&waited.comm)),
        cgroup,
        nice: place.map(|place| place.nice),
        waited_ns: length_ns(waited),
        holder_pid: Some(waited.holder.pid),
        holder_comm: Some(tasks::name_of(&waited.holder.comm)),
        holder_ns: Some(waited.holder.ns),
        holder_cgroup,
        holder_realtime: holder_place.map(|place| place.is_realtime),
    };
    let at = Moment::from_ns(waited.until_ns);
    out.event(at, &Subject::cpu(cpu), fact, wait);
}

impl Read {
    fn tell(&mut self, asks: &mut Asks<'_>, cpu: u32, core: &Core, out: &mut Sink) {
        let subject = Subject::cpu(cpu);
        let interval = self.delays.advance(core.delays.n);
        let longest = Some(length_ns(&core.longest)).filter(|ns| *ns > 0);
        let values = [
            (&fact::RUNQ_DELAY_P50_NS, interval.percentile_ns(50)),
            (&fact::RUNQ_DELAY_P99_NS, interval.percentile_ns(99)),
            (
                &fact::RUNQ_DELAY_MAX_NS,
                longest.or_else(|| interval.percentile_ns(100)),
            ),
        ];
        for (fact, value) in values {
            if let Some(ns) = value {
                out.sample(&subject, fact, ns as f64);
            }
        }
        self.tell_ended(asks, cpu, core, out);
    }

    fn tell_ended(&mut self, asks: &mut Asks<'_>, cpu: u32, core: &Core, out: &mut Sink) {
        let subject = &Subject::cpu(cpu);
        let kept = core.waited.len() as u64;
        let from = self.n_waited.max(core.n_waited.saturating_sub(kept));
        let overwritten = from - self.n_waited;
        if overwritten > 0 {
            let text = "more tasks waited too long for this core than are kept";
            out.gap(subject, Gap::new(NAME, Why::Lost(overwritten), text));
        }
        for n in from..core.n_waited {
            let waited = &core.waited[(n % kept) as usize];
            tell_waited(asks, cpu, waited, &fact::RUNQ_WAIT, out);
        }
        self.n_waited = core.n_waited;
        let lost = core.n_lost.wrapping_sub(self.n_lost);
        self.n_lost = core.n_lost;
        if lost > 0 {
            let text = "tasks waited at the same time whose numbers share a place in the table";
            out.gap(subject, Gap::new(NAME, Why::Lost(lost), text));
        }
    }
}

impl Runq {
    /// Tells the waits that go on, the oldest first.
    fn tell_waiting(&mut self, host: &Host, out: &mut Sink) {
        let now_ns = out.now().as_ns();
        let floor_ns = u64::try_from(THRESHOLD.as_nanos()).unwrap_or(u64::MAX);
        let mut waiting = self.watch.waiting(now_ns, floor_ns);
        waiting.sort_unstable_by_key(|wait| wait.since_ns);
        let oldest_ns = waiting.first().map_or(0, |wait| now_ns - wait.since_ns);
        let node = Subject::node();
        out.sample(&node, &fact::RUNQ_WAITING_TASKS, waiting.len() as f64);
        out.sample(&node, &fact::RUNQ_WAITING_NS, oldest_ns as f64);
        let going_on: HashSet<u64> = waiting.iter().map(|wait| wait.mark).collect();
        self.told.retain(|known| going_on.contains(known));
        let new = waiting
            .iter()
            .filter(|wait| !self.told.contains(&wait.mark));
        let new: Vec<Waiting> = new.copied().take(MAX_TOLD).collect();
        for wait in new {
            self.tell_one_waiting(host, &wait, out);
            self.told.insert(wait.mark);
        }
    }

    fn tell_one_waiting(&self, host: &Host, wait: &Waiting, out: &mut Sink) {
        // It may have got its core, or ended, since the table was read.
        let Some(place) = tasks::place(host, wait.pid).filter(|place| place.is_runnable) else {
            return;
        };
        let Some(core) = self.watch.core(place.cpu) else {
            return;
        };
        if core.current_pid == wait.pid {
            return;
        }
        let says = CoreWait {
            pid: wait.pid,
            comm: tasks::comm(host, wait.pid),
            cgroup: tasks::cgroup(host, wait.pid),
            nice: Some(place.nice),
            waited_ns: out.now().as_ns() - wait.since_ns,
            holder_pid: Some(core.current_pid),
            holder_comm: tasks::comm(host, core.current_pid),
            holder_ns: None,
            holder_cgroup: None,
            holder_realtime: None,
        };
        let subject = Subject::cpu(place.cpu);
        out.event(out.now(), &subject, &fact::RUNQ_WAITING, says);
    }
}
