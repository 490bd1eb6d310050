//! Tells which packets and connections the node drops for lack of room: in the backlog of a core,
//! in the receive ring of a network device, in the queue of a listening socket, in the table of
//! tracked connections. While a listen queue overflows, also whose it is.
//!
//! Source: `/proc/net/softnet_stat`, `/proc/net/netstat`, `/proc/net/stat/nf_conntrack` and the
//! statistics of network devices with hardware behind them, every 3 s. Only when connections were
//! dropped since the last poll, the kernel's list of listening sockets (sock_diag), and the open
//! files of processes until the owner of a full queue is found, for at most 50 ms of CPU time,
//! followed by a rest of 200 times that.
//! Blind to: other network namespaces than our own; without root, who has a socket; what a
//! socket's own buffer drops.
//! Overhead: `docs/overhead.md#network`.

mod counters;
pub(crate) mod fuzzing;
mod owners;

use std::path::PathBuf;
use std::time::Duration;

use sexton_host::{Host, HostError};
use sexton_model::fact::network as fact;
use sexton_model::gap::Gap;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;

use crate::limits::node::table;
use crate::{Sensor, SensorSpec};
use owners::Owners;

const NAME: &str = "network";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "packets and connections dropped: backlogs, rings, listen queues, tracking",
    emits: &[
        &fact::NETWORK_BACKLOG_DROPS,
        &fact::NETWORK_SQUEEZES,
        &fact::NETWORK_LISTEN_OVERFLOWS,
        &fact::NETWORK_LISTEN_DROPS,
        &fact::NETWORK_CONNTRACK_DROPS,
        &fact::NIC_RING_DROPS,
        &fact::NIC_RECEIVE_ERRORS,
        &fact::LISTEN_QUEUE.fact,
    ],
    every: Duration::from_secs(3),
    deadline: Duration::from_secs(2),
    examine,
    open,
};

/// Network devices that are watched: those with hardware behind them.
const MAX_DEVICES: usize = 32;

fn examine(host: &Host) -> Vec<Sight> {
    const WHAT: &str = "packets and connections that are dropped";
    const WHO: &str = "who has a full listen queue";
    let counters = match softnet(host).and_then(|_| netstat(host)) {
        Ok(_) => Sight::sees(WHAT, "in our network namespace"),
        Err(error) => Sight::blind(WHAT, error.chain()),
    };
    let is_root = sexton_host::machine::effective_user() == 0;
    let who = match host.is_live() && !is_root {
        true => Sight::blind(WHO, "open files of other users' processes cannot be read")
            .partly()
            .with_remedy("run as root"),
        false => Sight::sees(WHO, "by process"),
    };
    vec![counters, who]
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    softnet(host).map_err(|error| gap(&error))?;
    Ok(Box::new(Network::default()))
}

fn gap(error: &HostError) -> Gap {
    Gap::new(NAME, error.why(), error.chain())
}

/// Dropped and squeezed, of all cores.
fn softnet(host: &Host) -> Result<(u64, u64), HostError> {
    let path = host.proc("net/softnet_stat")?;
    let text = host.read_text(&path)?;
    counters::softnet(&text).ok_or_else(|| HostError::Malformed {
        path,
        what: "a line has fewer than three numbers".into(),
    })
}

/// Overflows and drops of listening sockets.
fn netstat(host: &Host) -> Result<(u64, u64), HostError> {
    let path = host.proc("net/netstat")?;
    let text = host.read_text(&path)?;
    let value = |name| counters::netstat(&text, name);
    let both = value("ListenOverflows").zip(value("ListenDrops"));
    both.ok_or_else(|| HostError::Malformed {
        path,
        what: "it has no ListenOverflows".into(),
    })
}

/// The sensor.
#[derive(Default)]
struct Network {
    overflows: Option<u64>,
    owners: Owners,
}

impl Sensor for Network {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        let node = Subject::node();
        match softnet(host) {
            Ok((dropped, squeezed)) => {
                out.sample(&node, &fact::NETWORK_BACKLOG_DROPS, dropped as f64);
                out.sample(&node, &fact::NETWORK_SQUEEZES, squeezed as f64);
            }
            Err(error) => out.gap(&node, gap(&error)),
        }
        tell_tracking(host, out);
        tell_devices(host, out);
        match netstat(host) {
            Ok((overflows, drops)) => {
                out.sample(&node, &fact::NETWORK_LISTEN_OVERFLOWS, overflows as f64);
                out.sample(&node, &fact::NETWORK_LISTEN_DROPS, drops as f64);
                let before = self.overflows.replace(overflows);
                if before.is_some_and(|before| overflows > before) {
                    self.owners.tell(host, out);
                }
            }
            Err(error) => out.gap(&node, gap(&error)),
        }
    }
}

/// A kernel that tracks no connections drops none.
fn tell_tracking(host: &Host, out: &mut Sink) {
    let stat = host.proc("net/stat/nf_conntrack");
    let Ok(stat) = stat.and_then(|path| host.read_text(path)) else {
        return;
    };
    let drops = table(&stat, "entries", &["drop", "early_drop", "insert_failed"]);
    if let Some((_, drops)) = drops {
        let node = Subject::node();
        out.sample(&node, &fact::NETWORK_CONNTRACK_DROPS, drops as f64);
    }
}

fn tell_devices(host: &Host, out: &mut Sink) {
    for (subject, folder) in devices(host) {
        let number = |name: &str| -> Option<u64> {
            let text = host.read_text(folder.join("statistics").join(name));
            text.ok()?.trim().parse().ok()
        };
        let ring = ["rx_missed_errors", "rx_fifo_errors"].map(number);
        if let Some(drops) = ring.into_iter().flatten().reduce(u64::saturating_add) {
            out.sample(&subject, &fact::NIC_RING_DROPS, drops as f64);
        }
        if let Some(errors) = number("rx_errors") {
            out.sample(&subject, &fact::NIC_RECEIVE_ERRORS, errors as f64);
        }
    }
}

/// Network devices with hardware behind them.
fn devices(host: &Host) -> Vec<(Subject, PathBuf)> {
    let Ok(top) = host.sys("class/net") else {
        return Vec::new();
    };
    let entries = host.list(&top).unwrap_or_default();
    let folders = entries
        .into_iter()
        .map(|entry| (top.join(&entry.name), entry.name));
    let real = folders.filter(|(folder, _)| host.root().meta(&folder.join("device")).is_ok());
    real.take(MAX_DEVICES)
        .map(|(folder, name)| {
            let name = escape(name.as_encoded_bytes());
            (Subject::new(SubjectKind::Device, name), folder)
        })
        .collect()
}
