//! Tells who runs and who waits for a core while tasks wait for one much of the time: what each
//! cgroup had and lost, how many of its tasks never sleep, and the processes that had or waited
//! most. Also which cgroups were stopped because their CPU quota was used up, which is waiting by
//! order.
//!
//! Source: `schedstat` and `stat` of processes and threads; `/proc/pressure/cpu`, or the number
//! of runnable tasks in `/proc/loadavg` on a kernel without pressure, tells when to look;
//! `cpu.stat` of cgroup v1 or v2.
//! Blind to: processes that begin and exit between two looks; on a kernel without pressure, waits
//! while fewer tasks can run than half of the cores.
//! Overhead: `docs/overhead.md#contention`.

pub(crate) mod fuzzing;
mod looks;
mod owners;
mod processes;
mod sign;
mod throttle;

use std::time::Duration;

use sexton_host::Host;
use sexton_model::fact::pressure as fact;
use sexton_model::gap::Gap;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::Subject;

use crate::{Sensor, SensorSpec};
use looks::Looks;
use sign::Sign;
use throttle::Throttle;

const NAME: &str = "contention";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "who runs and who waits for a core, and whom a CPU quota stops",
    emits: &[
        &fact::CPU_TASK.fact,
        &fact::CPU_OWNER.fact,
        &fact::CPU_QUOTA_CGROUPS,
        &fact::CPU_QUOTA_CORES,
        &fact::CPU_THROTTLED_RATIO,
    ],
    every: Duration::from_secs(1),
    deadline: Duration::from_secs(2),
    examine,
    open,
};

fn examine(host: &Host) -> Vec<Sight> {
    let waits = match Sign::open(host) {
        Ok(sign) => Sight::sees("who waits for a core", sign.words()),
        Err(gap) => Sight::blind("who waits for a core", gap.text),
    };
    let quotas = match Throttle::new(host).mount() {
        Some(mount) => Sight::sees("CPU quotas", format!("below {}", mount.display())),
        None => Sight::blind(
            "CPU quotas",
            "no hierarchy with the CPU controller is mounted",
        ),
    };
    vec![waits, quotas]
}

/// The sensor.
struct Contention {
    /// `None`: nothing tells when to look, which is said once.
    sign: Option<Sign>,
    unsaid: Option<Gap>,
    looks: Looks,
    throttle: Throttle,
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    let throttle = Throttle::new(host);
    let (sign, unsaid) = match Sign::open(host) {
        Ok(sign) => (Some(sign), None),
        Err(gap) if throttle.mount().is_none() => return Err(gap),
        Err(gap) => (None, Some(gap)),
    };
    Ok(Box::new(Contention {
        sign,
        unsaid,
        looks: Looks::default(),
        throttle,
    }))
}

impl Sensor for Contention {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        self.throttle.poll(host, out);
        if let Some(gap) = self.unsaid.take() {
            out.gap(&Subject::node(), gap);
        }
        if let Some(sign) = &mut self.sign {
            let asks = sign.asks(host, out);
            self.looks.poll(host, asks, out);
        }
    }
}
