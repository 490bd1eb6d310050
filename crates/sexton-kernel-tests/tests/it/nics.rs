//! Network devices, on a real kernel, in a network namespace of our own.

use std::thread;
use std::time::{Duration, Instant};

use sexton_host::{Host, clock};
use sexton_kernel_tests::netns::{ip, with_netns};
use sexton_kernel_tests::require::{Need, require};
use sexton_model::fact::Fact;
use sexton_model::fact::nic;
use sexton_model::record::{Record, Sink};
use sexton_sensors::{SENSORS, Sensor};

fn open(host: &Host) -> Box<dyn Sensor> {
    let spec = SENSORS.iter().find(|spec| spec.name == "nics");
    (spec.expect("it is in the list").open)(host).expect("it opens")
}

fn poll(sensor: &mut Box<dyn Sensor>, host: &Host) -> Vec<Record> {
    let mut out = Sink::new("nics", clock::now());
    sensor.poll(host, &mut out);
    out.into_records()
}

fn of<'r>(records: &'r [Record], fact: &'static Fact, subject: &str) -> Vec<&'r Record> {
    let fits =
        |record: &&Record| record.fact() == Some(fact) && record.subject.to_string() == subject;
    records.iter().filter(fits).collect()
}

fn value(records: &[Record], fact: &'static Fact, subject: &str) -> Option<f64> {
    of(records, fact, subject).first()?.value()
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn a_namespace_of_our_own_has_our_devices_only() {
    require(Need::Root);
    let names = with_netns(|| {
        ip("link add sxt0 type veth peer name sxt1").expect("made");
        let host = Host::live().expect("a mount table");
        let folder = host.sys("class/net").expect("a path");
        let mut entries = host.list(folder).expect("listed");
        entries.retain(|entry| entry.name.to_string_lossy().starts_with("sxt"));
        entries.len()
    });
    assert_eq!(names.expect("a namespace"), 2);
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn a_driver_is_known_and_its_statistics_are_read() {
    require(Need::Root);
    with_netns(|| {
        ip("link add sxt0 numtxqueues 3 numrxqueues 2 type veth peer name sxt1").expect("made");
        let host = Host::live().expect("a mount table");
        let mut ethtool = host.ethtool().expect("a socket");
        let driver = ethtool.driver("sxt0").expect("a driver");
        assert_eq!(driver.name, "veth");
        let names = ethtool.stat_names("sxt0", driver.n_stats).expect("names");
        let values = ethtool.stat_values("sxt0", names.len()).expect("values");
        assert_eq!(names.len(), driver.n_stats);
        assert_eq!(values.len(), names.len());
        assert!(names.iter().any(|name| name == "peer_ifindex"), "{names:?}");
        assert!(ethtool.driver("sxt9").is_err(), "there is none");

        let records = poll(&mut open(&host), &host);
        let identity = of(&records, &nic::NIC_IDENTITY, "device sxt0");
        assert_eq!(identity.len(), 1);
        let identity = identity[0].says(&nic::NIC_IDENTITY).expect("an event");
        assert_eq!(identity.driver.as_deref(), Some("veth"));
        assert_eq!(
            value(&records, &nic::NIC_TX_QUEUES, "device sxt0"),
            Some(3.0)
        );
        assert_eq!(
            value(&records, &nic::NIC_RX_QUEUES, "device sxt0"),
            Some(2.0)
        );
        for queue in ["queue sxt0/tx-0", "queue sxt0/tx-2"] {
            assert_eq!(value(&records, &nic::NIC_TX_TIMEOUTS, queue), Some(0.0));
        }
        assert!(of(&records, &nic::NIC_LINK_UP, "device lo").is_empty());
    })
    .expect("a namespace");
}

/// Polls until the link of `sxt0` is in that state, which the kernel may say up to a
/// second late. Returns how often its carrier changed.
fn changes_until(sensor: &mut Box<dyn Sensor>, host: &Host, state: &str) -> u64 {
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut n_changes = 0;
    loop {
        let records = poll(sensor, host);
        let links = of(&records, &nic::NIC_LINK, "device sxt0");
        assert!(links.len() <= 1, "one poll sees one change");
        let link = links.first().and_then(|link| link.says(&nic::NIC_LINK));
        let seen = link.and_then(|link| link.operstate.as_deref());
        n_changes += link.map_or(0, |link| link.carrier_changes.expect("told"));
        if seen == Some(state) {
            let up = f64::from(u8::from(state == "up"));
            assert_eq!(value(&records, &nic::NIC_LINK_UP, "device sxt0"), Some(up));
            return n_changes;
        }
        assert!(Instant::now() < deadline, "it is never {state}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn links_that_come_and_go_are_seen() {
    require(Need::Root);
    with_netns(|| {
        ip("link add sxt0 type veth peer name sxt1").expect("made");
        ip("link set sxt0 up").expect("up");
        ip("link set sxt1 up").expect("up");
        let host = Host::live().expect("a mount table");
        let mut sensor = open(&host);
        let records = poll(&mut sensor, &host);
        assert!(of(&records, &nic::NIC_LINK, "device sxt0").is_empty());
        if value(&records, &nic::NIC_LINK_UP, "device sxt0") != Some(1.0) {
            changes_until(&mut sensor, &host, "up");
        }

        ip("link set sxt1 down").expect("down");
        assert_eq!(changes_until(&mut sensor, &host, "lowerlayerdown"), 1);
        for state in ["up", "down", "up"] {
            ip(&format!("link set sxt1 {state}")).expect("set");
        }
        assert_eq!(
            changes_until(&mut sensor, &host, "up"),
            3,
            "all are counted"
        );

        assert!(of(&poll(&mut sensor, &host), &nic::NIC_LINK, "device sxt0").is_empty());
        ip("link del sxt0").expect("gone");
        let records = poll(&mut sensor, &host);
        assert_eq!(of(&records, &nic::NIC_GONE, "device sxt0").len(), 1);
        assert_eq!(of(&records, &nic::NIC_GONE, "device sxt1").len(), 1);
    })
    .expect("a namespace");
}
