//! Recordings that perf makes here, read by the program as users run it and by perf itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton;

/// Four threads whose names hold words of digits; without frame pointers, three functions deep.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>
__attribute__((noinline)) long inner(long n) {
    for (volatile long i = 0; i < 20000; i++) n += i;
    return n;
}
__attribute__((noinline)) long middle(long n) { long m = inner(n); __asm__ volatile("" : "+r"(m)); return m + 1; }
__attribute__((noinline)) long outer(long n) { long m = middle(n); __asm__ volatile("" : "+r"(m)); return m + 2; }
static const char *names[] = {"puma srv tp 001", "Job.Worker 3", "12", "1 2 3"};
static void *work(void *name) {
    prctl(PR_SET_NAME, name);
    long n = 0;
    for (time_t end = time(0) + 2; time(0) < end;) n = outer(n);
    return (void *)n;
}
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)names[i]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;

const NAMES: [&str; 4] = ["puma srv tp 001", "Job.Worker 3", "12", "1 2 3"];

/// A folder with the program and what perf recorded of it.
struct Recorded(tempfile::TempDir);

impl Recorded {
    fn new(perf: &[&str]) -> Self {
        require(Need::Root);
        require(Need::Program("perf"));
        require(Need::Program("gcc"));
        require(Need::Sexton);
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("names.c"), SOURCE).expect("its source");
        let built = Command::new("gcc")
            .args(["-O2", "-fomit-frame-pointer", "-o", "names", "names.c"])
            .args(["-fno-optimize-sibling-calls", "-lpthread"])
            .current_dir(folder.path())
            .status();
        assert!(built.expect("gcc is there").success(), "it does not build");
        let recorded = Command::new("perf")
            .args(["record", "-q", "-F", "199", "-o"])
            .arg(folder.path().join("perf.data"))
            .args(perf)
            .arg(folder.path().join("names"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(recorded.expect("perf is there").success());
        Self(folder)
    }

    fn data(&self) -> PathBuf {
        self.0.path().join("perf.data")
    }

    /// What perf itself says of it.
    fn script(&self, args: &[&str]) -> String {
        let output = Command::new("perf")
            .args(["script", "-i"])
            .arg(self.data())
            .args(args)
            .stderr(Stdio::null())
            .output();
        let output = output.expect("perf is there");
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// What `sexton profile` says, which must end well.
fn profile(verb: &str, file: &Path, args: &[&str]) -> (String, String) {
    let output = Command::new(sexton::binary().expect("it was asked for"))
        .args(["profile", verb])
        .args(args)
        .arg(file)
        .output()
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    (stdout, stderr)
}

/// Samples of each thread's name, as `profile top --threads` counts them.
fn threads(file: &Path, args: &[&str]) -> BTreeMap<String, u64> {
    let args = [&["--threads", "--json", "-n", "100000"], args].concat();
    let top: serde_json::Value =
        serde_json::from_str(&profile("top", file, &args).0).expect("JSON");
    let mut by_name = BTreeMap::new();
    for thread in top["threads"].as_array().expect("a list") {
        let name = thread["comm"].as_str().expect("a name").to_owned();
        *by_name.entry(name).or_default() += thread["samples"].as_u64().expect("a number");
    }
    by_name
}

/// The same, as perf says it.
fn threads_of_perf(recorded: &Recorded) -> BTreeMap<String, u64> {
    let mut by_name = BTreeMap::new();
    for line in recorded.script(&["-F", "comm", "-G"]).lines() {
        let name = line.trim();
        if !name.is_empty() {
            *by_name.entry(name.to_owned()).or_default() += 1;
        }
    }
    by_name
}

#[test]
#[ignore = "needs root and perf: run cargo xtask test kernel"]
fn threads_whose_names_hold_digits_keep_their_samples() {
    let recorded = Recorded::new(&["-g", "-e", "cpu-clock"]);
    let expected = threads_of_perf(&recorded);
    for name in NAMES {
        assert!(expected[name] > 10, "{expected:?}");
    }
    let text = recorded.0.path().join("script.txt");
    fs::write(&text, recorded.script(&[])).expect("a file");
    let without_times = recorded.0.path().join("untimed.txt");
    let fields = recorded.script(&["-F", "comm,tid,event,ip,sym,dso"]);
    fs::write(&without_times, fields).expect("a file");
    // Lines that are no samples and no frames are no damage.
    let talkative = recorded.0.path().join("talkative.txt");
    let options = ["--show-mmap-events", "--show-task-events", "-F", "+srcline"];
    fs::write(&talkative, recorded.script(&options)).expect("a file");
    for file in [recorded.data(), text, without_times, talkative] {
        assert_eq!(threads(&file, &[]), expected, "{}", file.display());
    }
}

#[test]
#[ignore = "needs root and perf: run cargo xtask test kernel"]
fn each_event_of_a_group_has_its_samples() {
    let recorded = Recorded::new(&["-a", "-e", "{cpu-clock,page-faults}:S"]);
    let script = recorded.script(&["-F", "event,period", "-G"]);
    for event in ["cpu-clock", "page-faults"] {
        let of_event = script.lines().filter(|line| line.contains(event));
        let periods: Vec<u64> = of_event
            .filter_map(|line| line.split_whitespace().next()?.parse().ok())
            .collect();
        let args = ["--json", "--idle", "--event", event];
        let top: serde_json::Value =
            serde_json::from_str(&profile("top", &recorded.data(), &args).0).expect("JSON");
        // On a quiet node few samples of the group saw a page fault.
        assert!(periods.len() > 1, "{event}: {periods:?}");
        assert_eq!(
            top["samples"].as_u64(),
            Some(periods.len() as u64),
            "{event}"
        );
        assert_eq!(
            top["weight"].as_u64(),
            Some(periods.iter().sum()),
            "{event}"
        );
    }
}

#[test]
#[ignore = "needs root and perf: run cargo xtask test kernel"]
fn the_first_event_of_the_list_is_shown_and_that_is_said() {
    let recorded = Recorded::new(&["-g", "-e", "cpu-clock,page-faults"]);
    let events = recorded.script(&["-F", "event", "-G"]);
    let n_of = |event: &str| events.lines().filter(|l| l.contains(event)).count() as u64;
    let first = events.lines().find(|line| !line.trim().is_empty());
    assert!(first.expect("samples").contains("page-faults"));
    let (top, said) = profile("top", &recorded.data(), &["--json"]);
    let top: serde_json::Value = serde_json::from_str(&top).expect("JSON");
    assert_eq!(top["event"], "cpu-clock");
    assert_eq!(top["samples"].as_u64(), Some(n_of("cpu-clock")));
    assert!(
        said.contains("showing cpu-clock") && said.contains("page-faults"),
        "{said}"
    );
    let heat = |args: &[&str]| {
        let args = [&["--format", "json"], args].concat();
        let (map, said) = profile("heatmap", &recorded.data(), &args);
        let map: serde_json::Value = serde_json::from_str(&map).expect("JSON");
        let columns = map["maps"][0]["values"]
            .as_array()
            .expect("columns")
            .clone();
        let cells = columns
            .iter()
            .flat_map(|column| column.as_array().expect("cells"));
        (
            cells.map(|cell| cell.as_u64().unwrap_or(0)).sum::<u64>(),
            said,
        )
    };
    let (n_first, said) = heat(&[]);
    assert_eq!(n_first, n_of("cpu-clock"));
    assert!(said.contains("showing cpu-clock"), "{said}");
    let n_all = n_of("cpu-clock") + n_of("page-faults");
    assert_eq!(heat(&["--event", "all"]).0, n_all);
}

#[test]
#[ignore = "needs root and perf: run cargo xtask test kernel"]
fn the_folder_of_perfs_threads_is_one_recording() {
    let recorded = Recorded::new(&["-g", "-e", "cpu-clock", "--threads"]);
    assert!(
        recorded.data().join("data.0").exists(),
        "perf wrote no folder"
    );
    let expected = threads_of_perf(&recorded);
    assert_eq!(threads(&recorded.data(), &[]), expected);
    let (times, _) = profile("export", &recorded.data(), &["--format", "folded"]);
    assert!(times.contains("inner"), "{times}");
}

/// The innermost frames of the program and how often, as perf unwinds them.
fn program_stacks(script: &str) -> BTreeMap<String, u64> {
    let mut stacks = BTreeMap::new();
    for sample in script.split("\n\n") {
        let frames = sample.lines().filter(|line| line.contains("/names)"));
        let frames = frames.filter_map(|line| line.split_whitespace().nth(1));
        let mut frames: Vec<&str> = frames.filter(|name| *name != "[unknown]").collect();
        frames.reverse();
        if !frames.is_empty() {
            *stacks.entry(frames.join(";")).or_default() += 1;
        }
    }
    stacks
}

#[test]
#[ignore = "needs root and perf: run cargo xtask test kernel"]
fn copied_stacks_are_unwound_as_perf_unwinds_them() {
    let recorded = Recorded::new(&["--call-graph", "dwarf,8192", "-e", "cpu-clock:u"]);
    let expected = program_stacks(&recorded.script(&["-F", "ip,sym,dso"]));
    assert!(expected["work;outer;middle;inner"] > 50, "{expected:?}");
    let args = ["--format", "folded", "--weight", "samples"];
    let (folded, said) = profile("export", &recorded.data(), &args);
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    let known = ["work", "outer", "middle", "inner", "main", "time@plt"];
    for line in folded.lines() {
        let (stack, n) = line.rsplit_once(' ').expect("a count");
        let frames = stack.split(';').skip(1);
        let frames: Vec<&str> = frames.filter(|name| known.contains(name)).collect();
        if !frames.is_empty() {
            *ours.entry(frames.join(";")).or_default() += n.parse::<u64>().expect("a number");
        }
    }
    for (stack, n) in &expected {
        let our = ours.get(stack).copied().unwrap_or(0);
        assert_eq!(our, *n, "{stack}: {ours:?} {expected:?} {said}");
    }
}

#[test]
#[ignore = "needs root, perf and go: run cargo xtask test kernel"]
fn the_first_core_is_in_pprof_as_go_reads_it() {
    require(Need::Program("go"));
    let recorded = Recorded::new(&["-g", "--sample-cpu", "-e", "cpu-clock"]);
    let file = recorded.0.path().join("p.pb.gz");
    let path = file.display().to_string();
    profile(
        "export",
        &recorded.data(),
        &["--format", "pprof", "-o", &path],
    );
    let output = Command::new("go")
        .args(["tool", "pprof", "-raw", &path])
        .output();
    let output = output.expect("go is there");
    let raw = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let cores = recorded.script(&["-F", "cpu", "-G"]);
    let n_first = cores.lines().filter(|line| line.contains("[000]")).count();
    let found = raw.matches("core:[0 id]").count() + raw.matches("core:[0]").count();
    assert!(
        n_first > 0 && found == n_first,
        "{found} of {n_first}: {raw}"
    );
}

#[test]
#[ignore = "needs root and perf: run cargo xtask test kernel"]
fn what_the_kernel_dropped_is_said_once_and_ends_with_3() {
    require(Need::Root);
    require(Need::Program("perf"));
    require(Need::Sexton);
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("lost.data");
    // A ring of one page is too small for every call of the kernel.
    let made = Command::new("perf")
        .args([
            "record",
            "-q",
            "-m",
            "1",
            "-g",
            "-e",
            "raw_syscalls:sys_enter",
            "-o",
        ])
        .arg(&data)
        .args(["--", "find", "/usr/share", "-type", "f"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(made.expect("perf is there").success());
    let stats = Command::new("perf")
        .args(["report", "--stats", "-i"])
        .arg(&data)
        .output()
        .expect("perf is there");
    // Once as records, in percent, and once as how many samples.
    let stats = String::from_utf8_lossy(&stats.stdout).into_owned();
    let lines = stats.lines().filter(|line| line.contains("LOST_SAMPLES"));
    let counts = lines.filter(|line| !line.contains('%'));
    let expected: u64 = counts
        .filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok())
        .sum();
    assert!(expected > 0, "nothing was dropped: {stats}");
    let output = Command::new(sexton::binary().expect("it was asked for"))
        .args(["profile", "top"])
        .arg(&data)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains(&format!("dropped {expected} records")),
        "{said}"
    );
}
