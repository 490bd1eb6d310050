//! Waits for a core without BPF: the scheduler's own counts in `/proc/schedstat`.
//!
//! Each core counts how long tasks have waited for it in all, and how many turns it gave. That
//! makes a mean; who waited, for how long and for whom is not in it. Timing each wait by the
//! scheduler's tracepoints through perf would write two records for each switch of tasks, which
//! costs more than all other sensors together.

use std::collections::BTreeMap;

use sexton_host::{Host, HostError};
use sexton_model::fact::runq as fact;
use sexton_model::gap::Gap;
use sexton_model::record::Sink;
use sexton_model::subject::Subject;

use super::NAME;
use crate::{Sensor, bpf};

/// The sensor.
pub(super) struct BySchedstat {
    read: BTreeMap<u32, Counts>,
    /// Why there is no BPF program, until it is said.
    instead: Option<Gap>,
}

/// What a core has counted since it came online.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    waited_ns: u64,
    n_turns: u64,
}

impl BySchedstat {
    /// Ready, or why this is not possible either.
    pub(super) fn open(host: &Host, instead: Gap) -> Result<Self, Gap> {
        let closed = |why: String| {
            let gap = bpf::not_without("waits for a core", instead.clone());
            let text = format!("{}; by /proc/schedstat: {why}", gap.text);
            Gap { text, ..gap }
        };
        let read = read(host).map_err(|error| closed(error.chain()))?;
        if read.values().all(|counts| counts.n_turns == 0) {
            return Err(closed("this kernel counts nothing there".to_owned()));
        }
        Ok(Self {
            read,
            instead: Some(instead),
        })
    }
}

impl Sensor for BySchedstat {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        if let Some(instead) = self.instead.take() {
            let by = "means of /proc/schedstat";
            bpf::tell_step_down("waits for a core", by, &instead, out);
        }
        let now = match read(host) {
            Ok(now) => now,
            Err(error) => {
                let gap = Gap::new(NAME, error.why(), error.chain());
                return out.gap(&Subject::node(), gap);
            }
        };
        for (cpu, counts) in &now {
            let mean_ns = self.read.get(cpu).and_then(|last| last.mean_until(counts));
            if let Some(mean_ns) = mean_ns {
                let core = Subject::cpu(*cpu);
                out.sample(&core, &fact::RUNQ_DELAY_MEAN_NS, mean_ns);
            }
        }
        self.read = now;
    }
}

impl Counts {
    /// The mean wait of the turns since; `None` without any, or when the core began anew.
    fn mean_until(&self, later: &Counts) -> Option<f64> {
        let n = later.n_turns.checked_sub(self.n_turns).filter(|n| *n > 0)?;
        let waited_ns = later.waited_ns.checked_sub(self.waited_ns)?;
        Some(waited_ns as f64 / n as f64)
    }
}

fn read(host: &Host) -> Result<BTreeMap<u32, Counts>, HostError> {
    let path = host.proc("schedstat")?;
    let text = host.read_text(&path)?;
    match parse(&text) {
        cores if cores.is_empty() => Err(HostError::Malformed {
            path,
            what: "it has no line of a core".to_owned(),
        }),
        cores => Ok(cores),
    }
}

/// Lines of cores have the same nine numbers since version 15 (Linux 2.6.30).
fn parse(text: &str) -> BTreeMap<u32, Counts> {
    let core = |line: &str| {
        let (cpu, rest) = line.strip_prefix("cpu")?.split_once(' ')?;
        let mut numbers = rest.split_ascii_whitespace().skip(7).map(str::parse);
        let counts = Counts {
            waited_ns: numbers.next()?.ok()?,
            n_turns: numbers.next()?.ok()?,
        };
        Some((cpu.parse().ok()?, counts))
    };
    text.lines().filter_map(core).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 5.4 wrote it.
    const OLD: &str = "version 15\ntimestamp 4294910297\n\
        cpu0 0 0 0 0 0 0 33549238631 12355199708 100301\n\
        domain0 3 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
        cpu1 0 0 0 0 0 0 42140870108 16531955217 154067\n";

    #[test]
    fn the_counts_of_each_core() {
        let cores = parse(OLD);
        let counts = |waited_ns, n_turns| Counts { waited_ns, n_turns };
        assert_eq!(cores.len(), 2);
        assert_eq!(cores[&0], counts(12_355_199_708, 100_301));
        assert_eq!(cores[&1], counts(16_531_955_217, 154_067));
        assert!(parse("version 15\ncpu0 0 0\ncpux 1 2 3 4 5 6 7 8 9\n").is_empty());
    }

    #[test]
    fn the_mean_is_of_what_came_since() {
        let counts = |waited_ns, n_turns| Counts { waited_ns, n_turns };
        let check = |last: Counts, now: Counts, expected| {
            assert_eq!(last.mean_until(&now), expected);
        };
        check(counts(100, 10), counts(700, 13), Some(200.0));
        check(counts(100, 10), counts(100, 10), None);
        check(counts(100, 10), counts(0, 1), None);
    }
}
