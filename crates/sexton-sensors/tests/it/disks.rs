//! Disks of a node, and who uses one that is busy.

use sexton_model::fact::disk::{self as fact, DiskUse};
use sexton_model::record::{Event, Record};
use sexton_sensors::Sensor;

use crate::node::{Node, open, poll, show};

/// What a disk has done: requests, milliseconds of them all, milliseconds in which it was busy.
fn write_disk(node: &Node, requests: u64, request_ms: u64, busy_ms: u64) {
    let line = format!(
        " 254 0 vda {requests} 0 800 {request_ms} 0 0 0 0 3 {busy_ms} {request_ms} 0 0 0 0 0 0\n \
         254 1 vda1 9 0 9 9 0 0 0 0 0 9 9\n 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n"
    );
    node.write("proc/diskstats", line);
}

fn write_process(node: &Node, pid: u32, comm: &str, state: char, written: u64) {
    let flags = if comm == "kworker" {
        2_129_984
    } else {
        4_194_304
    };
    let rest = format!("1 1 0 -1 {flags} 1 2 3 4 5 6 7 8 20 0 1 0 900 0 0");
    node.write(
        &format!("proc/{pid}/stat"),
        format!("{pid} ({comm}) {state} 1 {rest}\n"),
    );
    node.write(&format!("proc/{pid}/comm"), format!("{comm}\n"));
    let io = format!("read_bytes: 0\nwrite_bytes: {written}\ncancelled_write_bytes: 0\n");
    node.write(&format!("proc/{pid}/task/{pid}/io"), io);
}

fn a_node(name: &str) -> Node {
    let node = Node::new(name);
    node.write("sys/block/vda/stat", "0\n");
    node.write("sys/block/vda/queue/rotational", "0\n");
    node.write("proc/self/io", "read_bytes: 0\nwrite_bytes: 0\n");
    write_disk(&node, 100, 1_000, 5_000);
    write_process(&node, 20, "dd", 'D', 0);
    write_process(&node, 21, "sshd", 'D', 0);
    write_process(&node, 22, "kworker", 'D', 0);
    write_process(&node, 23, "idle", 'S', 0);
    node
}

fn look(node: &Node, sensor: &mut dyn Sensor, ms: u64) -> Vec<Record> {
    poll("disks", sensor, &node.host(), ms)
}

fn users(records: &[Record]) -> Vec<DiskUse> {
    let events = records.iter();
    let events = events.filter_map(|record| Event::of(record, &fact::DISK_USER));
    events.map(|event| event.says.clone()).collect()
}

#[test]
fn a_busy_disk_is_told_with_who_uses_it_and_who_waits() {
    let node = a_node("busy-disk");
    let mut sensor = open("disks", &node.host()).expect("it opens");
    let first = show(&look(&node, sensor.as_mut(), 100_000));
    assert!(
        first.contains(&"disk_seen device vda".to_owned()),
        "{first:?}"
    );
    write_disk(&node, 120, 3_000, 6_000);
    let second = show(&look(&node, sensor.as_mut(), 101_000));
    for line in [
        "disk_busy_ratio device vda 1.00",
        "disk_completed device vda 20.00",
        "disk_in_flight device vda 3.00",
        "disk_latency_ns device vda 100000000.00",
        "disk_queue device vda 2.00",
    ] {
        assert!(second.contains(&line.to_owned()), "{line} in {second:?}");
    }
    assert!(
        !second
            .iter()
            .any(|line| line.contains("vda1") || line.contains("loop0"))
    );
    write_process(&node, 20, "dd", 'D', 50_000_000);
    write_disk(&node, 160, 7_000, 8_000);
    let third = look(&node, sensor.as_mut(), 103_000);
    let users = users(&third);
    let told: Vec<(u32, u64, bool)> = users
        .iter()
        .map(|user| (user.pid, user.written_bytes, user.waits))
        .collect();
    assert_eq!(told, [(20, 50_000_000, true), (21, 0, true)]);
    assert!(show(&third).contains(&"disk_waiters node 2.00".to_owned()));
}

#[test]
fn processes_are_not_looked_at_while_disks_are_quiet() {
    let node = a_node("quiet-disk");
    let mut sensor = open("disks", &node.host()).expect("it opens");
    for (i, second) in (100..110).enumerate() {
        write_disk(&node, 100 + i as u64, 1_000, 5_000 + 10 * i as u64);
        let records = look(&node, sensor.as_mut(), second * 1_000);
        let shown = show(&records);
        assert!(
            !shown.iter().any(|line| line.starts_with("disk_waiters")),
            "{shown:?}"
        );
    }
}

#[test]
fn counters_that_begin_anew_are_no_rate() {
    let node = a_node("swapped-disk");
    let mut sensor = open("disks", &node.host()).expect("it opens");
    look(&node, sensor.as_mut(), 100_000);
    write_disk(&node, 1, 1, 1);
    let shown = show(&look(&node, sensor.as_mut(), 101_000));
    assert!(shown.is_empty(), "{shown:?}");
}
