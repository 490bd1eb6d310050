//! Processes that end badly come back as they ended, once each.

use std::fs;
use std::process::{Command, ExitStatus, Stdio};

use sexton_kernel_tests::nursery::Nursery;
use sexton_model::fact::EventFact;
use sexton_model::fact::exit::{self as fact, ProcessExit};

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
fn only(sensor: &Open, tgid: u32) -> &ProcessExit {
    let found = of_process(sensor, &fact::PROCESS_FAILED, tgid);
    let [exit] = found[..] else {
        panic!("one record of {tgid}, not {found:#?}")
    };
    exit
}

fn of_process<'s>(
    sensor: &'s Open,
    fact: &'static EventFact<ProcessExit>,
    tgid: u32,
) -> Vec<&'s ProcessExit> {
    let exits = sensor.events(fact).map(|event| event.says);
    exits.filter(|exit| exit.tgid == Some(tgid)).collect()
}

/// How it ended: a status of its own, or a signal.
fn check(sensor: &Open, nursery: &Nursery, tgid: u32, how: (Option<u32>, Option<u32>)) {
    let exit = only(sensor, tgid);
    let home = format!("{}/home", nursery.path);
    assert_eq!((exit.exit_code, exit.signal), how, "{exit:#?}");
    assert_eq!(exit.comm.as_deref(), Some("ender"), "{exit:#?}");
    assert_eq!(exit.cgroup.as_deref(), Some(home.as_str()), "{exit:#?}");
    assert_eq!(exit.uid, Some(0), "{exit:#?}");
    let lifetime_ns = exit.lifetime_ns.expect("told");
    assert!((1..60_000_000_000).contains(&lifetime_ns), "{exit:#?}");
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn this_machine_tells_of_an_end() {
    let mut sensor = Open::new("exits");
    let mut child = Command::new("false").spawn().expect("it starts");
    child.wait().expect("it ends");
    sensor.poll();
    assert_eq!(only(&sensor, child.id()).exit_code, Some(1));
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
    check(&sensor, &nursery, three.0, (Some(3), None));
    check(&sensor, &nursery, segv.0, (None, Some(11)));
    check(&sensor, &nursery, kill.0, (None, Some(9)));
    assert_eq!(only(&sensor, kill.0).oom, Some(false));
    let untold = of_process(&sensor, &fact::PROCESS_FAILED, zero.0);
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
        child.id()
    };
    let mut sensor = Open::new("exits");
    let [client, other] = ["systemd-run", "systemd-running"].map(named);
    sensor.poll();
    let told = of_process(&sensor, &fact::CLIENT_ENDED, client);
    let [exit] = told[..] else {
        panic!("one record of {client}, not {told:#?}")
    };
    assert_eq!(exit.comm.as_deref(), Some("systemd-run"));
    assert_eq!(exit.exit_code, Some(0));
    let told = of_process(&sensor, &fact::CLIENT_ENDED, other);
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
    check(&sensor, &nursery, tgid, (None, Some(9)));
    assert_eq!(only(&sensor, tgid).oom, Some(true));
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
    let told = sensor.events(&fact::PROCESS_FAILED);
    let told = told.filter(|exit| exit.says.exit_code == Some(41)).count() as u64;
    let bursts = sensor.events(&fact::PROCESS_FAILED_BURST);
    let bursts = bursts.filter(|burst| burst.says.exit_code == Some(41));
    let counted: u64 = bursts.map(|burst| burst.says.n).sum();
    assert!(counted > 0, "more than are told one by one");
    assert_eq!(told + counted + sensor.lost(), 1009);
}
