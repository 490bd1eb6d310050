//! Who runs and who waits for a core, and whom a quota stops: with pressure and without.

use sexton_model::fact::pressure::{CPU_OWNER, CPU_TASK, CpuOwner};
use sexton_model::record::Record;
use sexton_model::sight::Clarity;
use sexton_sensors::Sensor;

use crate::node::{Node, open, poll, show, spec};

fn watch(node: &Node) -> Box<dyn Sensor> {
    open("contention", &node.host()).expect("it opens")
}

fn look(node: &Node, sensor: &mut dyn Sensor, seconds: u64) -> Vec<Record> {
    poll("contention", sensor, &node.host(), seconds * 1000)
}

fn write_pressure(node: &Node, us: u64) {
    let text = format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={us}\n");
    node.write("proc/pressure/cpu", text);
}

fn write_runnable(node: &Node, n: u64, n_cores: u64) {
    node.write("proc/loadavg", format!("0.10 0.10 0.10 {n}/900 77\n"));
    let core = |n: u64| format!("cpu{n} 1 2 3 4 5 6 7 8 9 10\n");
    let cores: String = (0..n_cores).map(core).collect();
    node.write(
        "proc/stat",
        format!("cpu  1 2 3 4 5 6 7 8 9 10\n{cores}intr 7\n"),
    );
}

/// A process with one thread in a cgroup, and what it ran and waited, in milliseconds.
fn write_process(node: &Node, pid: u64, cgroup: &str, (ran, waited): (u64, u64)) {
    let stat = format!("{pid} (loop) R 1 1 1 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 100 0 0\n");
    node.write(&format!("proc/{pid}/stat"), stat);
    let schedstat = format!("{ran}000000 {waited}000000 1\n");
    node.write(&format!("proc/{pid}/schedstat"), schedstat);
    node.write(&format!("proc/{pid}/cgroup"), format!("0::{cgroup}\n"));
    node.write(&format!("proc/{pid}/comm"), "loop\n");
}

fn owners(records: &[Record]) -> Vec<(String, &CpuOwner)> {
    let said = records.iter();
    said.filter_map(|one| Some((one.subject.to_string(), one.says(&CPU_OWNER)?)))
        .collect()
}

/// On sixteen cores forty-eight busy loops of one unit, and one that waits for them.
fn write_loops(node: &Node, second: u64) {
    let ms = second * 1000;
    for pid in 100..148 {
        write_process(
            node,
            pid,
            "/system.slice/hog.service",
            (ms / 3, ms - ms / 3),
        );
    }
    write_process(node, 99, "/system.slice/api.service", (ms / 5, ms * 2 / 5));
}

/// What one interval says of many loops and of who waits for them.
fn check_loops(records: &[Record]) {
    let owners = owners(records);
    let names: Vec<&str> = owners.iter().map(|(name, _)| name.as_str()).collect();
    let [(_, hog), (_, api)] = &owners[..] else {
        panic!("{names:?}");
    };
    assert_eq!(hog.unit.as_deref(), Some("hog.service"));
    assert_eq!((hog.n_processes, hog.n_unread), (48, None));
    assert_eq!(hog.endless.iter().map(|one| one.n).sum::<u64>(), 48);
    assert!(hog.ran_ns > 48 * 1_600_000_000, "{hog:?}");
    assert_eq!(api.unit.as_deref(), Some("api.service"));
    assert_eq!(api.waited_ns, 2_000_000_000);
    let named = records.iter().filter_map(|one| one.says(&CPU_TASK));
    let named: Vec<_> = named.filter_map(|one| one.unit.as_deref()).collect();
    assert!(
        named.contains(&"api.service") && named.len() <= 24,
        "{named:?}"
    );
}

#[test]
fn all_processes_count_however_many_there_are() {
    let node = Node::new("contention");
    write_pressure(&node, 0);
    let mut sensor = watch(&node);
    write_loops(&node, 1);
    look(&node, sensor.as_mut(), 1);
    // Not much waits yet.
    write_pressure(&node, 100_000);
    assert_eq!(owners(&look(&node, sensor.as_mut(), 2)).len(), 0);
    write_pressure(&node, 1_100_000);
    write_loops(&node, 3);
    assert_eq!(owners(&look(&node, sensor.as_mut(), 3)).len(), 0);
    write_pressure(&node, 6_100_000);
    write_loops(&node, 8);
    check_loops(&look(&node, sensor.as_mut(), 8));
}

#[test]
fn a_kernel_without_pressure_is_seen_too() {
    let node = Node::new("contention-no-psi");
    write_runnable(&node, 50, 16);
    let sights = (spec("contention").examine)(&node.host());
    assert!(sights.iter().all(|sight| sight.clarity == Clarity::Sees));
    let mut sensor = watch(&node);
    write_loops(&node, 3);
    look(&node, sensor.as_mut(), 3);
    write_loops(&node, 8);
    check_loops(&look(&node, sensor.as_mut(), 8));
    // All is quiet after a while.
    write_runnable(&node, 1, 16);
    for second in 9..20 {
        look(&node, sensor.as_mut(), second);
    }
    write_loops(&node, 20);
    assert_eq!(owners(&look(&node, sensor.as_mut(), 20)).len(), 0);
}

#[test]
fn what_cannot_be_seen_is_a_gap_and_costs_nothing_else() {
    let node = Node::new("contention-nothing");
    let sights = (spec("contention").examine)(&node.host());
    assert_eq!(sights[0].clarity, Clarity::Blind);
    node.write("sys/fs/cgroup/a/cpu.stat", "nr_periods 3\nnr_throttled 1\n");
    let mut sensor = watch(&node);
    let told = show(&look(&node, sensor.as_mut(), 1));
    let gaps = told.iter().filter(|line| line.starts_with("gap")).count();
    assert_eq!(gaps, 1, "{told:?}");
    assert!(
        told.contains(&"cpu_quota_cgroups node 1.00".to_owned()),
        "{told:?}"
    );
    let again = show(&look(&node, sensor.as_mut(), 2));
    assert!(again.is_empty(), "{again:?}");
}

#[test]
fn a_quota_that_is_used_up_is_told_without_pressure() {
    let node = Node::new("contention-quota");
    write_runnable(&node, 1, 2);
    let pod = "kubepods/burstable/pod1/c1";
    let stat = |periods: u64, throttled: u64| {
        let text = format!("nr_periods {periods}\nnr_throttled {throttled}\n");
        node.write(&format!("sys/fs/cgroup/{pod}/cpu.stat"), text);
        node.write("sys/fs/cgroup/kubepods/cpu.stat", "usage_usec 7\n");
    };
    stat(100, 10);
    let mut sensor = watch(&node);
    let first = show(&look(&node, sensor.as_mut(), 1));
    assert!(
        first.contains(&"cpu_quota_cgroups node 1.00".to_owned()),
        "{first:?}"
    );
    stat(150, 35);
    let told = show(&look(&node, sensor.as_mut(), 6));
    let expected = format!("cpu_throttled_ratio cgroup /{pod} 0.50");
    assert!(told.contains(&expected), "{told:?}");
    // Nothing ran, so there is nothing to tell.
    let quiet = show(&look(&node, sensor.as_mut(), 11));
    assert!(
        !quiet.iter().any(|line| line.starts_with("cpu_throttled")),
        "{quiet:?}"
    );
}
