//! Times network polling on every core: since when work waits, and who holds the core.
//!
//! Source: a BPF program on the softirq, scheduler and NAPI tracepoints. Its stamps are
//! read without asking the core that is stuck. What holds a core is looked at by a timer
//! on that core, five times a second while something has waited there for long. The one who
//! is named is the one that had the core longest during the wait.
//! Without BPF, `/proc` of the threads that poll (`napi/by_proc.rs`), which sees less.
//! Blind to: work that waits inside a device; a core that came online after the start
//! (its waits are timed, but not who holds it); a wake on its way to a core that has
//! interrupts off.
//! Overhead: `docs/overhead.md#napi`.

mod by_proc;
mod holder;
mod sampled;
mod samples;
mod softirqs;
mod stalls;

use std::time::Duration;

use sexton_bpf::LoadError;
use sexton_bpf::prog::napi::{Core, Options, Served, Watch, What};
use sexton_host::Host;
use sexton_model::fact::napi::{self as fact, NapiDelay};
use sexton_model::fact::sexton::SEXTON_STEP_DOWN;
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::Subject;

use crate::symbols::Symbols;
use crate::{Sensor, SensorSpec, bpf, tasks};
use by_proc::ByProc;
use holder::Holder;
use samples::Samples;
use stalls::{Ended, Stalls, Told, Wait, Waiter};

const NAME: &str = "napi";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "network polling: since when it waits on each core, and who holds the core",
    emits: &[
        &fact::NAPI_WAIT_NS,
        &fact::NAPI_DELAY_P50_NS,
        &fact::NAPI_DELAY_P99_NS,
        &fact::NAPI_DELAY_MAX_NS,
        &fact::NAPI_TX_DELAY_MAX_NS,
        &fact::NAPI_THREAD_DELAY_MAX_NS,
        &fact::NAPI_POLL_GAP_NS,
        &fact::NAPI_STARVED.fact,
        &fact::NAPI_SERVED.fact,
        &SEXTON_STEP_DOWN.fact,
    ],
    every: Duration::from_millis(250),
    deadline: Duration::from_secs(2),
    examine,
    open,
};

/// Network polling that waits longer is starved.
///
/// Chosen: a tenth of the 5 s after which a driver resets its device, and far above what
/// a busy core takes (two ticks, 20 ms).
const THRESHOLD: Duration = Duration::from_millis(500);

/// A core where something has waited for this part of the threshold is looked at, so that
/// there is a look by the time the threshold is reached.
const ARM_AT: u32 = 4;

struct Napi {
    watch: Watch,
    stalls: Stalls,
    samples: Samples,
    symbols: Symbols,
    /// Ended waits of each core that have been told.
    n_served: Vec<u64>,
    /// What `open` could not do, until it is told.
    untold: Vec<Gap>,
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
    const WAITS: &str = "waits of polling";
    const HOLDERS: &str = "what holds a core";
    if !host.is_live() {
        return vec![bpf::blind(WAITS, bpf::not_running(NAME))];
    }
    let shows = "process and kernel stack, by a timer on the core";
    if let Err(gap) = load(host) {
        let by_proc = match ByProc::open(host, gap.clone()) {
            Ok(by_proc) => by_proc,
            Err(gap) => return vec![bpf::blind(WAITS, gap)],
        };
        let holders = match by_proc.names_holders() {
            Ok(()) => Sight::sees(HOLDERS, shows),
            Err(gap) => bpf::blind(HOLDERS, gap.clone()),
        };
        return vec![
            bpf::instead(WAITS, "/proc of the threads that poll", &gap),
            holders,
        ];
    }
    let holders = match Watch::may_look_at(0) {
        Ok(()) => Sight::sees(HOLDERS, shows),
        Err(error) => Sight::blind(HOLDERS, format!("a timer on a core was refused: {error}"))
            .with_remedy("allow the perf_event_open() system call"),
    };
    let waits = "BPF on the softirq, scheduler and NAPI tracepoints";
    vec![Sight::sees(WAITS, waits), holders]
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    if !host.is_live() {
        return Err(bpf::not_running(NAME));
    }
    match open_program(host) {
        Ok(napi) => Ok(Box::new(napi)),
        Err(gap) => Ok(Box::new(ByProc::open(host, gap)?)),
    }
}

