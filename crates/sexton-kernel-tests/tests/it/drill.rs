//! A drill makes the trouble it says, is caught, and leaves nothing behind.

use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sexton_kernel_tests::cores::Pinned;
use sexton_kernel_tests::drills::{RunningDrill, traces, wait_until_gone};
use sexton_kernel_tests::judging::{judge, watch};
use sexton_kernel_tests::require::{Need, require};
use sexton_model::diagnosis::Diagnosis;
use sexton_model::finding::FindingId;

const DRILL: &str = env!("CARGO_BIN_EXE_drill");

const N_DYING: u32 = 211;

/// All that speaks of what a drill does.
const SENSORS: [&str; 8] = [
    "cgroups", "cores", "exits", "klog", "memcg", "napi", "nics", "stacks",
];

fn needs() {
    require(Need::Root);
    require(Need::Bpf);
    require(Need::Program("ip"));
    require(Need::Program("ethtool"));
    assert_eq!(wait_until_gone().expect("seen"), Vec::<String>::new());
}

fn chain_to<'d>(diagnosis: &'d Diagnosis, end: &str) -> Vec<&'d str> {
    let mut chains = diagnosis.chains.iter();
    let chain = chains.find(|chain| chain.last().is_some_and(|last| last.as_str() == end));
    let chain = chain.unwrap_or_else(|| panic!("no chain ends in {end}: {:#?}", diagnosis.chains));
    chain.iter().map(FindingId::as_str).collect()
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn both_chains_are_found_and_kept_apart_or_joined_by_measurement() {
    needs();
    let mut drill = RunningDrill::start(DRILL, N_DYING, 20).expect("started");
    drill.wait_ready().expect("under way");
    let core = drill.core().expect("told");
    let pinned = Pinned::to(if core == 0 { 1 } else { 0 }).expect("another core");
    let diagnosis = judge(watch(&SENSORS, Duration::from_secs(15)));
    drop(pinned);
    let symptoms = chain_to(&diagnosis, "NIC001:drill-far");
    let expected = [
        "CPU002:drill-reader".to_owned(),
        format!("CPU001:{core}"),
        format!("NET001:{core}"),
        "NIC001:drill-far".to_owned(),
    ];
    assert!(
        symptoms.ends_with(&expected.each_ref().map(String::as_str)),
        "{symptoms:?}"
    );
    let pile = format!("MCG001:/sexton-drill-{}/run-<n>", drill.pid());
    let maker = diagnosis
        .links
        .iter()
        .find(|link| link.effect.as_str() == pile);
    let maker = maker.unwrap_or_else(|| panic!("nobody made {pile}: {:#?}", diagnosis.findings));
    assert!(
        maker.cause.as_str().starts_with("UNIT002:drill-churner"),
        "{maker:?}"
    );
    // Whichever it is on this kernel, it is said, with its evidence.
    let is_pair = |cause: &FindingId, effect: &FindingId| {
        cause.as_str() == pile && effect.as_str() == "CPU002:drill-reader"
    };
    let joined = diagnosis
        .links
        .iter()
        .any(|link| is_pair(&link.cause, &link.effect));
    let apart = diagnosis
        .separations
        .iter()
        .find(|apart| is_pair(&apart.cause, &apart.effect));
    assert!(joined != apart.is_some(), "{:#?}", diagnosis.separations);
    assert!(
        apart.is_none_or(|apart| apart.evidence.len() >= 2),
        "{apart:?}"
    );
    assert!(drill.join().expect("it ends"), "it ends well");
    // The kernel ends the thread that polled in its own time.
    assert_eq!(wait_until_gone().expect("seen"), Vec::<String>::new());
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn killed_at_any_moment_it_leaves_nothing() {
    needs();
    for after_ms in [3, 37, 97, 211, 503, 997, 1709] {
        let mut drill = RunningDrill::start(DRILL, N_DYING, 20).expect("started");
        thread::sleep(Duration::from_millis(after_ms));
        drill.kill();
        let left = wait_until_gone().expect("seen");
        assert_eq!(left, Vec::<String>::new(), "killed after {after_ms} ms");
    }
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn a_part_that_is_killed_ends_the_drill_and_all_is_cleared() {
    needs();
    for part in [
        "drill-reader",
        "drill-churner",
        "drill-network",
        "drill-janitor",
    ] {
        let mut drill = RunningDrill::start(DRILL, N_DYING, 20).expect("started");
        drill.wait_ready().expect("under way");
        let pid = drill
            .part(part)
            .unwrap_or_else(|| panic!("there is no {part}"));
        end(pid);
        assert!(
            !drill.join().expect("it ends"),
            "it says that {part} is gone"
        );
        let left = wait_until_gone().expect("seen");
        assert_eq!(left, Vec::<String>::new(), "{part} was killed");
    }
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn what_a_killed_drill_and_janitor_leave_the_next_one_clears() {
    needs();
    let mut drill = RunningDrill::start(DRILL, N_DYING, 20).expect("started");
    drill.wait_ready().expect("under way");
    // Time for a cgroup to be made.
    thread::sleep(Duration::from_millis(500));
    // It would notice that the janitor is gone, and clear up by itself.
    signal(drill.pid(), Signal::STOP);
    end(drill.part("drill-janitor").expect("a janitor"));
    drill.kill();
    let name = format!("sexton-drill-{}", drill.pid());
    let left = traces().expect("seen");
    assert!(left.iter().any(|trace| trace.ends_with(&name)), "{left:?}");
    let mut next = RunningDrill::start(DRILL, 7, 1).expect("started");
    next.wait_ready().expect("under way");
    let cleared = next
        .said
        .iter()
        .filter(|line| line.starts_with("left ") && line.ends_with(&name));
    assert!(cleared.count() >= 1, "{:?}", next.said);
    assert!(next.join().expect("it ends"));
    // The parts of the first are dead, but whoever inherits them may take its time.
    assert_eq!(wait_until_gone().expect("seen"), Vec::<String>::new());
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn there_is_one_drill_at_a_time() {
    needs();
    let mut drill = RunningDrill::start(DRILL, 7, 20).expect("started");
    drill.wait_ready().expect("under way");
    let mut second = RunningDrill::start(DRILL, 7, 20).expect("started");
    let refused = second.wait_ready().expect_err("it is refused").to_string();
    assert!(refused.contains("under way already"), "{refused}");
    assert!(drill.part("drill-reader").is_some(), "the first goes on");
}

fn end(pid: u32) {
    signal(pid, Signal::KILL);
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a number")).expect("a process");
    kill_process(pid, signal).expect("it is there");
}
