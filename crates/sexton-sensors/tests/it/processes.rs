//! Processes of a node, and the parents that do not reap their children.

use sexton_model::fact::process::{self as fact, DefunctChildren};
use sexton_model::record::{Event, Record};
use sexton_model::sight::Clarity;
use sexton_sensors::Sensor;

use crate::node::{MOUNTS, Node, open, poll, show, spec};

fn write(node: &Node, pid: u32, comm: &str, state: char, parent: u32) {
    write_switches(node, pid, 7);
    let rest = "1 1 0 -1 4228044 1 2 3 4 5 6 7 8 20 0 1 0 900 0 0";
    let stat = format!("{pid} ({comm}) {state} {parent} {rest}\n");
    node.write(&format!("proc/{pid}/stat"), stat);
    node.write(&format!("proc/{pid}/comm"), format!("{comm}\n"));
}

fn write_switches(node: &Node, pid: u32, n: u64) {
    let status = format!("voluntary_ctxt_switches:\t{n}\nnonvoluntary_ctxt_switches:\t1\n");
    node.write(&format!("proc/{pid}/status"), status);
}

fn write_tasks(node: &Node, n: u64) {
    node.write("proc/loadavg", format!("0.20 0.18 0.12 1/{n} 11206\n"));
}

/// A service with a worker, which is process 7, and children of it that have exited.
fn neglect(name: &str, n_defunct: u32) -> Node {
    let node = Node::new(name);
    write_tasks(&node, 20);
    node.write("proc/sys/kernel/pid_max", "32768\n");
    write(&node, 1, "init", 'S', 0);
    write(&node, 7, "worker) Z", 'S', 1);
    write(&node, 8, "dd", 'D', 1);
    node.write("proc/7/cgroup", "0::/system.slice/jobs.service\n");
    let folder = "sys/fs/cgroup/system.slice";
    node.write(&format!("{folder}/jobs.service/pids.max"), "max\n");
    node.write(&format!("{folder}/pids.max"), "500\n");
    node.write(&format!("{folder}/pids.current"), "321\n");
    for pid in 100..100 + n_defunct {
        write(&node, pid, "job", 'Z', 7);
    }
    node
}

fn look(node: &Node, sensor: &mut dyn Sensor, seconds: u64) -> Vec<Record> {
    poll("processes", sensor, &node.host(), seconds * 1000)
}

fn told(records: &[Record]) -> Vec<DefunctChildren> {
    let events = records.iter();
    let events = events.filter_map(|record| Event::of(record, &fact::DEFUNCT_CHILDREN));
    events.map(|event| event.says.clone()).collect()
}

#[test]
fn the_parent_is_told_with_its_place_and_limits() {
    let node = neglect("defunct", 211);
    let mut sensor = open("processes", &node.host()).expect("it opens");
    let first = look(&node, sensor.as_mut(), 100);
    let shown = show(&first);
    for line in [
        "tasks_total node 20.00",
        "processes_total node 214.00",
        "processes_defunct node 211.00",
        "processes_uninterruptible node 1.00",
        "defunct_children process 7",
    ] {
        assert!(shown.contains(&line.to_owned()), "{line} in {shown:?}");
    }
    let expected = DefunctChildren {
        pid: 7,
        comm: Some("worker) Z".into()),
        n: 211,
        n_lasting: 0,
        oldest_ns: 100_000_000_000,
        cgroup: Some("/system.slice/jobs.service".into()),
        unit: Some("jobs.service".into()),
        container: None,
        pid_max: Some(32_768),
        limited_cgroup: Some("/system.slice".into()),
        cgroup_tasks: Some(321),
        cgroup_tasks_max: Some(500),
    };
    assert_eq!(told(&first), std::slice::from_ref(&expected));
    let second = look(&node, sensor.as_mut(), 105);
    let lasting = DefunctChildren {
        n_lasting: 211,
        ..expected
    };
    assert_eq!(told(&second), [lasting]);
}