fn open_program(host: &Host) -> Result<Napi, Gap> {
    let mut watch = load(host)?;
    watch.attach().map_err(|error| failure(host, &error))?;
    let n_cores = watch.n_cores();
    let refused: Vec<(u32, std::io::Error)> = (0..n_cores)
        .filter_map(|cpu| Some((cpu, watch.look_at(cpu).err()?)))
        .collect();
    // Cores that may come but are not there refuse too; if all do, there is a reason.
    let untold = match &refused[..] {
        [.., (_, error)] if refused.len() == n_cores as usize => vec![Gap::new(
            NAME,
            Why::Denied,
            format!("what holds a core is not looked at: {error}"),
        )],
        _ => Vec::new(),
    };
    Ok(Napi {
        watch,
        stalls: Stalls::default(),
        samples: Samples::new(n_cores),
        symbols: Symbols::default(),
        n_served: vec![0; n_cores as usize],
        untold,
    })
}

impl Sensor for Napi {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        for gap in self.untold.drain(..) {
            out.gap(&Subject::node(), gap);
        }
        let now_ns = out.now().as_ns();
        let cores: Vec<Core> = (0..self.watch.n_cores())
            .filter_map(|cpu| self.watch.core(cpu))
            .collect();
        let waits = self.live(host, &cores, now_ns);
        self.arm(&waits, &cores, now_ns);
        self.samples.take(&mut self.watch, &cores, &waits, out);
        let starved = waits.into_iter().filter(|wait| is_long(wait, now_ns, 1));
        let ended = self.ended(&cores, out);
        for told in self.stalls.step(starved.collect(), ended) {
            self.tell(host, &told, &cores, out);
        }
    }
}

/// What waits for a core since when, from its stamps in the kernel's order; a stamp of zero is no
/// wait. A `ksoftirqd` is also woken for timers, RCU and block devices: polling waits for it only
/// while work of the network does.
fn waits_of([tx, rx, ksoftirqd]: [u64; 3]) -> impl Iterator<Item = (Waiter, u64)> {
    let network = [tx, rx].into_iter().filter(|since_ns| *since_ns != 0).min();
    let polls = network.filter(|_| ksoftirqd != 0);
    let polls = polls.map_or(0, |since_ns| since_ns.max(ksoftirqd));
    let all = [
        (Waiter::NetTx, tx),
        (Waiter::NetRx, rx),
        (Waiter::Ksoftirqd, polls),
    ];
    all.into_iter().filter(|(_, since_ns)| *since_ns != 0)
}

fn is_long(wait: &Wait, now_ns: u64, part: u32) -> bool {
    Duration::from_nanos(now_ns.saturating_sub(wait.since_ns)) >= THRESHOLD / part
}

impl Napi {
    /// What waits now. Threads only when they wait for long: where they do so is a question
    /// to procfs.
    fn live(&self, host: &Host, cores: &[Core], now_ns: u64) -> Vec<Wait> {
        let mut waits = Vec::new();
        for (cpu, core) in (0..).zip(cores) {
            waits.extend(waits_of(core.since_ns).map(|(waiter, since_ns)| Wait {
                waiter,
                cpu,
                since_ns,
                ended: None,
            }));
        }
        for (pid, thread) in self.watch.threads() {
            let mut wait = Wait {
                waiter: Waiter::Thread(pid),
                cpu: 0,
                since_ns: thread.since_ns,
                ended: None,
            };
            if thread.since_ns != 0
                && is_long(&wait, now_ns, ARM_AT)
                && let Some(place) = tasks::place(host, pid)
            {
                wait.cpu = place.cpu;
                waits.push(wait);
            }
        }
        waits
    }

    fn arm(&mut self, waits: &[Wait], cores: &[Core], now_ns: u64) {
        for (cpu, core) in (0..).zip(cores) {
            let mut here = waits.iter().filter(|wait| wait.cpu == cpu);
            let armed = here.any(|wait| is_long(wait, now_ns, ARM_AT));
            if armed != (core.armed != 0) {
                self.watch.arm(cpu, armed);
            }
        }
    }

