//! Memory of a node: what is reclaimed and read again, and whose it is.

use sexton_model::fact::memory::{self as fact, MemoryCgroup, MemoryTask};
use sexton_model::record::{Event, Record};
use sexton_sensors::Sensor;

use crate::node::{Node, open, poll, show};

/// What the node has done: pages read again, KiB read, and microseconds that tasks waited.
fn write_counters(node: &Node, refaults: u64, read_kib: u64, waited_us: u64) {
    let vmstat = format!(
        "nr_free_pages 9\npgpgin {read_kib}\npswpin 0\npswpout 0\nallocstall_normal 3\n\
         pgmajfault 7\nworkingset_refault_anon 0\nworkingset_refault_file {refaults}\n"
    );
    node.write("proc/vmstat", vmstat);
    let line = format!("avg10=0.00 avg60=0.00 avg300=0.00 total={waited_us}");
    node.write(
        "proc/pressure/memory",
        format!("some {line}\nfull {line}\n"),
    );
}

fn write_cgroup(node: &Node, path: &str, limit: &str, n_max: u64, waited_us: u64) {
    let file = |name: &str| format!("sys/fs/cgroup{path}/{name}");
    node.write(&file("memory.current"), "67108864\n");
    node.write(&file("memory.max"), format!("{limit}\n"));
    node.write(&file("memory.high"), "max\n");
    let events = format!("low 0\nhigh 0\nmax {n_max}\noom 0\n");
    node.write(&file("memory.events.local"), events);
    let line = format!("avg10=0.00 avg60=0.00 avg300=0.00 total={waited_us}");
    node.write(
        &file("memory.pressure"),
        format!("some {line}\nfull {line}\n"),
    );
}

fn write_process(node: &Node, pid: u32, comm: &str, cgroup: &str, major_faults: u64) {
    let rest = format!("{major_faults} 0 9 0 1 2 20 0 1 0 900 5000 77 1 1");
    let stat = format!("{pid} ({comm}) S 1 1 1 0 -1 4194304 12 0 {rest}\n");
    node.write(&format!("proc/{pid}/stat"), stat);
    node.write(&format!("proc/{pid}/comm"), format!("{comm}\n"));
    node.write(&format!("proc/{pid}/cgroup"), format!("0::{cgroup}\n"));
}

fn a_node(name: &str) -> Node {
    let node = Node::new(name);
    node.write("proc/self/cgroup", "0::/\n");
    node.write("sys/fs/cgroup/cgroup.controllers", "cpu io memory pids\n");
    node.write("proc/meminfo", "MemTotal: 4096 kB\nMemAvailable: 1024 kB\n");
    write_counters(&node, 1_000, 9_000, 0);
    write_cgroup(&node, "/db.slice", "max", 0, 0);
    write_cgroup(&node, "/db.slice/db.service", "67108864", 40, 0);
    write_process(&node, 20, "postgres", "/db.slice/db.service", 100);
    write_process(&node, 21, "idle", "/db.slice", 5);
    node
}

fn look(node: &Node, sensor: &mut dyn Sensor, second: u64) -> Vec<Record> {
    poll("memory", sensor, &node.host(), second * 1_000)
}

fn cgroups(records: &[Record]) -> Vec<(String, MemoryCgroup)> {
    let events = records.iter();
    let events = events.filter_map(|record| Event::of(record, &fact::MEMORY_CGROUP));
    events
        .map(|event| (event.subject.name.to_string(), event.says.clone()))
        .collect()
}

fn tasks(records: &[Record]) -> Vec<(String, MemoryTask)> {
    let events = records.iter();
    let events = events.filter_map(|record| Event::of(record, &fact::MEMORY_TASK));
    events
        .map(|event| (event.subject.name.to_string(), event.says.clone()))
        .collect()
}

#[test]
fn a_cgroup_at_its_limit_is_told_with_the_process_that_reads_pages_back_in() {
    let node = a_node("short-of-memory");
    let mut sensor = open("memory", &node.host()).expect("it opens");
    let first = show(&look(&node, sensor.as_mut(), 100));
    for line in [
        "memory_available_bytes node 1048576.00",
        "memory_allocation_stalls node 3.00",
        "memory_read_in_bytes node 9216000.00",
    ] {
        assert!(first.contains(&line.to_owned()), "{line} in {first:?}");
    }
    // Tasks waited for half of the time: who it is, is told after a second look.
    write_counters(&node, 1_000, 9_000, 1_000_000);
    assert!(cgroups(&look(&node, sensor.as_mut(), 102)).is_empty());
    write_counters(&node, 1_000, 9_000, 3_000_000);
    write_cgroup(&node, "/db.slice/db.service", "67108864", 940, 1_500_000);
    write_process(&node, 20, "postgres", "/db.slice/db.service", 600);
    let second = look(&node, sensor.as_mut(), 106);
    let told = cgroups(&second);
    let (path, says) = &told[0];
    assert_eq!(path, "/db.slice/db.service");
    assert_eq!(says.unit.as_deref(), Some("db.service"));
    assert_eq!(says.limit_bytes, Some(67_108_864));
    assert_eq!(
        (says.limit_hits, says.stalled_ns),
        (900, Some(1_500_000_000))
    );
    assert_eq!(says.within_ns, 4_000_000_000);
    let told = tasks(&second);
    assert_eq!(told[0].0, "20");
    assert_eq!(told[0].1.major_faults, 500);
    assert_eq!(told[0].1.comm.as_deref(), Some("postgres"));
}

#[test]
fn nobody_is_looked_at_while_nothing_waits() {
    let node = a_node("memory-to-spare");
    let mut sensor = open("memory", &node.host()).expect("it opens");
    for i in 0..10 {
        // Much is read, and little of it again.
        write_counters(&node, 1_000 + i * 600, 9_000 + i * 100_000, i);
        let records = look(&node, sensor.as_mut(), 100 + 2 * i);
        assert!(cgroups(&records).is_empty() && tasks(&records).is_empty());
    }
}

#[test]
fn a_kernel_that_does_not_count_is_a_gap() {
    let node = a_node("no-refaults");
    node.write("proc/vmstat", "pgpgin 1\n");
    let gap = open("memory", &node.host()).err().expect("a gap");
    assert!(gap.text.contains("vmstat"), "{gap:?}");
}
