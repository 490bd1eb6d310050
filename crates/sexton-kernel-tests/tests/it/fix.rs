//! Dying cgroups are freed without a reboot: those that were aimed at, and no others.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use sexton_host::Host;
use sexton_kernel_tests::cache;
use sexton_kernel_tests::nursery::{Nursery, Pin};
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton;
use sexton_model::census::State;
use sexton_sensors::memcg::{CensusOptions, census};

const LEAKER: &str = env!("CARGO_BIN_EXE_leaker");

fn nursery(name: &str) -> Nursery {
    for need in [Need::Root, Need::Bpf, Need::Sexton] {
        require(need);
    }
    Nursery::new(name).expect("a cgroup of our own")
}

/// Makes them and ends whoever made them, so that only files hold them.
fn leave(nursery: &Nursery, name: &str, n: u32, pin: Pin) {
    drop(nursery.leak(LEAKER, name, n, pin).expect("made"));
}

/// Whoever holds files open for us also holds some memory of its own, which was charged to
/// whichever cgroup it was in.
const HELD_BY_MEMORY: u64 = 5;

fn assert_only_memory_holds(report: &Value) {
    let left = report["left"].as_array().expect("reasons");
    for left in left {
        let why = left["why"].as_str().expect("a reason");
        let most = match why {
            why if why.contains("metadata") => MOST_BY_METADATA,
            why if why.contains("not a file") || why.contains("on their way") => HELD_BY_MEMORY,
            _ => 0,
        };
        assert!(left["dying"].as_u64() <= Some(most), "{report:#}");
    }
}

/// Blocks of inodes and the like that the filesystem's journal still needs: the more, the
/// longer ago it has seen this part of the disk.
const MOST_BY_METADATA: u64 = 8;

/// Only what the filesystem's journal still needs may be left.
fn assert_only_metadata_holds(report: &Value) {
    let left = report["left"].as_array().expect("reasons");
    let n: u64 = left.iter().filter_map(|left| left["dying"].as_u64()).sum();
    assert!(n <= MOST_BY_METADATA && report["after"] == n, "{report:#}");
    for left in left {
        let why = left["why"].as_str().expect("a reason");
        assert!(why.contains("metadata"), "{report:#}");
    }
}

