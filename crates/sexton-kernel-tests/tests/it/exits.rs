//! Processes that end badly come back as they ended, once each.

use std::fs;
use std::process::{Command, ExitStatus, Stdio};

use sexton_kernel_tests::nursery::Nursery;
use sexton_model::fact::exit as fact;
use sexton_model::record::Record;

use crate::sensor::Open;

const ENDER: &str = env!("CARGO_BIN_EXE_ender");

/// Ends a process in the nursery's `home`; returns its number and how it ended.
fn end(nursery: &Nursery, how: &str) -> (u32, ExitStatus) {
    let mut command = Command::new(ENDER);
    command.arg(nursery.cgroup.join("home")).arg(how);
    command.stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let status = child.wait().expect("it ends");
    (child.id(), status)
}

/// The one record of a process.
fn only(sensor: &Open, tgid: u32) -> &Record {
    let mut found = sensor.events(&fact::PROCESS_FAILED, "tgid", &tgid.to_string());
    found.retain(|record| record.detail("tgid") == Some(tgid.to_string().as_str()));
    let [record] = found[..] else {
        panic!("one record of {tgid}, not {found:#?}")
    };
    record
}

fn check(sensor: &Open, nursery: &Nursery, tgid: u32, key: &str, value: &str) {
    let record = only(sensor, tgid);
    let home = format!("{}/home", nursery.path);
    assert_eq!(record.detail(key), Some(value), "{record:#?}");
    assert_eq!(record.detail("comm"), Some("ender"), "{record:#?}");
    assert_eq!(record.detail("cgroup"), Some(home.as_str()), "{record:#?}");
    assert_eq!(record.detail("uid"), Some("0"), "{record:#?}");
    let lifetime_ns = record.detail("lifetime_ns").expect("told").parse::<u64>();
    let lifetime_ns = lifetime_ns.expect("a number");
    assert!((1..60_000_000_000).contains(&lifetime_ns), "{record:#?}");
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn this_machine_tells_of_an_end() {
    let mut sensor = Open::new("exits");
    let mut child = Command::new("false").spawn().expect("it starts");
    child.wait().expect("it ends");
    sensor.poll();
    assert_eq!(only(&sensor, child.id()).detail("exit_code"), Some("1"));
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn ends_come_back_as_they_were() {
    let nursery = Nursery::new("ends").expect("a cgroup of our own");
    let mut sensor = Open::new("exits");
    sensor.poll();
    let normal = sensor.last(&fact::PROCESS_EXITS_NORMAL).expect("counted");
    let [zero, three, segv, kill] = ["0", "3", "segv", "kill"].map(|how| end(&nursery, how));
    assert!(zero.1.success());
    sensor.poll();
    check(&sensor, &nursery, three.0, "exit_code", "3");
    check(&sensor, &nursery, segv.0, "signal", "11");
    check(&sensor, &nursery, kill.0, "signal", "9");
    assert!(only(&sensor, kill.0).detail("exit_code").is_none());
    assert_eq!(only(&sensor, kill.0).detail("oom"), Some("false"));
    let untold = sensor.events(&fact::PROCESS_FAILED, "tgid", &zero.0.to_string());
    assert!(untold.is_empty(), "{untold:#?}");
    assert!(sensor.last(&fact::PROCESS_EXITS_NORMAL) > Some(normal));
    assert!(sensor.last(&fact::PROCESS_EXITS_ABNORMAL) >= Some(3));
    assert_eq!(sensor.lost(), 0);
}

/// A program that asks a daemon is told by its name, and no other that ends well.
#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn clients_that_end_well_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let named = |name: &str| {
        let program = folder.path().join(name);
        fs::copy("/bin/true", &program).expect("copied");
        let mut child = Command::new(&program).spawn().expect("it starts");
        assert!(child.wait().expect("it ends").success());
        child.id().to_string()
    };
    let mut sensor = Open::new("exits");
    let [client, other] = ["systemd-run", "systemd-running"].map(named);
    sensor.poll();
    let told = sensor.events(&fact::CLIENT_ENDED, "tgid", &client);
    let [record] = told[..] else {
        panic!("one record of {client}, not {told:#?}")
    };
    assert_eq!(record.detail("comm"), Some("systemd-run"));
    assert_eq!(record.detail("exit_code"), Some("0"));
    let told = sensor.events(&fact::CLIENT_ENDED, "tgid", &other);
    assert!(told.is_empty(), "{told:#?}");
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn a_kill_for_want_of_memory_says_so() {
    let nursery = Nursery::new("oom").expect("a cgroup of our own");
    let home = nursery.cgroup.join("home");
    let limits = [
        ("memory.swappiness", "0"),
        ("memory.limit_in_bytes", "33554432"),
        ("memory.swap.max", "0"),
        ("memory.max", "33554432"),
    ];
    for (file, value) in limits {
        let file = home.join(file);
        if file.exists() {
            fs::write(file, value).expect("it is ours");
        }
    }
    let mut sensor = Open::new("exits");
    let (tgid, status) = end(&nursery, "oom");
    assert!(!status.success());
    sensor.poll();
    check(&sensor, &nursery, tgid, "signal", "9");
    assert_eq!(only(&sensor, tgid).detail("oom"), Some("true"));
    assert!(sensor.last(&fact::OOM_VICTIMS) >= Some(1));
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn a_burst_of_failures_is_counted() {
    let mut sensor = Open::new("exits");
    let script = "i=0; while [ $i -lt 1009 ]; do (exit 41); i=$((i + 1)); done";
    let status = Command::new("sh").args(["-c", script]).status();
    assert!(status.expect("it runs").success());
    sensor.poll();
    let told = sensor
        .events(&fact::PROCESS_FAILED, "exit_code", "41")
        .len() as u64;
    let bursts = sensor.events(&fact::PROCESS_FAILED_BURST, "exit_code", "41");
    let counted = bursts
        .iter()
        .map(|record| record.detail("n").expect("told"));
    let counted: u64 = counted.map(|n| n.parse::<u64>().expect("a number")).sum();
    assert!(counted > 0, "more than are told one by one");
    assert_eq!(told + counted + sensor.lost(), 1009);
}
