//! Describes the machine: kernel, distribution, what it runs on, its size, the settings
//! that matter here, and the image it was made from.
//!
//! Source: small files below `/proc/sys`, `/sys` and `/etc`; nothing is asked over the
//! network, so a cloud's own name for the image or zone is not known.
//! Blind to: settings that were changed and changed back in between.
//! Overhead: `docs/overhead.md#host`.

mod describe;
pub(crate) mod fuzzing;
mod parse;

use std::path::PathBuf;
use std::time::Duration;

use sexton_host::{Host as Node, HostError, machine};
use sexton_model::fact::host::HostDescription;
use sexton_model::fact::{Fact, host as fact};
use sexton_model::gap::Gap;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::Subject;

use crate::{Sensor, SensorSpec};
use describe::{Description, is_absent};

const NAME: &str = "host";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "the machine itself: kernel, distribution, size, settings, image",
    emits: &[
        &fact::HOST_DESCRIPTION.fact,
        &fact::HOST_CPUS,
        &fact::HOST_NUMA_NODES,
        &fact::HOST_MEMORY_BYTES,
    ],
    every: Duration::from_secs(600),
    deadline: Duration::from_secs(5),
    examine,
    open,
};

/// What is counted, and how.
type Count = (&'static Fact, fn(&Node) -> Result<u64, HostError>);

static COUNTS: [Count; 3] = [
    (&fact::HOST_CPUS, cpus),
    (&fact::HOST_NUMA_NODES, numa_nodes),
    (&fact::HOST_MEMORY_BYTES, memory_bytes),
];

fn cpus(node: &Node) -> Result<u64, HostError> {
    let path = node.sys("devices/system/cpu/online")?;
    read_count(node, path, parse::count_of_list)
}

/// A kernel built without NUMA knows no nodes, which is to say one.
fn numa_nodes(node: &Node) -> Result<u64, HostError> {
    let path = node.sys("devices/system/node/online")?;
    match read_count(node, path, parse::count_of_list) {
        Err(error) if is_absent(&error) => cpus(node).map(|_| 1),
        found => found,
    }
}

fn memory_bytes(node: &Node) -> Result<u64, HostError> {
    read_count(node, node.proc("meminfo")?, parse::memory_bytes)
}

fn read_count(
    node: &Node,
    path: PathBuf,
    parse: fn(&str) -> Option<u64>,
) -> Result<u64, HostError> {
    let text = node.read_text(&path)?;
    parse(&text).ok_or_else(|| HostError::Malformed {
        path,
        what: "it does not hold what is looked for".into(),
    })
}

fn examine(node: &Node) -> Vec<Sight> {
    let description = Description::of(node);
    let n_details = description.entries.len();
    let details = match description.unread.first() {
        None => Sight::sees("description", format!("{n_details} details")),
        Some(error) => Sight::blind("description", error.chain())
            .partly()
            .with_remedy("run as root: sudo sexton doctor"),
    };
    let counts = COUNTS.iter().filter_map(|(fact, count)| {
        let error = count(node).err()?;
        Some(Sight::blind(fact.help, error.chain()))
    });
    std::iter::once(details).chain(counts).collect()
}

/// The sensor.
struct Describer;

fn open(node: &Node) -> Result<Box<dyn Sensor>, Gap> {
    // An image that has not booted has no release of a running kernel, and is still
    // described; but a node without procfs is none.
    match machine::kernel_release(node) {
        Err(error) if !is_absent(&error) => Err(gap(&error)),
        _ => Ok(Box::new(Describer)),
    }
}

impl Sensor for Describer {
    fn poll(&mut self, host: &Node, out: &mut Sink) {
        let subject = Subject::node();
        let description = Description::of(host);
        let now = out.now();
        let says = HostDescription {
            entries: description.entries,
        };
        out.event(now, &subject, &fact::HOST_DESCRIPTION, says);
        for error in &description.unread {
            out.gap(&subject, gap(error));
        }
        for (fact, count) in &COUNTS {
            match count(host) {
                Ok(number) => out.sample(&subject, fact, number as f64),
                Err(error) => out.gap(&subject, gap(&error)),
            }
        }
    }
}

fn gap(error: &HostError) -> Gap {
    Gap::new(NAME, error.why(), error.chain())
}