fn fix() -> Command {
    let mut command = Command::new(sexton::binary().expect("required"));
    command.args(["fix", "--json"]);
    command
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// Frees what is of one name below the nursery, and reports.
fn free(nursery: &Nursery, name: &str, more: &[&str]) -> (Value, Option<i32>) {
    let origin = format!("{}/{name}", nursery.path);
    let output = fix()
        .args(["--origin", &origin, "--apply", "--yes"])
        .args(more)
        .output()
        .expect("it runs");
    (json(&output), output.status.code())
}

fn n_dying(nursery: &Nursery, name: &str) -> usize {
    let host = Host::live().expect("a mount table");
    let census = census(&host, CensusOptions::default()).expect("a census");
    let prefix = format!("{}/{name}", nursery.path);
    let dying = census.tree.iter().filter(|(_, c)| c.state == State::Dying);
    dying
        .filter(|(ix, _)| census.tree.path(*ix).starts_with(prefix.as_bytes()))
        .count()
}

/// Steps that did something, with what they were to free and what they did free.
fn climbed(report: &Value) -> Vec<(u64, u64)> {
    let steps = report["steps"].as_array().expect("steps").iter();
    let number = |value: &Value| value.as_u64().expect("a number");
    steps
        .filter(|step| step["outcome"] == "done")
        .map(|step| {
            let freed = number(&step["before"]) - number(&step["after"]);
            (number(&step["predicted"]), freed)
        })
        .collect()
}

#[test]
#[ignore = "needs root, bpf and sexton: run cargo xtask test kernel"]
fn a_plan_changes_nothing() {
    let nursery = nursery("plan");
    leave(&nursery, "z", 23, Pin::OwnFile);
    let origin = format!("{}/z-<n>", nursery.path);
    let output = fix().args(["--origin", &origin]).output().expect("it runs");
    let plan = json(&output);
    // A kernel that wants memory may let go of one by itself, but never of more by a plan.
    let before = plan["before"].as_u64().expect("a count");
    assert!((21..=23).contains(&before), "{plan:#}");
    assert_eq!(output.status.code(), Some(1));
    let predicted = plan["plan"][0]["predicted"].as_u64().expect("a count");
    assert!((21..=before).contains(&predicted), "{plan:#}");
    assert!(n_dying(&nursery, "z-") >= 21);
}

/// The same by a sexton that may not load programs, so that it can count and not name.
fn free_without_bpf(nursery: &Nursery, more: &[&str]) -> (Value, Option<i32>) {
    const DROPPED: &str = "-bpf,-perfmon,-sys_admin";
    let output = Command::new("setpriv")
        .args(["--bounding-set", DROPPED, "--inh-caps", DROPPED, "--"])
        .arg(sexton::binary().expect("required"))
        .args(["fix", "--json", "--origin", &nursery.path])
        .args(["--apply", "--yes"])
        .args(more)
        .output()
        .expect("setpriv runs");
    (json(&output), output.status.code())
}

#[test]
#[ignore = "needs root, bpf and sexton: run cargo xtask test kernel"]
fn what_can_only_be_counted_is_freed_below_its_parent() {
    let nursery = nursery("nameless");
    leave(&nursery, "z", 211, Pin::SharedLog);
    let (report, _) = free_without_bpf(&nursery, &[]);
    let number = |key: &str| report[key].as_u64().expect("a count");
    assert!(number("before") >= number("after") + 200, "{report:#}");
    assert!(
        n_dying(&nursery, "z-") as u64 <= MOST_BY_METADATA,
        "{report:#}"
    );
    assert_eq!(report["reboot_advised"], false, "{report:#}");
}

#[test]
#[ignore = "needs root, bpf and sexton: run cargo xtask test kernel"]
fn neighbours_of_what_cannot_be_named_keep_their_cache() {
    let nursery = nursery("nameless-beside");
    let cache = fill_cache(&nursery, "neighbour", 16 << 20);
    leave(&nursery, "z", 211, Pin::SharedLog);
    let (report, _) = free_without_bpf(&nursery, &[]);
    assert!(cache::share(&cache).expect("its pages") > 0.9, "{report:#}");
    // Where the kernel cannot spare neighbours the step waits for leave.
    let (report, _) = free_without_bpf(&nursery, &["--allow-siblings"]);
    assert!(
        n_dying(&nursery, "z-") as u64 <= MOST_BY_METADATA,
        "{report:#}"
    );
}

#[test]
#[ignore = "needs root, bpf and sexton: run cargo xtask test kernel"]
fn files_on_disk_are_let_go_as_predicted() {
    for (name, pin) in [("own", Pin::OwnFile), ("log", Pin::SharedLog)] {
        let nursery = nursery(name);
        leave(&nursery, "z", 41, pin);
        let (report, _) = free(&nursery, "z-<n>", &[]);
        assert_eq!(report["before"], 41, "{report:#}");
        let (predicted, freed) = climbed(&report)[0];
        assert_eq!(predicted, freed, "{report:#}");
        assert_only_metadata_holds(&report);
        assert!(nursery.files.read_dir().expect("files").next().is_some());
    }
}

#[test]
#[ignore = "needs root, bpf and sexton: run cargo xtask test kernel"]
fn a_deleted_file_is_let_go_through_whoever_has_it_open() {
    let nursery = nursery("gone");
    let leak = nursery.leak(LEAKER, "z", 19, Pin::Deleted).expect("made");
    let (report, _) = free(&nursery, "z-<n>", &[]);
    assert_only_memory_holds(&report);
    drop(leak);
}

#[test]
#[ignore = "needs root, bpf and sexton: run cargo xtask test kernel"]
fn a_mapped_file_takes_the_second_rung() {
    let nursery = nursery("mapped");
    let leak = nursery.leak(LEAKER, "z", 17, Pin::Mapped).expect("made");
    let (report, _) = free(&nursery, "z-<n>", &["--allow-siblings"]);
    assert_only_memory_holds(&report);
    drop(leak);
}

#[test]
#[ignore = "needs root, bpf and sexton: run cargo xtask test kernel"]
fn a_mapped_file_with_neighbours_waits_for_leave_and_names_who_maps_it() {
    let nursery = nursery("leave");
    let leak = nursery.leak(LEAKER, "z", 17, Pin::Mapped).expect("made");
    fill_cache(&nursery, "neighbour", 8 << 20);
    let (report, code) = free(&nursery, "z-<n>", &[]);
    assert_eq!(
        (&report["after"], code),
        (&17.into(), Some(1)),
        "{report:#}"
    );
    let shown = report["left"].to_string();
    assert!(shown.contains("leaker (pid "), "{report:#}");
    let withheld = report["steps"].to_string();
    assert!(withheld.contains("--allow-siblings"), "{report:#}");
    drop(leak);
}

#[test]
#[ignore = "needs root, bpf and sexton: run cargo xtask test kernel"]
fn tmpfs_is_not_let_go_and_is_named() {
    let nursery = nursery("tmpfs");
    let _leak = nursery.leak(LEAKER, "z", 13, Pin::Tmpfs).expect("made");
    let (report, code) = free(&nursery, "z-<n>", &["--allow-siblings"]);
    assert_eq!(code, Some(1), "{report:#}");
    assert_eq!(n_dying(&nursery, "z-"), 13);
    let left = report["left"].to_string();
    assert!(
        left.contains(&nursery.tmpfs.display().to_string()),
        "{report:#}"
    );
    assert!(left.contains("delete it"), "{report:#}");
    assert!(nursery.tmpfs.read_dir().expect("files").count() >= 13);
}

fn fill_cache(nursery: &Nursery, name: &str, bytes: usize) -> std::path::PathBuf {
    cache::fill(nursery, name, bytes).expect("a neighbour")
}

/// The part of a file that is cached.
fn cached(path: &Path) -> f64 {
    cache::share(path).expect("fincore, of util-linux, runs")
}

#[test]
#[ignore = "needs root, bpf and sexton: run cargo xtask test kernel"]
fn what_was_not_aimed_at_keeps_its_cache_and_its_dying() {
    let nursery = nursery("two");
    leave(&nursery, "guilty", 43, Pin::SharedLog);
    leave(&nursery, "other", 29, Pin::SharedLog);
    let cache = fill_cache(&nursery, "neighbour", 16 << 20);
    assert!(cached(&cache) > 0.99);
    let (report, code) = free(&nursery, "guilty-<n>", &[]);
    assert_only_metadata_holds(&report);
    assert_eq!(code, Some(i32::from(report["after"] != 0)), "{report:#}");
    assert_eq!(n_dying(&nursery, "other-"), 29);
    assert!(cached(&cache) >= 0.9, "{} is left", cached(&cache));
}

#[test]
#[ignore = "needs root, bpf and sexton: run cargo xtask test kernel"]
fn a_leak_that_goes_on_is_told_and_not_chased_for_ever() {
    let nursery = nursery("goes-on");
    let cgroup = nursery.cgroup.display();
    let log = nursery.files.join("z.log");
    let log = log.display();
    // A child that enters a new cgroup, appends to a log and goes, ten times a second.
    let script = format!(
        "i=0; while :; do i=$((i+1)); mkdir {cgroup}/z-$i; \
         (echo 0 > {cgroup}/z-$i/cgroup.procs; head -c 8192 /dev/zero >> {log}); \
         rmdir {cgroup}/z-$i; sleep 0.1; done"
    );
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .stderr(Stdio::null())
        .spawn()
        .expect("sh runs");
    while n_dying(&nursery, "z-") < 11 {
        thread::sleep(Duration::from_millis(100));
    }
    let (report, code) = free(&nursery, "z-<n>", &[]);
    child.kill().expect("it ran");
    child.wait().expect("it ended");
    assert!(report["still_leaking"].is_string(), "{report:#}");
    assert_eq!(code, Some(1));
}

#[test]
#[ignore = "needs root, bpf and sexton: run cargo xtask test kernel"]
fn a_signal_ends_it_in_the_middle_and_a_second_one_is_refused() {
    let nursery = nursery("signal");
    leave(&nursery, "z", 4001, Pin::OwnFile);
    let origin = format!("{}/z-<n>", nursery.path);
    let mut first = fix()
        .args(["--origin", &origin, "--apply", "--yes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    wait_for_lock();
    let second = fix()
        .args(["--origin", &origin, "--apply", "--yes"])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("pid {}", first.id())), "{said}");
    let pid = rustix::process::Pid::from_child(&first);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let mut text = String::new();
    let mut out = first.stdout.take().expect("piped");
    out.read_to_string(&mut text).expect("it reports");
    first.wait().expect("it ended");
    let report: Value = serde_json::from_str(&text).expect("a report");
    assert!(report["after"].as_u64().is_some(), "{report:#}");
}

/// Until the first one holds the lock, which is when it has planned.
fn wait_for_lock() {
    let path = Path::new("/run/sexton-fix.lock");
    for _ in 0..200 {
        let held = File::open(path).is_ok_and(|file| {
            rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err()
        });
        if held {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{} was not taken", path.display());
}

#[test]
#[ignore = "needs root, bpf and sexton: run cargo xtask test kernel"]
fn a_cgroup_mount_that_cannot_be_written_is_told() {
    let nursery = nursery("read-only");
    let _leak = nursery.leak(LEAKER, "z", 7, Pin::Mapped).expect("made");
    let mount = nursery.cgroup.parent().expect("a mount").display();
    let script = format!(
        "mount --make-rprivate / && mount -o remount,bind,ro {mount} && \
         exec \"$0\" fix --json --origin '{}/z-<n>' --apply --yes --allow-siblings",
        nursery.path
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .arg(sexton::binary().expect("required"))
        .output()
        .expect("unshare, of util-linux, runs");
    let report = json(&output);
    assert_eq!(output.status.code(), Some(2), "{report:#}");
    assert!(
        report["steps"].to_string().contains("ead-only"),
        "{report:#}"
    );
    assert_eq!(report["after"], 7);
}

/// Frees it, and does something else once it has planned.
fn free_while(nursery: &Nursery, name: &str, meanwhile: impl FnOnce()) -> Value {
    let origin = format!("{}/{name}", nursery.path);
    let child = fix()
        .args(["--origin", &origin, "--apply", "--yes", "--allow-siblings"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    wait_for_lock();
    meanwhile();
    json(&child.wait_with_output().expect("it ends"))
}

fn assert_nothing_failed(report: &Value) {
    let steps = report["steps"].as_array().expect("steps");
    assert!(!steps.is_empty(), "{report:#}");
    assert!(
        steps.iter().all(|step| step["outcome"] != "failed"),
        "{report:#}"
    );
}

#[test]
#[ignore = "needs root, bpf and sexton: run cargo xtask test kernel"]
fn files_that_vanish_after_the_plan_are_no_failure() {
    let nursery = nursery("vanish");
    leave(&nursery, "z", 1009, Pin::OwnFile);
    let report = free_while(&nursery, "z-<n>", || nursery.delete_files());
    assert_nothing_failed(&report);
    assert!(nursery.files.read_dir().expect("a folder").next().is_none());
    let after = report["after"].as_u64().expect("a count");
    assert!(after < 1009 / 10, "{report:#}");
}

#[test]
#[ignore = "needs root, bpf and sexton: run cargo xtask test kernel"]
fn a_parent_that_is_removed_after_the_plan_is_no_failure() {
    let nursery = nursery("orphans");
    let parent = nursery.parent("deep").expect("a parent");
    let mut leak = nursery
        .start_in(&parent, LEAKER, "z", 17, Pin::Mapped)
        .expect("started");
    leak.wait().expect("made");
    let home = nursery.cgroup.join("home/cgroup.procs");
    fs::write(home, leak.pid().to_string()).expect("moved");
    let report = free_while(&nursery, "deep/z-<n>", || {
        fs::remove_dir(parent.join("home")).expect("nobody is in it");
        fs::remove_dir(&parent).expect("nobody is in it");
    });
    assert_nothing_failed(&report);
    assert_only_memory_holds(&report);
    drop(leak);
}