#[test]
fn all_processes_are_looked_at_only_when_a_sign_asks_for_it() {
    let node = neglect("quiet-processes", 3);
    let mut sensor = open("processes", &node.host()).expect("it opens");
    let mut scans = |seconds| {
        let records = look(&node, sensor.as_mut(), seconds);
        assert!(told(&records).is_empty(), "three are not worth an event");
        records
            .iter()
            .any(|record| record.fact() == Some(&fact::PROCESSES_TOTAL))
    };
    assert!(scans(100));
    assert!(!scans(105));
    for seconds in [110, 120, 130, 140, 150, 160] {
        assert!(scans(seconds), "in the first minute every 10 s");
    }
    assert!(!scans(165) && !scans(190));
    write_tasks(&node, 121);
    assert!(scans(195), "a hundred tasks more");
    assert!(!scans(200) && !scans(250));
    assert!(scans(255), "a minute has gone");
    assert!(!scans(260));
    node.write("proc/loadavg", "0.60 0.18 0.12 1/121 11206\n");
    assert!(scans(265), "the load has tasks that do not run");
}

#[test]
fn children_that_were_reaped_are_told_once() {
    let node = neglect("reaped", 40);
    let mut sensor = open("processes", &node.host()).expect("it opens");
    assert_eq!(told(&look(&node, sensor.as_mut(), 100)).len(), 1);
    (100..140).for_each(|pid| node.remove(&format!("proc/{pid}")));
    let reaped = told(&look(&node, sensor.as_mut(), 105));
    assert_eq!((reaped.len(), reaped[0].n, reaped[0].pid), (1, 0, 7));
    assert!(told(&look(&node, sensor.as_mut(), 200)).is_empty());
}

#[test]
fn without_procfs_it_says_so() {
    let node = Node::new("no-processes");
    assert!(open("processes", &node.host()).is_err());
    let sights = (spec("processes").examine)(&neglect("seen", 1).host());
    assert!(sights.iter().all(|sight| sight.clarity == Clarity::Sees));
}

/// Tasks in uninterruptible sleep, which each wait in a function.
fn hang(name: &str, tasks: &[(u32, &str)]) -> Node {
    let node = neglect(name, 0);
    write(&node, 8, "dd", 'S', 1);
    for (pid, wait) in tasks {
        write(&node, *pid, "rsync", 'D', 1);
        node.write(&format!("proc/{pid}/wchan"), *wait);
        node.write(
            &format!("proc/{pid}/cgroup"),
            "0::/system.slice/backup.service\n",
        );
        let stack = format!("[<0>] {wait}+0x1/0x2\n[<0>] nfs4_call_sync+0x1/0x2 [nfsv4]\n");
        node.write(&format!("proc/{pid}/stack"), stack);
    }
    node
}

fn blocked(records: &[Record]) -> Vec<(String, u64, u64)> {
    let events = records.iter();
    let events = events.filter_map(|record| Event::of(record, &fact::TASKS_BLOCKED));
    events
        .map(|event| {
            let seconds = event.says.longest_ns / 1_000_000_000;
            (event.subject.name.to_string(), event.says.n, seconds)
        })
        .collect()
}

#[test]
fn tasks_that_sleep_on_are_told_by_what_they_wait_in() {
    let waits = [(20, "rpc_wait"), (21, "rpc_wait"), (22, "__refrigerator")];
    let node = hang("hung", &waits);
    let mut sensor = open("processes", &node.host()).expect("it opens");
    assert!(blocked(&look(&node, sensor.as_mut(), 100)).is_empty());
    let told = look(&node, sensor.as_mut(), 105);
    assert_eq!(blocked(&told), [("rpc_wait".to_owned(), 2, 5)]);
    let says = told
        .iter()
        .find_map(|record| Event::of(record, &fact::TASKS_BLOCKED));
    let says = says.expect("it was told").says;
    assert_eq!(says.stack, ["rpc_wait", "nfs4_call_sync"]);
    assert_eq!(says.tasks[0].unit.as_deref(), Some("backup.service"));
    let told = look(&node, sensor.as_mut(), 110);
    assert_eq!(blocked(&told), [("rpc_wait".to_owned(), 2, 10)]);
    assert!(
        blocked(&look(&node, sensor.as_mut(), 115)).is_empty(),
        "not twice as long"
    );
    write(&node, 20, "rsync", 'S', 1);
    node.remove("proc/21");
    let over = look(&node, sensor.as_mut(), 120);
    assert_eq!(blocked(&over), [("rpc_wait".to_owned(), 0, 0)]);
}

