//! Takes the time of one read of `memory.numa_stat`, only where somebody asks for it.
//!
//! Source: the file of the root of the memory hierarchy, read once, and that of a leaf.
//! Danger: before Linux 5.8 on cgroup v1 such a read walks every dying cgroup and holds its
//! core meanwhile, a second for 65,000 on two CPUs, more on more; that is the incident
//! itself, once. A signal does not end it, so the deadline only ends the wait for it.
//! Blind to: what a reader that reads it again and again costs; CPU002 sees that.
//! Overhead: `docs/overhead.md#numa_stat`.

use std::time::Duration;

use sexton_host::Host;
use sexton_model::fact::memcg::MEMCG_READS;
use sexton_model::gap::{Gap, Why};
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::Subject;

use crate::memcg::{self, CensusOptions};
use crate::{Sensor, SensorSpec};

/// The name of the sensor.
pub const NAME: &str = "numa_stat";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "what one read of memory.numa_stat costs; only when asked for, and once",
    emits: &[&MEMCG_READS.fact],
    every: Duration::from_secs(60),
    deadline: Duration::from_secs(10),
    examine,
    open,
};

fn examine(host: &Host) -> Vec<Sight> {
    const WHAT: &str = "the cost of one read of memory.numa_stat";
    vec![match memcg::numa_file(host) {
        Ok(file) => Sight::sees(WHAT, format!("by {}, when asked for", file.display())),
        Err(gap) => Sight::blind(WHAT, gap.text),
    }]
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    memcg::numa_file(host)?;
    Ok(Box::new(NumaStat { is_done: false }))
}

struct NumaStat {
    is_done: bool,
}

impl Sensor for NumaStat {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        if std::mem::replace(&mut self.is_done, true) {
            return;
        }
        let told = memcg::census(host, CensusOptions::default())
            .and_then(|census| memcg::time_numa_stat(host, &census));
        match told {
            Ok(reads) => out.event(out.now(), &Subject::node(), &MEMCG_READS, reads),
            Err(gap) => out.gap(
                &Subject::node(),
                Gap {
                    sensor: NAME.into(),
                    ..gap
                },
            ),
        }
    }
}

/// That the file is not there.
pub(crate) fn absent() -> Gap {
    let text = "this kernel has no memory.numa_stat, which takes CONFIG_NUMA";
    Gap::new(NAME, Why::Unsupported, text)
}
