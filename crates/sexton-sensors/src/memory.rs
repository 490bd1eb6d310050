//! Tells how much memory is left, how much is reclaimed and read again, and swapping; and, while
//! that hurts, which memory cgroups reach their limit or wait, and which processes read pages
//! back in.
//!
//! Source: `/proc/vmstat`, `/proc/meminfo` and `/proc/pressure/memory` every 2 s. While tasks
//! waited for memory in 5 % of the interval, or most of what was read from disks had been in
//! memory before, also `stat` and `cgroup` of all processes outside the kernel, and three or four
//! small files of each memory cgroup that has one, every 4 s and for at most 50 ms of CPU time,
//! followed by a rest of 200 times that.
//! Blind to: a cgroup or process that lives for less than 4 s; on cgroup v1, how long a cgroup
//! waited. `memory.stat` is not read: to bring it up to date the kernel may have to visit every
//! memory cgroup of the node.
//! Overhead: `docs/overhead.md#memory`.

mod cgroups;
pub(crate) mod fuzzing;
mod look;
mod vmstat;

use std::time::Duration;

use sexton_host::{Host, HostError, machine};
use sexton_model::fact::memory as fact;
use sexton_model::gap::Gap;
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::Subject;

use crate::pressure::psi::{Psi, lost};
use crate::{Sensor, SensorSpec};
use look::Look;
use vmstat::Counters;

const NAME: &str = "memory";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "memory: what is left, reclaimed and read again, swapped; who is at its limit",
    emits: &[
        &fact::MEMORY_AVAILABLE_BYTES,
        &fact::MEMORY_TOTAL_BYTES,
        &fact::MEMORY_REFAULT_BYTES,
        &fact::MEMORY_READ_IN_BYTES,
        &fact::MEMORY_SWAPPED_IN_BYTES,
        &fact::MEMORY_SWAPPED_OUT_BYTES,
        &fact::MEMORY_ALLOCATION_STALLS,
        &fact::MEMORY_MAJOR_FAULTS,
        &fact::MEMORY_CGROUP.fact,
        &fact::MEMORY_TASK.fact,
    ],
    every: Duration::from_secs(2),
    deadline: Duration::from_secs(1),
    examine,
    open,
};

/// Tasks that waited for memory in this part of the interval ask for a look at who it was. A
/// quiet node has 0.
const WAITS: f64 = 0.05;

/// So many bytes that were read again in a second ask for one, too, where they are most of what
/// was read: 256 pages, as few as a disk that turns can read while it does nothing else.
const REREAD: f64 = 1024.0 * 1024.0;

fn examine(host: &Host) -> Vec<Sight> {
    const WHAT: &str = "reclaim and swapping";
    const WHO: &str = "who waits for memory";
    let counters = match read(host) {
        Ok(_) => Sight::sees(WHAT, "in /proc/vmstat"),
        Err(error) => Sight::blind(WHAT, error.chain()),
    };
    vec![counters, cgroups::examine(host, WHO)]
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    read(host).map_err(|error| gap(&error))?;
    Ok(Box::new(Memory {
        look: Look::new(host),
        before: None,
    }))
}

fn gap(error: &HostError) -> Gap {
    Gap::new(NAME, error.why(), error.chain())
}

/// What was read at one poll.
struct Reading {
    counters: Counters,
    /// Microseconds in which a task waited for memory, where the kernel tells.
    stalled_us: Option<u64>,
}

fn read(host: &Host) -> Result<Reading, HostError> {
    let path = host.proc("vmstat")?;
    let text = host.read_text(&path)?;
    let counters = Counters::parse(&text).ok_or_else(|| HostError::Malformed {
        path,
        what: "it has no workingset_refault or pgpgin".into(),
    })?;
    let pressure = host.proc("pressure/memory").and_then(|p| host.read(p));
    let pressure = pressure.ok().and_then(|file| Psi::parse(&file));
    Ok(Reading {
        counters,
        stalled_us: pressure.map(|psi| psi.some.total_us),
    })
}

/// The sensor.
struct Memory {
    look: Look,
    before: Option<(Moment, Reading)>,
}

impl Sensor for Memory {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        tell_left(host, out);
        let reading = match read(host) {
            Ok(reading) => reading,
            Err(error) => return out.gap(&Subject::node(), gap(&error)),
        };
        tell(&reading.counters, out);
        let now = out.now();
        let before = self.before.replace((now, reading));
        let (Some((at, before)), Some((_, reading))) = (before, &self.before) else {
            return;
        };
        let hurts = hurts(&before, reading, now.since(at));
        self.look.poll(host, out, hurts);
    }
}

fn tell(counters: &Counters, out: &mut Sink) {
    let page = machine::page_bytes() as f64;
    for (fact, value) in [
        (&fact::MEMORY_REFAULT_BYTES, counters.refaults as f64 * page),
        (&fact::MEMORY_READ_IN_BYTES, counters.read_in_bytes() as f64),
        (
            &fact::MEMORY_SWAPPED_IN_BYTES,
            counters.swapped_in as f64 * page,
        ),
        (
            &fact::MEMORY_SWAPPED_OUT_BYTES,
            counters.swapped_out as f64 * page,
        ),
        (&fact::MEMORY_ALLOCATION_STALLS, counters.stalls as f64),
        (&fact::MEMORY_MAJOR_FAULTS, counters.major_faults as f64),
    ] {
        out.sample(&Subject::node(), fact, value);
    }
}

/// What `/proc/meminfo` says is left.
fn tell_left(host: &Host, out: &mut Sink) {
    let text = host.proc("meminfo").and_then(|path| host.read_text(path));
    let text = match text {
        Ok(text) => text,
        Err(error) => return out.gap(&Subject::node(), gap(&error)),
    };
    for (fact, name) in [
        (&fact::MEMORY_AVAILABLE_BYTES, "MemAvailable:"),
        (&fact::MEMORY_TOTAL_BYTES, "MemTotal:"),
    ] {
        if let Some(bytes) = vmstat::meminfo(&text, name) {
            out.sample(&Subject::node(), fact, bytes as f64);
        }
    }
}

/// Whether it is worth asking who it is.
fn hurts(before: &Reading, now: &Reading, within: Duration) -> bool {
    let stalled = match (before.stalled_us, now.stalled_us) {
        (Some(before), Some(now)) => lost(before, now, within),
        _ => None,
    };
    let page = machine::page_bytes();
    let reread = now
        .counters
        .refaults
        .saturating_sub(before.counters.refaults)
        * page;
    let read = now.counters.read_in_bytes();
    let read = read.saturating_sub(before.counters.read_in_bytes());
    let is_much = reread as f64 >= REREAD * within.as_secs_f64();
    stalled.is_some_and(|part| part >= WAITS) || (is_much && reread.saturating_mul(2) >= read)
}
