//! Pressure on a node and in its cgroups, and where there is none to be had.

use proptest::prelude::*;
use sexton_model::fact::pressure as fact;
use sexton_model::gap::Why;
use sexton_model::record::Record;
use sexton_model::sight::Clarity;
use sexton_sensors::Sensor;

use crate::node::{Node, open, poll, show, spec};

const RESOURCES: [&str; 3] = ["cpu", "memory", "io"];

fn file(some_us: u64, full_us: u64) -> String {
    format!(
        "some avg10=25.00 avg60=0.00 avg300=0.00 total={some_us}\n\
         full avg10=0.50 avg60=0.00 avg300=0.00 total={full_us}\n"
    )
}

fn write_node(node: &Node, us: u64) {
    for resource in RESOURCES {
        node.write(&format!("proc/pressure/{resource}"), file(us, us / 2));
    }
}

fn write_cgroup(node: &Node, path: &str, us: u64) {
    for resource in RESOURCES {
        let name = format!("sys/fs/cgroup/{path}/{resource}.pressure");
        node.write(&name, file(us, us / 2));
    }
}

fn watch(node: &Node) -> Box<dyn Sensor> {
    open("pressure", &node.host()).expect("it opens")
}

fn look(node: &Node, sensor: &mut dyn Sensor, seconds: u64) -> Vec<Record> {
    poll("pressure", sensor, &node.host(), seconds * 1000)
}

/// Who has a ratio of waiting for I/O, and which.
fn io(records: &[Record]) -> Vec<String> {
    let io = records
        .iter()
        .filter(|record| record.fact() == Some(&fact::PRESSURE_IO_SOME_RATIO));
    io.filter_map(|record| Some(format!("{} {:.2}", record.subject, record.value()?)))
        .collect()
}

#[test]
fn totals_become_parts_of_the_interval() {
    let node = Node::new("psi");
    write_node(&node, 1_000_000);
    let mut sensor = watch(&node);
    let first = show(&look(&node, sensor.as_mut(), 1));
    assert!(
        first.contains(&"pressure_cpu_some_avg10_ratio node 0.25".to_owned()),
        "{first:?}"
    );
    assert!(first.iter().all(|line| !line.contains("some_ratio")));
    write_node(&node, 1_600_000);
    let second = show(&look(&node, sensor.as_mut(), 2));
    for line in [
        "pressure_cpu_some_ratio node 0.60",
        "pressure_memory_full_ratio node 0.30",
        "pressure_io_some_ratio node 0.60",
    ] {
        assert!(second.contains(&line.to_owned()), "{line} in {second:?}");
    }
    let undefined = |line: &String| line.starts_with("pressure_cpu_full");
    assert!(!second.iter().any(undefined), "{second:?}");
}

#[test]
fn a_total_that_begins_anew_is_no_rate() {
    let node = Node::new("psi-reset");
    write_node(&node, 5_000_000);
    let mut sensor = watch(&node);
    look(&node, sensor.as_mut(), 1);
    write_node(&node, 100_000);
    assert_eq!(io(&look(&node, sensor.as_mut(), 2)), [""; 0]);
    write_node(&node, 200_000);
    assert_eq!(io(&look(&node, sensor.as_mut(), 3)), ["node 0.10"]);
}

#[test]
fn the_cgroups_that_waited_most_are_watched() {
    let node = Node::new("psi-top");
    write_node(&node, 0);
    write_cgroup(&node, "system.slice", 9_000_000);
    for i in 0..23 {
        write_cgroup(&node, &format!("system.slice/{i:02}.service"), i * 1000);
    }
    write_cgroup(&node, "system.slice/22.service/deep", 10_000_000);
    let mut sensor = watch(&node);
    look(&node, sensor.as_mut(), 1);
    write_cgroup(&node, "system.slice/22.service", 22_000 + 250_000);
    let told = io(&look(&node, sensor.as_mut(), 2));
    assert_eq!(told.len(), 1 + 16);
    assert_eq!(told[1], "cgroup /system.slice 0.00");
    assert_eq!(told[2], "cgroup /system.slice/22.service 0.25");
    assert_eq!(told[16], "cgroup /system.slice/08.service 0.00");
}

#[test]
fn a_cgroup_that_ends_is_no_gap_and_a_new_one_is_found() {
    let node = Node::new("psi-end");
    write_node(&node, 0);
    write_cgroup(&node, "a.slice", 1000);
    write_cgroup(&node, "b.slice", 2000);
    let mut sensor = watch(&node);
    look(&node, sensor.as_mut(), 1);
    node.remove("sys/fs/cgroup/b.slice");
    write_cgroup(&node, "c.slice", 3000);
    let after = look(&node, sensor.as_mut(), 2);
    assert_eq!(io(&after), ["node 0.00", "cgroup /a.slice 0.00"]);
    assert!(!show(&after).iter().any(|line| line.starts_with("gap")));
    look(&node, sensor.as_mut(), 61);
    let told = io(&look(&node, sensor.as_mut(), 62));
    assert_eq!(
        told,
        ["node 0.00", "cgroup /c.slice 0.00", "cgroup /a.slice 0.00"]
    );
}

#[test]
fn a_kernel_without_pressure_is_told_what_to_boot_with() {
    let node = Node::new("psi-off");
    let Err(gap) = open("pressure", &node.host()) else {
        panic!("there is nothing to open")
    };
    assert_eq!(gap.why, Why::Unsupported);
    assert!(gap.remedy.is_some_and(|remedy| remedy.contains("psi=1")));
    let sights = (spec("pressure").examine)(&node.host());
    assert!(sights.iter().all(|sight| sight.clarity == Clarity::Blind));
}

#[test]
fn a_file_that_makes_no_sense_is_a_gap_of_its_own() {
    let node = Node::new("psi-broken");
    write_node(&node, 0);
    let mut sensor = watch(&node);
    look(&node, sensor.as_mut(), 1);
    node.write("proc/pressure/memory", "some nonsense\n");
    let told = show(&look(&node, sensor.as_mut(), 2));
    let gaps: Vec<_> = told.iter().filter(|line| line.starts_with("gap")).collect();
    assert_eq!(gaps.len(), 1, "{told:?}");
    assert!(gaps[0].starts_with("gap node malformed: cannot make sense of /proc/pressure/memory"));
    assert!(told.contains(&"pressure_io_some_ratio node 0.00".to_owned()));
}

#[test]
fn hostile_names_are_shown_on_one_line() {
    let node = Node::new("psi-names");
    write_node(&node, 0);
    write_cgroup(&node, "evil\nname", 1000);
    let mut sensor = watch(&node);
    look(&node, sensor.as_mut(), 1);
    let told = io(&look(&node, sensor.as_mut(), 2));
    assert_eq!(told[1], r"cgroup /evil\012name 0.00");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_files_do(bytes: Vec<u8>) {
        let node = Node::new("psi-any");
        write_node(&node, 0);
        write_cgroup(&node, "a", 0);
        let mut sensor = watch(&node);
        look(&node, sensor.as_mut(), 1);
        node.write("proc/pressure/io", &bytes);
        node.write("sys/fs/cgroup/a/io.pressure", &bytes);
        look(&node, sensor.as_mut(), 2);
    }
}
