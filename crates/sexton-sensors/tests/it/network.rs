//! What a node drops.

use sexton_model::record::Record;
use sexton_sensors::Sensor;

use crate::node::{Node, open, poll, show};

fn a_node(name: &str) -> Node {
    let node = Node::new(name);
    node.write(
        "proc/net/softnet_stat",
        "0000ffff 0000000a 00000001\n00000001 00000000 00000002\n",
    );
    node.write(
        "proc/net/netstat",
        "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 7 9\n",
    );
    node.write(
        "proc/net/stat/nf_conntrack",
        "entries searched insert_failed drop early_drop\n00000010 0 00000001 00000002 00000003\n\
         00000010 0 00000001 00000000 00000000\n",
    );
    for (device, is_real) in [("eth0", true), ("lo", false)] {
        let folder = format!("sys/class/net/{device}");
        node.write(&format!("{folder}/statistics/rx_missed_errors"), "40\n");
        node.write(&format!("{folder}/statistics/rx_fifo_errors"), "2\n");
        node.write(&format!("{folder}/statistics/rx_errors"), "50\n");
        if is_real {
            node.write(&format!("{folder}/device/uevent"), "");
        }
    }
    node
}

fn look(node: &Node, sensor: &mut dyn Sensor, second: u64) -> Vec<Record> {
    poll("network", sensor, &node.host(), second * 1_000)
}

#[test]
fn drops_of_all_kinds_are_told() {
    let node = a_node("drops");
    let mut sensor = open("network", &node.host()).expect("it opens");
    let mut shown = show(&look(&node, sensor.as_mut(), 100));
    shown.sort();
    assert_eq!(
        shown,
        [
            "network_backlog_drops node 10.00",
            "network_conntrack_drops node 7.00",
            "network_listen_drops node 9.00",
            "network_listen_overflows node 7.00",
            "network_squeezes node 3.00",
            "nic_receive_errors device eth0 50.00",
            "nic_ring_drops device eth0 42.00",
        ]
    );
}

#[test]
fn a_kernel_that_tracks_no_connections_drops_none() {
    let node = a_node("no-conntrack");
    node.remove("proc/net/stat");
    let mut sensor = open("network", &node.host()).expect("it opens");
    let shown = show(&look(&node, sensor.as_mut(), 100));
    assert!(
        !shown
            .iter()
            .any(|line| line.contains("conntrack") || line.starts_with("gap")),
        "{shown:?}"
    );
}

#[test]
fn counters_that_cannot_be_read_are_a_gap() {
    let node = a_node("no-netstat");
    let mut sensor = open("network", &node.host()).expect("it opens");
    node.write("proc/net/netstat", "IpExt: A\nIpExt: 1\n");
    let shown = show(&look(&node, sensor.as_mut(), 100));
    assert!(
        shown
            .iter()
            .any(|line| line.starts_with("gap node") && line.contains("netstat")),
        "{shown:?}"
    );
}
