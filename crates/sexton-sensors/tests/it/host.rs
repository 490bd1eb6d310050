//! A machine that describes itself, in whole, in part, and in nonsense.

use std::path::Path;

use proptest::prelude::*;
use sexton_host::{FolderRoot, Host};
use sexton_model::fact::host as fact;
use sexton_model::record::Record;

use crate::node::{Node, open, poll, show, spec};

const FIXTURE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fixtures/synthetic/eks-node"
);

fn fixture() -> Host {
    let root = FolderRoot::open(Path::new(FIXTURE)).expect("the fixture is there");
    Host::new(Box::new(root)).expect("a mount table")
}

fn describe(host: &Host) -> Vec<Record> {
    let mut sensor = open("host", host).expect("it opens");
    poll("host", sensor.as_mut(), host, 1000)
}

/// Asserts one entry; `None` for one that must not be there.
#[track_caller]
fn check(records: &[Record], key: &str, expected: Option<&str>) {
    let mut descriptions = records
        .iter()
        .filter_map(|record| record.says(&fact::HOST_DESCRIPTION));
    let description = descriptions.next().expect("a description");
    let entry = description.entries.get(key).map(String::as_str);
    assert_eq!(entry, expected, "{key}");
}

#[test]
fn a_cloud_node_is_described() {
    let records = describe(&fixture());
    for (key, expected) in [
        ("kernel_release", "6.1.141-155.222.amzn2023.x86_64"),
        ("distribution_id", "amzn"),
        ("distribution_pretty_name", "Amazon Linux 2023.7.20250623"),
        ("machine_vendor", "Amazon EC2"),
        ("machine_product", "m5.24xlarge"),
        ("hypervisor_flag", "yes"),
        ("cpus_online", "0-95"),
        ("sysctl_kernel_watchdog_thresh", "10"),
        ("sysctl_net_core_netdev_budget_usecs", "2000"),
        ("boot_psi", "1"),
        ("boot_systemd_unified_cgroup_hierarchy", "1"),
        ("image_machine_id", "uninitialized"),
        (
            "image_eks_release",
            "BASE_AMI_ID=\"ami-0123456789abcdef0\"; ARCH=\"x86_64\"",
        ),
    ] {
        check(&records, key, Some(expected));
    }
    // Not set, and so not told.
    check(&records, "boot_cgroup_no_v1", None);
    check(&records, "image_cloud_build_info", None);
    assert_eq!(
        show(&records)[1..],
        [
            "host_cpus node 96.00",
            "host_numa_nodes node 2.00",
            "host_memory_bytes node 399457124352.00",
        ]
    );
}

#[test]
fn secrets_of_the_command_line_stay_there() {
    let records = describe(&fixture());
    let shown = format!("{records:?}");
    assert!(shown.contains("rd.luks.password=<hidden>") && !shown.contains("hunter2"));
}

#[test]
fn the_doctor_sees_it_all() {
    let sights = (spec("host").examine)(&fixture());
    assert_eq!(sights.len(), 1, "{sights:?}");
}

#[test]
fn what_is_not_there_is_a_gap_and_not_zero() {
    let node = Node::new("bare");
    let records = describe(&node.host());
    check(&records, "kernel_release", None);
    check(&records, "image_machine_id", Some("absent"));
    let told = show(&records);
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told[1..].iter().all(|line| line.starts_with("gap node")));
}

#[test]
fn a_kernel_without_numa_has_one_node() {
    let node = Node::new("uma");
    node.write("sys/devices/system/cpu/online", "0-3\n");
    let told = show(&describe(&node.host()));
    assert!(
        told.contains(&"host_numa_nodes node 1.00".to_owned()),
        "{told:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_do(bytes: Vec<u8>) {
        let node = Node::new("host-any");
        for path in ["proc/cmdline", "proc/cpuinfo", "proc/meminfo", "etc/os-release", "etc/machine-id", "etc/eks/release"] {
            node.write(path, &bytes);
        }
        for record in describe(&node.host()) {
            let text = format!("{:?}", record.body);
            prop_assert!(!text.contains('\n'));
        }
    }
}
