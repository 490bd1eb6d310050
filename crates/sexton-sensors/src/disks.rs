//! Tells how busy disks are and how long their requests take; and, while one is busy, which
//! processes read, write and wait.
//!
//! Source: `/proc/diskstats` every second. While a disk has been busy for half of a second,
//! also `stat` and `io` of the threads of all processes outside the kernel, every 2 s and for at
//! most 50 ms of CPU time, followed by a rest of 200 times that; and the open files of the 16
//! that used disks or waited most.
//! Blind to: network filesystems; a process that lives for less than 2 s; without root, bytes of
//! other users' processes; which of several disks a process meant. What reached a disk late is counted to the process that wrote it into
//! the cache.
//! Overhead: `docs/overhead.md#disks`.

mod files;
pub(crate) mod fuzzing;
mod table;
mod users;

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_host::{Host, HostError};
use sexton_model::fact::disk::{self as fact, DiskSeen};
use sexton_model::gap::Gap;
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::{Subject, SubjectKind};

use crate::{Sensor, SensorSpec};
use table::Counters;
use users::Users;

const NAME: &str = "disks";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "disks: how busy, how slow, and which processes read, write and wait",
    emits: &[
        &fact::DISK_SEEN.fact,
        &fact::DISK_BUSY_RATIO,
        &fact::DISK_QUEUE,
        &fact::DISK_COMPLETED,
        &fact::DISK_IN_FLIGHT,
        &fact::DISK_LATENCY_NS,
        &fact::DISK_READ_BYTES,
        &fact::DISK_WRITTEN_BYTES,
        &fact::DISK_WAITERS,
        &fact::DISK_USER.fact,
    ],
    every: Duration::from_secs(1),
    deadline: Duration::from_secs(1),
    examine,
    open,
};

/// Disks that are watched; the busiest of a large node are among the first that it found.
const MAX_DISKS: usize = 64;

/// From this part of a second on a disk is busy enough to ask who uses it.
const BUSY: f64 = 0.5;

fn examine(host: &Host) -> Vec<Sight> {
    const WHAT: &str = "requests of disks";
    const WHO: &str = "who reads and writes";
    let counters = match read(host) {
        Ok(disks) => Sight::sees(WHAT, format!("{} block devices", disks.len())),
        Err(error) => Sight::blind(WHAT, error.chain()),
    };
    let own = host.proc("self/io").and_then(|path| host.read_text(path));
    let is_root = sexton_host::machine::effective_user() == 0;
    let who = match own {
        Err(error) => Sight::blind(WHO, error.chain()),
        Ok(_) if host.is_live() && !is_root => {
            Sight::blind(WHO, "bytes of other users' processes cannot be read")
                .partly()
                .with_remedy("run as root")
        }
        Ok(_) => Sight::sees(WHO, "by process"),
    };
    vec![counters, who]
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    read(host).map_err(|error| gap(&error))?;
    Ok(Box::new(Disks::default()))
}

fn gap(error: &HostError) -> Gap {
    Gap::new(NAME, error.why(), error.chain())
}

/// The counters of all block devices that are no partitions and have ever been used.
fn read(host: &Host) -> Result<Vec<(String, Counters)>, HostError> {
    let path = host.proc("diskstats")?;
    let text = host.read_text(&path)?;
    let mut disks = table::parse(&text);
    disks.retain(|(name, counters)| counters.is_used() && is_whole(host, name));
    disks.truncate(MAX_DISKS);
    Ok(disks)
}

/// Partitions are below their disk in sysfs, and have no folder of their own in `block`.
fn is_whole(host: &Host, name: &str) -> bool {
    let folder = host.sys(&format!("block/{}", name.replace('/', "!")));
    folder.is_ok_and(|folder| host.read(folder.join("stat")).is_ok())
}

/// The sensor.
#[derive(Default)]
struct Disks {
    before: BTreeMap<String, Known>,
    users: Users,
}

struct Known {
    at: Moment,
    counters: Counters,
}

impl Sensor for Disks {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        let disks = match read(host) {
            Ok(disks) => disks,
            Err(error) => return out.gap(&Subject::node(), gap(&error)),
        };
        let mut busiest: f64 = 0.0;
        let mut known = BTreeMap::new();
        for (name, counters) in disks {
            let subject = Subject::new(SubjectKind::Device, name.as_str());
            match self.before.get(&name) {
                Some(before) => busiest = busiest.max(tell(before, &counters, &subject, out)),
                None => out.event(out.now(), &subject, &fact::DISK_SEEN, seen(host, &name)),
            }
            let at = out.now();
            known.insert(name, Known { at, counters });
        }
        self.before = known;
        self.users.poll(host, out, busiest >= BUSY);
    }
}

fn seen(host: &Host, name: &str) -> DiskSeen {
    let below = |file: &str| host.sys(&format!("block/{}/{file}", name.replace('/', "!")));
    let rotational = below("queue/rotational").and_then(|path| host.read_text(path));
    let parts = below("slaves").and_then(|path| host.list(path));
    let parts = parts.unwrap_or_default();
    let mut made_of: Vec<String> = parts
        .iter()
        .map(|part| sexton_model::text::escape(part.name.as_encoded_bytes()))
        .collect();
    made_of.sort();
    DiskSeen {
        rotational: rotational.ok().map(|text| text.trim() == "1"),
        made_of,
    }
}

/// Tells what a disk did since the last poll, and returns how busy it was.
fn tell(before: &Known, now: &Counters, disk: &Subject, out: &mut Sink) -> f64 {
    let within = out.now().since(before.at);
    let Some(change) = now.since(&before.counters, within) else {
        // The counters began anew.
        return 0.0;
    };
    for (fact, value) in [
        (&fact::DISK_BUSY_RATIO, change.busy),
        (&fact::DISK_QUEUE, change.queue),
        (&fact::DISK_COMPLETED, change.completed as f64),
        (&fact::DISK_IN_FLIGHT, now.in_flight as f64),
        (&fact::DISK_READ_BYTES, now.read_bytes as f64),
        (&fact::DISK_WRITTEN_BYTES, now.written_bytes as f64),
    ] {
        out.sample(disk, fact, value);
    }
    if let Some(latency) = change.latency {
        out.sample(disk, &fact::DISK_LATENCY_NS, latency.as_nanos() as f64);
    }
    change.busy
}
