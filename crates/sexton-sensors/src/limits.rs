//! Tells how much of the kernel's limits is used: open files, threads, PIDs, tracked
//! connections, neighbours, memory cgroup ids, tasks of cgroups that limit them, open files of the
//! process that is nearest to its limit, inotify of the user who has most, and local ports where
//! one destination takes more than half of them.
//!
//! Source: small files of procfs; `pids.current`, `pids.max` and `pids.events` of the 64
//! cgroups nearest to their limit, which are chosen anew every minute, and at every poll of the
//! first one, from at most 512.
//! Blind to: processes of other users, without root. Connections, their drops and local ports are those
//! of our own network namespace. Inotify watches are at least those that a look had time for.
//! Memory cgroup ids on cgroup v1, where live ones are not counted: a dying one gives its id
//! back.
//! Overhead: about 20 small files, and two for each cgroup, every 10 s; the open files of all
//! processes once a minute, in looks of 50 ms at most and 0.5 % of a core.

mod cgroups;
pub(crate) mod fuzzing;
pub(crate) mod node;
mod open_files;
mod ports;

use std::time::Duration;

use sexton_host::{Host, HostError};
use sexton_model::fact::limit as fact;
use sexton_model::gap::Gap;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::Subject;

use crate::{Sensor, SensorSpec};
use cgroups::Cgroups;
use open_files::OpenFiles;
use ports::Ports;

const NAME: &str = "limits";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "limits of the kernel: files, threads, PIDs, connections, neighbours, cgroups, inotify, ports",
    emits: &[
        &fact::LIMIT_USED_RATIO,
        &fact::LIMIT_USED,
        &fact::LIMIT_MOST,
        &fact::LIMIT_HITS,
    ],
    every: Duration::from_secs(10),
    deadline: Duration::from_secs(2),
    examine,
    open,
};

/// How much of a limit is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Usage {
    used: u64,
    most: u64,
    /// How often it was reached, where the kernel counts that.
    hits: Option<u64>,
}

impl Usage {
    fn ratio(&self) -> f64 {
        self.used as f64 / self.most.max(1) as f64
    }

    fn tell(&self, subject: &Subject, out: &mut Sink) {
        out.sample(subject, &fact::LIMIT_USED_RATIO, self.ratio());
        out.sample(subject, &fact::LIMIT_USED, self.used as f64);
        out.sample(subject, &fact::LIMIT_MOST, self.most as f64);
        if let Some(hits) = self.hits {
            out.sample(subject, &fact::LIMIT_HITS, hits as f64);
        }
    }
}

fn examine(host: &Host) -> Vec<Sight> {
    let mut sights = Vec::new();
    for limit in node::LIMITS {
        match (limit.read)(host) {
            Ok(Some(usage)) => {
                let seen = format!("{} of {}", usage.used, usage.most);
                sights.push(Sight::sees(limit.name, seen));
            }
            // What this kernel does not have cannot be reached.
            Ok(None) => {}
            Err(error) => sights.push(Sight::blind(limit.name, error.chain())),
        }
    }
    sights
}

/// The sensor.
struct Limits {
    cgroups: Cgroups,
    open_files: OpenFiles,
    ports: Ports,
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    host.proc("").map_err(|error| gap(&error))?;
    Ok(Box::new(Limits {
        cgroups: Cgroups::new(host),
        open_files: OpenFiles::default(),
        ports: Ports::default(),
    }))
}

fn gap(error: &HostError) -> Gap {
    Gap::new(NAME, error.why(), error.chain())
}

impl Sensor for Limits {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        for limit in node::LIMITS {
            match (limit.read)(host) {
                Ok(Some(usage)) => usage.tell(&limit.subject(), out),
                Ok(None) => {}
                Err(error) => out.gap(&limit.subject(), gap(&error)),
            }
        }
        self.cgroups.poll(host, out);
        self.open_files.poll(host, out);
        self.ports.poll(host, out);
    }
}