    /// Waits over the threshold that have ended since the last poll.
    fn ended(&mut self, cores: &[Core], out: &mut Sink) -> Vec<Wait> {
        let mut ended = Vec::new();
        for ((cpu, core), told) in (0..).zip(cores).zip(&mut self.n_served) {
            let kept = core.served.len() as u64;
            let from = (*told).max(core.n_served.saturating_sub(kept));
            if from > *told {
                let text = "network polling starved and was served more often than is kept";
                let gap = Gap::new(NAME, Why::Lost(from - *told), text);
                out.gap(&Subject::cpu(cpu), gap);
            }
            let new = (from..core.n_served).map(|n| &core.served[(n % kept) as usize]);
            ended.extend(new.map(|served| wait_of(cpu, served)));
            *told = core.n_served;
        }
        ended
    }

    fn tell(&mut self, host: &Host, told: &Told, cores: &[Core], out: &mut Sink) {
        let wait = told.wait();
        let ended = wait.ended.as_ref();
        let end_ns = ended.map_or(out.now().as_ns(), |ended| ended.at_ns);
        let core = cores.get(wait.cpu as usize);
        let holder = match ended {
            Some(ended) => ended.holder.clone(),
            None => core.and_then(|core| Holder::now(host, wait.since_ns, end_ns, core)),
        };
        let mut delay = delay_of(host, wait, holder.as_ref(), end_ns);
        if let (Told::Starved(_), Some(holder), Some(core)) = (told, holder, core)
            && let Some(frames) = holder.frames(&core.look, wait.since_ns..=end_ns)
        {
            delay.stack = self.symbols.stack(host, frames);
        }
        tell(told, delay, end_ns, out);
    }
}

/// What is told of a wait until that moment, without a stack.
fn delay_of(host: &Host, wait: &Wait, holder: Option<&Holder>, end_ns: u64) -> NapiDelay {
    let is_own = holder.is_some_and(|holder| holder.is_own(host));
    NapiDelay {
        what: Some(name(host, wait)),
        waited_ns: Some(end_ns.saturating_sub(wait.since_ns)),
        holder_pid: holder.map(|holder| holder.pid),
        holder_comm: holder.and_then(|holder| holder.comm.clone()),
        holder_since_ns: holder.map(|holder| holder.since_ns),
        holder_ns: holder.map(|holder| holder.ns),
        holder_own: is_own.then_some(true),
        stack: Vec::new(),
    }
}

fn tell(told: &Told, delay: NapiDelay, end_ns: u64, out: &mut Sink) {
    let fact = match told {
        Told::Starved(_) => &fact::NAPI_STARVED,
        Told::Served(_) => &fact::NAPI_SERVED,
    };
    let at = Moment::from_ns(end_ns);
    out.event(at, &Subject::cpu(told.wait().cpu), fact, delay);
}

fn name(host: &Host, wait: &Wait) -> String {
    match wait.waiter {
        Waiter::NetTx => "net_tx".into(),
        Waiter::NetRx => "net_rx".into(),
        Waiter::Ksoftirqd => format!("ksoftirqd/{}", wait.cpu),
        Waiter::Thread(pid) => tasks::comm(host, pid).unwrap_or_else(|| format!("pid {pid}")),
    }
}

fn wait_of(cpu: u32, served: &Served) -> Wait {
    let waiter = match served.what {
        What::NET_TX => Waiter::NetTx,
        What::NET_RX => Waiter::NetRx,
        What::KSOFTIRQD => Waiter::Ksoftirqd,
        _ => Waiter::Thread(served.waiter_pid),
    };
    Wait {
        waiter,
        cpu,
        since_ns: served.since_ns,
        ended: Some(Ended {
            at_ns: served.until_ns,
            holder: Holder::of(&served.holder),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stamps: [u64; 3], expected: &[(Waiter, u64)]) {
        let waits: Vec<_> = waits_of(stamps).collect();
        assert_eq!(waits, expected, "{stamps:?}");
    }

    #[test]
    fn a_woken_ksoftirqd_keeps_polling_waiting_only_while_the_network_has_work() {
        check([0, 0, 0], &[]);
        check([0, 0, 70], &[]);
        check([0, 50, 0], &[(Waiter::NetRx, 50)]);
        check([0, 50, 70], &[(Waiter::NetRx, 50), (Waiter::Ksoftirqd, 70)]);
        check(
            [90, 80, 70],
            &[
                (Waiter::NetTx, 90),
                (Waiter::NetRx, 80),
                (Waiter::Ksoftirqd, 80),
            ],
        );
    }
}
