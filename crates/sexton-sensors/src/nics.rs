//! Watches network devices: links, queues, what drivers count, where interrupts go.
//!
//! Source: `/sys/class/net`, the ethtool ioctl, `/proc/irq`. What counters of drivers
//! mean is in `signatures/nic-counters.toml`. Values are told when they change and once
//! a minute; maps of CPUs are looked at once a minute.
//! Blind to: other network namespaces than our own, what a link did between two looks
//! but for the number of changes, and drivers whose counters are not known.
//! Overhead: `docs/overhead.md#nics`.

mod counters;
mod device;
mod files;
pub(crate) mod fuzzing;
mod maps;
mod teller;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use sexton_host::ethtool::Ethtool;
use sexton_host::{Host, HostError};
use sexton_model::fact::nic::{self as fact, NicGone};
use sexton_model::gap::{Gap, Why};
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::Subject;

use crate::{Sensor, SensorSpec};
use counters::Counters;
use device::Device;
use teller::Teller;

const NAME: &str = "nics";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "network devices: links, stuck queues, resets, where interrupts go",
    emits: &[
        &fact::NIC_IDENTITY.fact,
        &fact::NIC_GONE.fact,
        &fact::NIC_LINK.fact,
        &fact::NIC_LINK_UP,
        &fact::NIC_CARRIER_CHANGES,
        &fact::NIC_NAPI_THREADED,
        &fact::NIC_TX_QUEUES,
        &fact::NIC_RX_QUEUES,
        &fact::NIC_INTERRUPT.fact,
        &fact::NIC_QUEUE_CPUS.fact,
        &fact::NIC_TX_TIMEOUTS,
        &fact::NIC_BQL_LIMIT_BYTES,
        &fact::NIC_BQL_INFLIGHT_BYTES,
        &fact::NIC_BQL_STALLS,
        &fact::NIC_BQL_STALL_MAX_TICKS,
        &fact::NIC_BQL_STALL_THRESHOLD_NS,
        &fact::NIC_RESETS,
        &fact::NIC_RESETS_FAILED,
        &fact::NIC_RESETS_STARVED,
        &fact::NIC_RESETS_COMPLETION,
        &fact::NIC_RESETS_INTERRUPT,
        &fact::NIC_RESETS_WATCHDOG,
        &fact::NIC_RESETS_DEVICE,
        &fact::NIC_RESETS_ADMIN,
        &fact::NIC_DRIVER_TX_TIMEOUTS,
        &fact::NIC_KEEP_ALIVE_TIMEOUTS,
        &fact::NIC_MISSED_COMPLETIONS,
        &fact::NIC_MISSED_INTERRUPTS,
        &fact::NIC_QUEUE_STOPS,
        &fact::NIC_QUEUE_WAKES,
        &fact::NIC_QUEUE_BUSY,
        &fact::NIC_SENT_PACKETS,
        &fact::NIC_POLLS,
        &fact::NIC_POLLS_COMPLETE,
        &fact::NIC_RECOVERIES,
        &fact::NIC_COMPLETION_ERRORS,
        &fact::NIC_INTERFACE_UPS,
        &fact::NIC_INTERFACE_DOWNS,
        &fact::NIC_BW_IN_EXCEEDED,
        &fact::NIC_BW_OUT_EXCEEDED,
        &fact::NIC_PPS_EXCEEDED,
        &fact::NIC_CONNTRACK_EXCEEDED,
        &fact::NIC_LINKLOCAL_EXCEEDED,
    ],
    every: Duration::from_secs(5),
    deadline: Duration::from_secs(4),
    examine,
    open,
};

/// Devices that are watched, those with hardware behind them first. Every container has
/// one, so there may be thousands.
const MAX_DEVICES: usize = 256;

/// Everything is looked at and told once in so many polls: once a minute.
const POLLS_PER_FULL_LOOK: u64 = 12;

struct Nics {
    counters: Counters,
    ethtool: Result<Ethtool, Gap>,
    devices: BTreeMap<OsString, Device>,
    teller: Teller,
    n_polls: u64,
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    let counters = Counters::load().map_err(|what| Gap::new(NAME, Why::Bug, what))?;
    list(host).map_err(|error| gap_of(&error))?;
    Ok(Box::new(Nics {
        counters,
        ethtool: host.ethtool().map_err(|error| gap_of(&error)),
        devices: BTreeMap::new(),
        teller: Teller::default(),
        n_polls: 0,
    }))
}

