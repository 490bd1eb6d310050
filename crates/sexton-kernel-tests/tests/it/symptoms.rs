//! Single symptoms, on a real kernel: each is found, and nobody is accused of more.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sexton_host::Host;
use sexton_host::cgroup::MemoryHierarchy;
use sexton_kernel_tests::cores::Pinned;
use sexton_kernel_tests::judging::{judge, watch};
use sexton_kernel_tests::require::{Need, require};
use sexton_model::diagnosis::{Diagnosis, Link};
use sexton_model::finding::{Confidence, Finding};
use sexton_model::subject::SubjectKind;

const CORE_HOG: &str = env!("CARGO_BIN_EXE_core_hog");

/// The core that is held, and the one that watches.
const HELD: u32 = 1;
const WATCHING: u32 = 0;

const SENSORS: [&str; 5] = ["cores", "klog", "memcg", "napi", "stacks"];

/// The helper `core_hog` on a core, before all ordinary tasks; gone when dropped. The
/// kernel leaves a twentieth of each second to others.
struct Hog(Child);

impl Hog {
    fn start(words: &[&str]) -> Self {
        let child = Command::new("taskset")
            .args(["-c", &HELD.to_string(), "chrt", "-f", "10", CORE_HOG])
            .args(words)
            .stdin(Stdio::null())
            .spawn();
        Self(child.expect("taskset starts"))
    }

    /// An ordinary task that wants the held core ten times a second.
    fn waiter() -> Self {
        let child = Command::new("taskset")
            .args(["-c", &HELD.to_string(), "sh", "-c"])
            .arg("while :; do sleep 0.1; done")
            .stdin(Stdio::null())
            .spawn();
        Self(child.expect("taskset starts"))
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        // Both fail when it has ended, which is what we want.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn of<'d>(diagnosis: &'d Diagnosis, code: &str) -> Vec<&'d Finding> {
    let findings = diagnosis.findings.iter();
    findings.filter(|finding| finding.code == code).collect()
}

fn needs() -> Pinned {
    require(Need::Root);
    require(Need::Bpf);
    Pinned::to(WATCHING).expect("two cores")
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn a_saturated_core_is_lost_and_nobody_walks() {
    let _pinned = needs();
    let hog = Hog::start(&["hold", "14000"]);
    let diagnosis = judge(watch(&SENSORS, Duration::from_secs(12)));
    drop(hog);
    let lost = of(&diagnosis, "CPU001");
    let held = lost
        .iter()
        .find(|finding| *finding.subject.name == *HELD.to_string());
    let held = held.unwrap_or_else(|| panic!("{:#?}", diagnosis.findings));
    let names_hog = |finding: &Finding| {
        finding
            .evidence
            .iter()
            .any(|one| one.text.contains("core_hog"))
    };
    assert!(names_hog(held), "{held:#?}");
    assert!(
        of(&diagnosis, "CPU002").is_empty(),
        "{:#?}",
        of(&diagnosis, "CPU002")
    );
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn a_reader_in_a_loop_is_named() {
    let _pinned = needs();
    let host = Host::live().expect("a mount table");
    let memory = MemoryHierarchy::find(&host).expect("read").expect("in use");
    let file = memory.mount.expect("mounted").join("memory.stat");
    let hog = Hog::start(&["read", &file.display().to_string(), "15000"]);
    let diagnosis = judge(watch(&SENSORS, Duration::from_secs(13)));
    drop(hog);
    let readers = of(&diagnosis, "CPU002");
    let reader = readers
        .iter()
        .find(|finding| finding.id().as_str() == "CPU002:core_hog");
    let reader = reader.unwrap_or_else(|| panic!("{:#?}", diagnosis.findings));
    assert!(
        reader.title.contains(&format!("core {HELD}")),
        "{}",
        reader.title
    );
    assert!(reader.title.contains("memory cgroup"), "{}", reader.title);
    let link = diagnosis
        .links
        .iter()
        .find(|link| link.cause == reader.id() && link.effect.as_str() == format!("CPU001:{HELD}"));
    assert!(link.is_some(), "{:#?}", diagnosis.links);
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn a_program_that_runs_before_all_others_holds_its_core() {
    let _pinned = needs();
    // On a quiet core little else waits: a thread of the kernel each second or two.
    let waiter = Hog::waiter();
    let hog = Hog::start(&["spin", "30000"]);
    let sensors = [&SENSORS[..], &["runq"]].concat();
    let diagnosis = judge(watch(&sensors, Duration::from_secs(14)));
    drop((hog, waiter));
    let holders = of(&diagnosis, "CPU006");
    let [holder] = holders[..] else {
        panic!("{:#?}", diagnosis.findings);
    };
    let who = format!("core_hog (pid {})", pid_of(holder));
    assert!(holder.title.contains(&who), "{}", holder.title);
    assert!(
        holder.title.contains(&format!("holds core {HELD} ")),
        "{}",
        holder.title
    );
    assert_eq!(holder.confidence, Confidence::CERTAIN);
    assert!(of(&diagnosis, "CPU001").is_empty(), "{diagnosis:#?}");
    // What polls on that core waits for it too, and then it is why.
    for starved in of(&diagnosis, "NET001") {
        let links = &diagnosis.links;
        let is_joined = |link: &&Link| link.cause == holder.id() && link.effect == starved.id();
        let is_any = links.iter().any(|link| is_joined(&link));
        assert!(is_any, "{:#?}", (links, starved, holder));
    }
}

fn pid_of(finding: &Finding) -> &str {
    let mut processes = finding.touched_of(SubjectKind::Process);
    processes.next().map_or("", |process| &process.name)
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn a_line_about_a_reset_stands_alone() {
    let _pinned = needs();
    let device = format!("sxt{}", std::process::id());
    let watching = std::thread::spawn(|| watch(&SENSORS, Duration::from_secs(4)));
    std::thread::sleep(Duration::from_secs(1));
    let line = format!("<4>NETDEV WATCHDOG: {device} (veth): transmit queue 0 timed out 5000 ms\n");
    let mut log = OpenOptions::new()
        .write(true)
        .open("/dev/kmsg")
        .expect("it opens");
    log.write_all(line.as_bytes()).expect("it is written");
    let diagnosis = judge(watching.join().expect("it watches"));
    let found = of(&diagnosis, "NIC001");
    let found = found
        .iter()
        .find(|finding| *finding.subject.name == *device);
    let found = found.unwrap_or_else(|| panic!("{:#?}", diagnosis.findings));
    assert_eq!(found.confidence, Confidence::WEAK, "a program wrote it");
    let chain = diagnosis
        .chains
        .iter()
        .find(|chain| chain.contains(&found.id()));
    assert_eq!(chain.map(Vec::len), Some(1), "{:#?}", diagnosis.links);
}
