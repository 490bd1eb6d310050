//! Births, removals and releases come back exactly as they were made.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use sexton_host::page_batches;
use sexton_kernel_tests::nursery::{Nursery, Pin};
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton;
use sexton_model::fact::EventFact;
use sexton_model::fact::cgroup::{self as fact, CgroupBurst};
use sexton_model::origin::Origin;
use sexton_model::payload::Payload;
use sexton_model::text::escape;

use crate::sensor::Open;

const LEAKER: &str = env!("CARGO_BIN_EXE_leaker");

fn in_nursery<'s, T: Payload>(
    sensor: &'s Open,
    nursery: &Nursery,
    fact: &'static EventFact<T>,
) -> Vec<&'s T> {
    let below = format!("{}/z-", nursery.path);
    let events = sensor.events(fact);
    let ours = events.filter(|event| event.subject.name.starts_with(&below));
    ours.map(|event| event.says).collect()
}

fn bursts<'s>(sensor: &'s Open, nursery: &Nursery) -> Vec<&'s CgroupBurst> {
    let path = format!("{}/z-1", nursery.path);
    let pattern = escape(&Origin::of(path.as_bytes()).pattern());
    let bursts = sensor.events(&fact::CGROUP_BURST).map(|event| event.says);
    bursts
        .filter(|burst| burst.pattern.starts_with(&pattern))
        .collect()
}

/// All there is of a fact in the nursery, told one by one or in bursts.
fn count<T: Payload>(sensor: &Open, nursery: &Nursery, fact: &'static EventFact<T>) -> u64 {
    let bursts = bursts(sensor, nursery);
    let counts = bursts
        .iter()
        .filter(|burst| burst.what.is_some_and(|what| what.name() == fact.name))
        .map(|burst| burst.n);
    in_nursery(sensor, nursery, fact).len() as u64 + counts.sum::<u64>()
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn this_machine_tells_of_a_cgroup() {
    let mut sensor = Open::new("cgroups");
    let nursery = Nursery::new("tells").expect("a cgroup of our own");
    sensor.poll();
    let mut born = sensor.events(&fact::CGROUP_BORN);
    let is_seen = born.any(|event| event.says.path.starts_with(&nursery.path));
    assert!(is_seen, "{:#?}", sensor.said);
}

/// Somewhere in a container, or on a machine that no systemd has booted.
#[test]
#[ignore = "needs root, bpf and sexton: run cargo xtask test kernel"]
fn births_are_seen_where_nobody_has_mounted_traces() {
    for need in [Need::Root, Need::Bpf, Need::Sexton] {
        require(need);
    }
    let script = "umount -R /sys/kernel/tracing /sys/kernel/debug 2> /dev/null; \
                  ! grep -q tracefs /proc/self/mountinfo && \"$0\" doctor --json";
    let seen = Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .arg(sexton::binary().expect("required"))
        .output()
        .expect("unshare, of util-linux, runs");
    let said = String::from_utf8_lossy(&seen.stdout);
    let doctor: Value = serde_json::from_str(&said).expect("JSON");
    let sensors = doctor["sensors"].as_array().expect("a list");
    let cgroups = sensors.iter().find(|sensor| sensor["sensor"] == "cgroups");
    let cgroups = cgroups.expect("one of them");
    assert_eq!(cgroups["state"], "sees", "{cgroups:#}");
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn deaths_without_release_are_dying() {
    let nursery = Nursery::new("dying").expect("a cgroup of our own");
    let mut sensor = Open::new("cgroups");
    let leak = nursery.leak(LEAKER, "z", 211, Pin::Tmpfs).expect("made");
    sensor.poll();
    assert_eq!(count(&sensor, &nursery, &fact::CGROUP_BORN), 211);
    assert_eq!(count(&sensor, &nursery, &fact::CGROUP_REMOVED), 211);
    assert_eq!(count(&sensor, &nursery, &fact::CGROUP_RELEASED), 0);
    assert!(sensor.last(&fact::CGROUP_UNRELEASED) >= Some(211));
    for born in in_nursery(&sensor, &nursery, &fact::CGROUP_BORN) {
        assert_eq!(born.creator_comm.as_deref(), Some("leaker"));
        assert_eq!(born.origin.as_deref(), Some("made by hand"));
        // On v1 it made none in the hierarchy that tells the unit, so is where we are.
        assert_ne!(born.creator_cgroup.as_deref(), Some("vanished"));
        let own = std::process::id();
        let is_above = born.creator_ancestry.iter().any(|task| task.pid == own);
        assert!(is_above, "{born:?} without {own}");
    }
    for removed in in_nursery(&sensor, &nursery, &fact::CGROUP_REMOVED) {
        assert_eq!(removed.remover_comm.as_deref(), Some("leaker"));
        let lived = removed.lived_ns.expect("seen");
        assert!((1..10_000_000_000).contains(&lived), "{lived}");
    }
    drop(leak);
    // A page that waits on a CPU holds its cgroup, deleted or not.
    let undrained = page_batches::drain(Duration::from_secs(5));
    assert!(undrained.is_empty(), "{undrained:?}");
    nursery.delete_files();
    sensor.poll_until(|sensor| count(sensor, &nursery, &fact::CGROUP_RELEASED) >= 211);
    assert_eq!(count(&sensor, &nursery, &fact::CGROUP_RELEASED), 211);
    for released in in_nursery(&sensor, &nursery, &fact::CGROUP_RELEASED) {
        assert!(released.dying_ns.is_some());
    }
    assert_eq!(sensor.lost(), 0);
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn a_burst_loses_nothing_or_says_how_many() {
    let nursery = Nursery::new("burst").expect("a cgroup of our own");
    let mut sensor = Open::new("cgroups");
    let births = sensor.last(&fact::CGROUP_BIRTHS).unwrap_or(0);
    let _leak = nursery
        .leak(LEAKER, "z", 3_001, Pin::SharedLog)
        .expect("made");
    sensor.poll();
    let told = [
        count(&sensor, &nursery, &fact::CGROUP_BORN),
        count(&sensor, &nursery, &fact::CGROUP_REMOVED),
    ];
    let lost = sensor.lost();
    assert!(told.iter().all(|&n| n <= 3_001), "{told:?}");
    assert!(
        told.iter().sum::<u64>() + lost >= 6_002,
        "{told:?} told, {lost} lost"
    );
    assert!(sensor.last(&fact::CGROUP_BIRTHS) >= Some(births + 3_001));
    assert!(!bursts(&sensor, &nursery).is_empty(), "not all one by one");
}