#[test]
fn tasks_of_a_paused_container_do_not_hang() {
    // Since Linux 6.1 they stay in what they slept in.
    let node = hang("paused", &[(20, "hrtimer_nanosleep"), (21, "io_wait")]);
    let mount = "31 30 0:27 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n";
    node.write("proc/self/mountinfo", format!("{MOUNTS}{mount}"));
    for (pid, place) in [(20, "/docker/paused"), (21, "/docker/other")] {
        node.write(
            &format!("proc/{pid}/cgroup"),
            format!("4:freezer:{place}\n"),
        );
    }
    let state = |place: &str, state: &str| {
        let file = format!("sys/fs/cgroup/freezer/docker/{place}/freezer.state");
        node.write(&file, format!("{state}\n"));
    };
    state("paused", "FROZEN");
    // Not all of it is: one of its tasks may hang.
    state("other", "FREEZING");
    let mut sensor = open("processes", &node.host()).expect("it opens");
    let first = look(&node, sensor.as_mut(), 100);
    let told = look(&node, sensor.as_mut(), 105);
    assert_eq!(blocked(&told), [("io_wait".to_owned(), 1, 5)]);
    let n = Record::value;
    let counted = first
        .iter()
        .filter(|record| record.fact() == Some(&fact::PROCESSES_UNINTERRUPTIBLE));
    assert_eq!(counted.filter_map(n).collect::<Vec<_>>(), [1.0]);
    // Paused while it is followed.
    state("other", "FROZEN");
    let over = look(&node, sensor.as_mut(), 110);
    assert_eq!(blocked(&over), [("io_wait".to_owned(), 0, 0)]);
}

#[test]
fn who_waits_for_a_fuse_server_that_does_not_answer_hangs() {
    let node = hang("fuse", &[]);
    write(&node, 20, "ls", 'S', 1);
    node.write("proc/20/wchan", "request_wait_answer");
    let waiting = "sys/fs/fuse/connections/39/waiting";
    node.write(waiting, "0\n");
    let mut sensor = open("processes", &node.host()).expect("it opens");
    for second in [100, 105] {
        assert!(blocked(&look(&node, sensor.as_mut(), second)).is_empty());
    }
    node.write(waiting, "1\n");
    for second in [110, 115] {
        assert!(blocked(&look(&node, sensor.as_mut(), second)).is_empty());
    }
    let told = look(&node, sensor.as_mut(), 120);
    assert_eq!(blocked(&told), [("request_wait_answer".to_owned(), 1, 5)]);
    node.write("proc/20/wchan", "do_sys_poll");
    let over = look(&node, sensor.as_mut(), 125);
    assert_eq!(blocked(&over), [("request_wait_answer".to_owned(), 0, 0)]);
}

#[test]
fn a_task_that_takes_the_place_of_another_is_told() {
    let node = hang("place", &[(20, "io_wait")]);
    let mut sensor = open("processes", &node.host()).expect("it opens");
    look(&node, sensor.as_mut(), 100);
    look(&node, sensor.as_mut(), 105);
    write(&node, 21, "tar", 'D', 1);
    node.write("proc/21/wchan", "io_wait");
    let told = look(&node, sensor.as_mut(), 110);
    assert_eq!(blocked(&told), [("io_wait".to_owned(), 1, 10)]);
    write(&node, 20, "rsync", 'S', 1);
    let told = look(&node, sensor.as_mut(), 115);
    assert_eq!(blocked(&told), [("io_wait".to_owned(), 1, 5)]);
}

#[test]
fn a_task_that_runs_between_two_looks_is_not_stuck() {
    let node = hang("ordinary", &[(20, "io_wait")]);
    let mut sensor = open("processes", &node.host()).expect("it opens");
    for (second, switches) in [(100, 7), (105, 90), (110, 180), (115, 260)] {
        write_switches(&node, 20, switches);
        assert!(
            blocked(&look(&node, sensor.as_mut(), second)).is_empty(),
            "{second}"
        );
    }
}

#[test]
fn tasks_that_wait_for_io_in_two_polls_ask_for_a_scan() {
    let node = hang("asked", &[]);
    node.write("proc/stat", "cpu 1 2 3\nprocs_running 1\nprocs_blocked 2\n");
    let mut sensor = open("processes", &node.host()).expect("it opens");
    let mut scans = |seconds| {
        let records = look(&node, sensor.as_mut(), seconds);
        let mut facts = records.iter().map(Record::fact);
        facts.any(|fact| fact == Some(&fact::PROCESSES_TOTAL))
    };
    assert!(scans(100), "the first");
    assert!(scans(105), "they wait in two polls");
    node.write("proc/stat", "cpu 1 2 3\nprocs_running 1\nprocs_blocked 0\n");
    assert!(!scans(110));
}
