//! Limits of a node and of its cgroups.

use sexton_model::record::Record;
use sexton_sensors::Sensor;

use crate::node::{Node, open, poll, show};

const NEIGHBOURS: &str = "entries  allocs table_fulls\n000003e8 00000001 00000002\n\
                          000003e8 00000003 0000000a\n";
const CONNECTIONS: &str = "entries  found insert_failed drop early_drop\n\
                           000003e8 00000000 0000ffff 00000001 00000002\n";

fn node(name: &str) -> Node {
    let node = Node::new(name);
    for (file, content) in [
        ("loadavg", "0.20 0.18 0.12 1/16384 11206\n"),
        ("self/cgroup", "0::/\n"),
        ("cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"),
        ("sys/fs/file-nr", "1000\t100\t1000\n"),
        ("sys/kernel/threads-max", "65536\n"),
        ("sys/kernel/pid_max", "32768\n"),
        ("sys/net/netfilter/nf_conntrack_count", "1000\n"),
        ("sys/net/netfilter/nf_conntrack_max", "4000\n"),
        ("net/stat/nf_conntrack", CONNECTIONS),
        ("net/stat/arp_cache", NEIGHBOURS),
        ("sys/net/ipv4/neigh/default/gc_thresh3", "1024\n"),
    ] {
        node.write(&format!("proc/{file}"), content);
    }
    node.write("sys/fs/cgroup/cgroup.controllers", "memory pids\n");
    node.write(
        "sys/fs/cgroup/cgroup.stat",
        "nr_descendants 10\nnr_subsys_memory 6553\nnr_dying_descendants 70000\n\
         nr_dying_subsys_memory 70000\n",
    );
    limit_tasks(&node, "a.slice/a.service", "100", 90, 0);
    limit_tasks(&node, "a.slice/free.service", "max", 90, 0);
    node
}

fn limit_tasks(node: &Node, cgroup: &str, most: &str, used: u64, refused: u64) {
    let folder = format!("sys/fs/cgroup/{cgroup}");
    node.write(&format!("{folder}/pids.max"), format!("{most}\n"));
    node.write(&format!("{folder}/pids.current"), format!("{used}\n"));
    node.write(&format!("{folder}/pids.events"), format!("max {refused}\n"));
}

fn look(node: &Node, sensor: &mut dyn Sensor, seconds: u64) -> Vec<Record> {
    poll("limits", sensor, &node.host(), seconds * 1000)
}

#[test]
fn every_limit_is_told_with_its_use() {
    let node = node("limits");
    let mut sensor = open("limits", &node.host()).expect("it opens");
    let told = show(&look(&node, sensor.as_mut(), 10));
    for line in [
        "limit_used_ratio limit fs.file-max 0.90",
        "limit_used_ratio limit kernel.threads-max 0.25",
        "limit_used_ratio limit kernel.pid_max 0.50",
        "limit_used_ratio limit net.netfilter.nf_conntrack_max 0.25",
        "limit_hits limit net.netfilter.nf_conntrack_max 3.00",
        "limit_used limit net.ipv4.neigh.default.gc_thresh3 1000.00",
        "limit_hits limit net.ipv4.neigh.default.gc_thresh3 12.00",
        "limit_used limit memory cgroup ids 6553.00",
        "limit_most limit memory cgroup ids 65535.00",
        "limit_used_ratio limit pids.max /a.slice/a.service 0.90",
        "limit_hits limit pids.max /a.slice/a.service 0.00",
    ] {
        assert!(told.contains(&line.to_owned()), "{line} in {told:#?}");
    }
    let is_absent = |line: &String| line.contains("ipv6") || line.contains("free.service");
    assert!(!told.iter().any(is_absent), "{told:#?}");
    assert!(
        told.iter().all(|line| !line.starts_with("gap")),
        "{told:#?}"
    );
}

#[test]
fn cgroups_are_read_at_every_poll_and_after_the_first_minute_chosen_once_in_one() {
    let node = node("limited-cgroups");
    let mut sensor = open("limits", &node.host()).expect("it opens");
    look(&node, sensor.as_mut(), 10);
    limit_tasks(&node, "a.slice/a.service", "100", 99, 5);
    limit_tasks(&node, "b.slice", "10", 10, 1);
    let told = show(&look(&node, sensor.as_mut(), 20));
    let has = |told: &[String], line: &str| told.contains(&line.to_owned());
    assert!(has(
        &told,
        "limit_hits limit pids.max /a.slice/a.service 5.00"
    ));
    assert!(has(&told, "limit_used limit pids.max /b.slice 10.00"));
    limit_tasks(&node, "c.slice", "10", 9, 0);
    let told = show(&look(&node, sensor.as_mut(), 70));
    assert!(!has(&told, "limit_used limit pids.max /c.slice 9.00"));
    let told = show(&look(&node, sensor.as_mut(), 80));
    assert!(has(&told, "limit_used limit pids.max /c.slice 9.00"));
    node.remove("sys/fs/cgroup/a.slice");
    let told = show(&look(&node, sensor.as_mut(), 90));
    assert!(
        !told.iter().any(|line| line.contains("/a.slice")),
        "{told:#?}"
    );
}

#[test]
fn what_cannot_be_read_is_a_gap() {
    let node = node("odd-limits");
    node.write("proc/sys/kernel/pid_max", "many\n");
    let mut sensor = open("limits", &node.host()).expect("it opens");
    let told = show(&look(&node, sensor.as_mut(), 10));
    let gaps: Vec<&String> = told.iter().filter(|line| line.starts_with("gap")).collect();
    assert_eq!(gaps.len(), 1, "{told:#?}");
    assert!(gaps[0].contains("kernel.pid_max"), "{gaps:?}");
}
