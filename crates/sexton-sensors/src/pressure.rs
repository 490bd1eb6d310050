//! Tells how much time was lost waiting for a CPU, for memory and for I/O (PSI): on the
//! node as a whole, and in the cgroups that have waited most.
//!
//! Source: `/proc/pressure/*`; `*.pressure` of cgroup v2. The ratio of the interval is made
//! from the totals, which the kernel brings up to date on every read; its own averages
//! lag by seconds.
//! Blind to: cgroups deeper than two levels, and cgroup v1, which has no such files; who waits,
//! which the sensor `contention` tells.
//! Overhead: `docs/overhead.md#pressure`.

pub(crate) mod fuzzing;
pub(crate) mod psi;
mod survey;
mod watched;

use std::path::PathBuf;
use std::time::Duration;

use sexton_host::{Host, HostError};
use sexton_model::fact::pressure as fact;
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::Subject;

use crate::{Sensor, SensorSpec};
use survey::survey;
use watched::{RESOURCES, Watched, is_gone, read};

const NAME: &str = "pressure";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "time lost waiting for CPU, memory and I/O, on the node and per cgroup (PSI)",
    emits: &[
        &fact::PRESSURE_CPU_SOME_RATIO,
        &fact::PRESSURE_CPU_SOME_AVG10_RATIO,
        &fact::PRESSURE_CPU_FULL_RATIO,
        &fact::PRESSURE_CPU_FULL_AVG10_RATIO,
        &fact::PRESSURE_MEMORY_SOME_RATIO,
        &fact::PRESSURE_MEMORY_SOME_AVG10_RATIO,
        &fact::PRESSURE_MEMORY_FULL_RATIO,
        &fact::PRESSURE_MEMORY_FULL_AVG10_RATIO,
        &fact::PRESSURE_IO_SOME_RATIO,
        &fact::PRESSURE_IO_SOME_AVG10_RATIO,
        &fact::PRESSURE_IO_FULL_RATIO,
        &fact::PRESSURE_IO_FULL_AVG10_RATIO,
    ],
    every: Duration::from_secs(1),
    deadline: Duration::from_secs(1),
    examine,
    open,
};

/// How often the cgroups to watch are chosen anew.
const SURVEY_EVERY: Duration = Duration::from_secs(60);

/// What switches pressure on. A kernel built without it has no such switch.
const REMEDY: &str = "boot with psi=1, on a kernel built with CONFIG_PSI=y";

const NO_CGROUP2: &str = "cgroup v2 is not mounted, and v1 has no pressure files";

fn examine(host: &Host) -> Vec<Sight> {
    vec![examine_node(host), examine_cgroups(host)]
}

fn examine_node(host: &Host) -> Sight {
    const WHAT: &str = "pressure of the node";
    match read_node(host) {
        Ok(folder) => Sight::sees(WHAT, format!("in {}", folder.display())),
        Err(error) => {
            let gap = gap(&error);
            let sight = Sight::blind(WHAT, gap.text);
            match gap.remedy {
                Some(remedy) => sight.with_remedy(remedy),
                None => sight,
            }
        }
    }
}

fn examine_cgroups(host: &Host) -> Sight {
    const WHAT: &str = "pressure per cgroup";
    let Some(mount) = host.mounts().of_type("cgroup2") else {
        return Sight::blind(WHAT, NO_CGROUP2)
            .with_remedy("boot with systemd.unified_cgroup_hierarchy=1");
    };
    match survey(host, &mount.point) {
        Ok(found) if found.unread.is_none() => {
            let n = found.watched.len();
            Sight::sees(WHAT, format!("{n} below {}", mount.point.display()))
        }
        Ok(found) => {
            let why = found.unread.map(|(error, _)| error.chain());
            Sight::blind(WHAT, why.unwrap_or_default())
                .partly()
                .with_remedy(REMEDY)
        }
        Err(error) => Sight::blind(WHAT, error.chain()).with_remedy(REMEDY),
    }
}

/// The folder of the node's pressure files, if all can be read.
fn read_node(host: &Host) -> Result<PathBuf, HostError> {
    let folder = host.proc("pressure")?;
    for resource in &RESOURCES {
        read(host, &folder.join(resource.name), &mut Vec::new())?;
    }
    Ok(folder)
}

/// A file that is missing, or refuses to be read because the kernel does not count, says
/// that pressure is off.
fn gap(error: &HostError) -> Gap {
    match error.why() {
        Why::Vanished | Why::Unsupported => {
            let text = format!("this kernel does not tell pressure: {}", error.chain());
            Gap::new(NAME, Why::Unsupported, text).with_remedy(REMEDY)
        }
        why => Gap::new(NAME, why, error.chain()),
    }
}

/// The sensor.
struct Pressure {
    buffer: Vec<u8>,
    node: Watched,
    cgroups: Vec<Watched>,
    /// Where cgroup v2 is mounted.
    mount: Option<PathBuf>,
    surveyed: Option<Moment>,
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    let folder = read_node(host).map_err(|error| gap(&error))?;
    let mount = host.mounts().of_type("cgroup2");
    Ok(Box::new(Pressure {
        buffer: Vec::new(),
        node: Watched::node(&folder),
        cgroups: Vec::new(),
        mount: mount.map(|mount| mount.point.clone()),
        surveyed: None,
    }))
}

impl Sensor for Pressure {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        let is_due = |at: Moment| out.now().since(at) >= SURVEY_EVERY;
        if self.surveyed.is_none_or(is_due) {
            self.survey(host, out);
            self.surveyed = Some(out.now());
        }
        self.node
            .tell(host, &mut self.buffer, out, |subject, error, out| {
                out.gap(subject, gap(&error));
            });
        let buffer = &mut self.buffer;
        self.cgroups.retain_mut(|cgroup| {
            let mut is_there = true;
            cgroup.tell(host, buffer, out, |subject, error, out| {
                // A cgroup that ended is no gap: there is nothing left to see.
                if is_gone(&error) {
                    is_there = false;
                } else {
                    out.gap(subject, gap(&error));
                }
            });
            is_there
        });
    }
}

impl Pressure {
    /// Chooses the cgroups to watch. Those watched before go on from where they are.
    fn survey(&mut self, host: &Host, out: &mut Sink) {
        let node = Subject::node();
        let Some(mount) = &self.mount else {
            if self.surveyed.is_none() {
                out.gap(&node, Gap::new(NAME, Why::Unsupported, NO_CGROUP2));
            }
            return;
        };
        let found = match survey(host, mount) {
            Ok(found) => found,
            Err(error) => return out.gap(&node, gap(&error)),
        };
        let mut earlier = std::mem::replace(&mut self.cgroups, found.watched);
        for cgroup in &mut self.cgroups {
            let same = |known: &Watched| known.subject == cgroup.subject;
            if let Some(at) = earlier.iter().position(same) {
                cgroup.succeed(earlier.swap_remove(at));
            }
        }
        if let Some((error, n)) = found.unread {
            let text = format!(
                "the pressure of {n} cgroups cannot be read: {}",
                error.chain()
            );
            out.gap(&node, Gap::new(NAME, error.why(), text).with_remedy(REMEDY));
        }
        if found.n_left_out > 0 {
            let n = found.n_left_out;
            let text = format!("{n} cgroups were not looked at: there are too many to look at all");
            out.gap(&node, Gap::new(NAME, Why::Lost(n), text));
        }
    }
}