impl Sensor for Nics {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        let is_full = self.n_polls.is_multiple_of(POLLS_PER_FULL_LOOK);
        self.n_polls += 1;
        self.teller.everything = is_full;
        if let Err(error) = self.find_devices(host, out) {
            return out.gap(&Subject::node(), gap_of(&error));
        }
        for device in self.devices.values_mut() {
            device.look_at_link(host, &mut self.teller, out);
            device.look_at_queues(host, &mut self.teller, out);
        }
        if is_full {
            self.look_at_maps(host, out);
        }
        // Last, because the kernel has one lock for all of this, and it may be held long.
        self.ask_drivers(is_full, out);
    }
}

impl Nics {
    /// Takes in devices that are new and lets go of those that are gone.
    fn find_devices(&mut self, host: &Host, out: &mut Sink) -> Result<(), HostError> {
        let (names, n_left_out) = list(host)?;
        if n_left_out > 0 {
            let text = format!("only {MAX_DEVICES} network devices are watched");
            let gap = Gap::new(NAME, Why::Lost(n_left_out), text);
            self.teller.gap(out, &Subject::node(), gap);
        }
        let folder = host.sys("class/net")?;
        let mut found = BTreeMap::new();
        for name in names {
            let below = folder.join(&name);
            // Without a number it went away just now.
            let Ok(ifindex) = files::number(host, &below.join("ifindex")) else {
                continue;
            };
            let device = match self.devices.remove(&name) {
                Some(device) if device.ifindex == ifindex => device,
                Some(other) => {
                    self.let_go(&other, out);
                    Device::new(&name, below, ifindex)
                }
                None => Device::new(&name, below, ifindex),
            };
            found.insert(name, device);
        }
        let gone = std::mem::replace(&mut self.devices, found);
        for device in gone.values() {
            self.let_go(device, out);
        }
        Ok(())
    }

    fn let_go(&mut self, device: &Device, out: &mut Sink) {
        self.teller.forget(&device.name);
        let ifindex = u32::try_from(device.ifindex).ok();
        let gone = NicGone { ifindex };
        out.event(out.now(), &device.subject, &fact::NIC_GONE, gone);
    }

    fn look_at_maps(&mut self, host: &Host, out: &mut Sink) {
        let interrupts = host
            .proc("interrupts")
            .and_then(|path| host.read_text(path));
        if let Err(error) = &interrupts {
            self.teller.failed(out, &Subject::node(), error);
        }
        let interrupts = interrupts.unwrap_or_default();
        for device in self.devices.values() {
            let threaded = files::number(host, &device.folder.join("threaded"));
            let threaded = threaded.map(|n| f64::from(u8::from(n > 0)));
            let fact = &fact::NIC_NAPI_THREADED;
            self.teller.optional(out, &device.subject, fact, threaded);
            maps::look_at_interrupts(host, device, &interrupts, &mut self.teller, out);
            maps::look_at_queues(host, device, &mut self.teller, out);
        }
    }

    fn ask_drivers(&mut self, is_full: bool, out: &mut Sink) {
        let ethtool = match &mut self.ethtool {
            Ok(ethtool) => ethtool,
            Err(gap) => return self.teller.gap(out, &Subject::node(), gap.clone()),
        };
        for device in self.devices.values_mut() {
            if is_full || !device.is_known() {
                device.ask_driver(ethtool, &self.counters, &mut self.teller, out);
            }
            if !device.read_statistics(ethtool, &mut self.teller, out) {
                device.ask_driver(ethtool, &self.counters, &mut self.teller, out);
            }
        }
    }
}

/// The names of the devices to watch, and how many more there are.
fn list(host: &Host) -> Result<(Vec<OsString>, u64), HostError> {
    let folder = host.sys("class/net")?;
    let names: Vec<OsString> = host
        .list(&folder)?
        .into_iter()
        .map(|entry| entry.name)
        .filter(|name| name != "lo" && host.read_link(folder.join(name)).is_ok())
        .collect();
    let is_hardware = |name: &OsString| host.read_link(folder.join(name).join("device")).is_ok();
    let (mut chosen, virtual_ones): (Vec<OsString>, Vec<OsString>) =
        names.into_iter().partition(is_hardware);
    chosen.extend(virtual_ones);
    let n_left_out = chosen.len().saturating_sub(MAX_DEVICES);
    chosen.truncate(MAX_DEVICES);
    Ok((chosen, n_left_out as u64))
}

fn gap_of(error: &HostError) -> Gap {
    Gap::new(NAME, error.why(), error.chain())
}

fn examine(host: &Host) -> Vec<Sight> {
    let devices = match list(host) {
        Ok((names, 0)) => {
            let text = format!("{} besides lo, in this network namespace", names.len());
            Sight::sees(DEVICES, text)
        }
        Ok((names, n_left_out)) => {
            let text = format!("{}, but {n_left_out} more are not watched", names.len());
            Sight::blind(DEVICES, text).partly()
        }
        Err(error) => Sight::blind(DEVICES, error.chain()),
    };
    vec![devices, examine_drivers(host)]
}

const DEVICES: &str = "network devices";

fn examine_drivers(host: &Host) -> Sight {
    const WHAT: &str = "statistics of drivers";
    let counters = match Counters::load() {
        Ok(counters) => counters,
        Err(what) => return Sight::blind(WHAT, what).with_remedy("report this"),
    };
    match host.ethtool() {
        Ok(_) => Sight::sees(WHAT, format!("{} drivers are known", counters.n_drivers())),
        Err(error) => Sight::blind(WHAT, error.chain()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use sexton_host::FolderRoot;
    use sexton_model::moment::Moment;
    use sexton_model::record::{Body, Record};

    /// A folder that looks like a node, gone when the test ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("sexton-nics-{}-{name}", std::process::id());
            let folder = Self(std::env::temp_dir().join(name));
            let mounts = "1 0 0:1 / /proc rw - proc proc rw\n2 0 0:2 / /sys rw - sysfs sysfs rw\n";
            folder.write("proc/self/mountinfo", mounts);
            folder.write("sys/class/net/bonding_masters", "");
            folder
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }

        fn device(&self, name: &str, ifindex: &str, operstate: &str, carrier_changes: &str) {
            let below = format!("sys/devices/{name}");
            self.write(&format!("{below}/ifindex"), ifindex);
            self.write(&format!("{below}/operstate"), operstate);
            self.write(&format!("{below}/carrier_changes"), carrier_changes);
            self.write(&format!("{below}/queues/tx-0/tx_timeout"), "0\n");
            let link = self.0.join("sys/class/net").join(name);
            symlink(Path::new("../../devices").join(name), link).ok();
        }

        fn host(&self) -> Host {
            let root = FolderRoot::open(&self.0).expect("it opens");
            Host::new(Box::new(root)).expect("a mount table")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    fn poll(sensor: &mut Box<dyn Sensor>, host: &Host) -> Vec<Record> {
        let mut out = Sink::new(NAME, Moment::default());
        sensor.poll(host, &mut out);
        out.into_records()
    }

    fn events(records: &[Record]) -> Vec<(String, &'static str)> {
        let told = records.iter().filter_map(|record| match &record.body {
            Body::Event { fact, .. } => Some((record.subject.to_string(), fact.name)),
            _ => None,
        });
        told.collect()
    }

    #[test]
    fn devices_come_change_and_go() {
        let folder = Folder::new("life");
        folder.device("lo", "1\n", "unknown\n", "0\n");
        folder.device("eth0", "2\n", "up\n", "1\n");
        let host = folder.host();
        let mut sensor = open(&host).expect("it opens");
        assert_eq!(events(&poll(&mut sensor, &host)), []);
        folder.device("eth0", "2\n", "down\n", "2\n");
        let link = ("device eth0".to_owned(), "nic_link");
        assert_eq!(events(&poll(&mut sensor, &host)), [link]);
        folder.device("eth0", "9\n", "up\n", "1\n");
        let gone = [("device eth0".to_owned(), "nic_gone")];
        assert_eq!(events(&poll(&mut sensor, &host)), gone);
        fs::remove_file(folder.0.join("sys/class/net/eth0")).expect("removed");
        assert_eq!(events(&poll(&mut sensor, &host)), gone);
    }

    #[test]
    fn nonsense_is_a_gap_told_once() {
        let folder = Folder::new("nonsense");
        folder.device("eth0", "2\n", "\x1b[31m\n", "many\n");
        folder.write("sys/devices/eth0/queues/tx-0/tx_timeout", "");
        let host = folder.host();
        let mut sensor = open(&host).expect("it opens");
        let gaps = |records: &[Record]| {
            let gaps = records.iter().filter_map(|record| match &record.body {
                Body::Gap(gap) if gap.why == Why::Malformed => Some(record.subject.to_string()),
                _ => None,
            });
            gaps.collect::<Vec<String>>()
        };
        assert_eq!(
            gaps(&poll(&mut sensor, &host)),
            ["device eth0", "queue eth0/tx-0"]
        );
        assert!(gaps(&poll(&mut sensor, &host)).is_empty());
    }

    #[test]
    fn those_beyond_the_bound_are_a_gap() {
        let folder = Folder::new("many");
        for n in 0..MAX_DEVICES + 3 {
            folder.device(&format!("veth{n}"), "2\n", "up\n", "1\n");
        }
        let host = folder.host();
        let records = poll(&mut open(&host).expect("it opens"), &host);
        let lost = records.iter().any(|record| match &record.body {
            Body::Gap(gap) => gap.why == Why::Lost(3),
            _ => false,
        });
        assert!(lost);
    }
}
