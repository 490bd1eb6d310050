//! What threads wait for and who wakes them, of programs that wait for known times.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;
use sexton_bpf::stats::Counting;
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton::binary;
use sexton_kernel_tests::watching::Watching;
use sexton_model::stack::CoreState;
use sexton_sensors::stacks::Settings;

/// `feeder` naps 40 ms and feeds `reader`, 25 times; then the second part: so many threads that
/// sleep 10 ms again and again.
const SOURCE: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
static int ends[2];
static int until_ms;
static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
__attribute__((noinline)) void nap(long us) { usleep(us); asm volatile(""); }
__attribute__((noinline)) void take_one(void) { char c; if (read(ends[0], &c, 1) != 1) abort(); asm volatile(""); }
__attribute__((noinline)) void wait_for_feeder(void) { take_one(); asm volatile(""); }
__attribute__((noinline)) void sleep_between(void) { nap(40000); asm volatile(""); }
static void *reader(void *unused) {
    prctl(PR_SET_NAME, "reader");
    for (int i = 0; i < 25; i++) wait_for_feeder();
    return unused;
}
static void *feeder(void *unused) {
    prctl(PR_SET_NAME, "feeder");
    for (int i = 0; i < 25; i++) { sleep_between(); if (write(ends[1], "x", 1) != 1) abort(); }
    return unused;
}
static void *sleeper(void *unused) {
    long end = now_ms() + until_ms;
    prctl(PR_SET_NAME, "sleeper");
    while (now_ms() < end) nap(10000);
    return unused;
}
int main(int n_args, char **args) {
    pthread_t threads[200];
    int n = n_args > 2 ? atoi(args[2]) : 0;
    if (n > 0) {
        until_ms = atoi(args[1]);
        for (int i = 0; i < n; i++) pthread_create(&threads[i], 0, sleeper, 0);
        for (int i = 0; i < n; i++) pthread_join(threads[i], 0);
        return 0;
    }
    long end = now_ms() + 200;
    while (now_ms() < end) ;
    if (pipe(ends)) abort();
    pthread_create(&threads[0], 0, reader, 0);
    pthread_create(&threads[1], 0, feeder, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
}
"#;

/// The built program, in a folder that goes with it.
fn build() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("waits.c"), SOURCE).expect("its source");
    let built = Command::new("cc")
        .args([
            "-O1",
            "-fno-omit-frame-pointer",
            "-fno-optimize-sibling-calls",
        ])
        .args(["-pthread", "-o", "waits", "waits.c"])
        .current_dir(folder.path())
        .status();
    assert!(built.expect("cc is there").success(), "it does not build");
    folder
}

fn needs() {
    require(Need::Root);
    require(Need::Bpf);
    require(Need::Program("cc"));
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// What `sexton profile` answers about a bundle, which must end well.
fn profile(verb: &str, bundle: &Path, args: &[&str]) -> Output {
    let output = Command::new(binary().expect("it is built"))
        .args(["profile", verb])
        .arg(bundle)
        .args(args)
        .output()
        .expect("it is there");
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", said(&output));
    output
}

/// The seconds of the row of this name.
fn seconds(rows: &Value, key: &str, name: &str, weight: &str) -> f64 {
    let all = rows.as_array().into_iter().flatten();
    let ns = all
        .filter(|row| row[key] == name)
        .filter_map(|row| row[weight].as_f64());
    ns.sum::<f64>() / 1e9
}

/// What ran is what is shown if nothing else is asked for, and all that a heat map counts.
fn check_usual(bundle: &Path) {
    let usual = profile("top", bundle, &["--json"]);
    let text = said(&usual);
    assert!(text.contains("others: off-cpu"), "{text}");
    let usual: Value = serde_json::from_slice(&usual.stdout).expect("JSON");
    assert_eq!(usual["event"], "cpu-clock");
    let map = profile("heatmap", bundle, &["--format", "json"]);
    let map: Value = serde_json::from_slice(&map.stdout).expect("JSON");
    let columns = map["maps"][0]["values"].as_array().expect("columns");
    let cells = columns.iter().filter_map(Value::as_array).flatten();
    let n: u64 = cells.filter_map(Value::as_u64).sum();
    assert_eq!(Some(n), usual["samples"].as_u64(), "{map}");
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn a_wait_has_its_time_its_place_and_who_ended_it() {
    needs();
    require(Need::Sexton);
    let folder = build();
    let bundle = folder.path().join("bundle");
    let recorded = Command::new(binary().expect("it is built"))
        .args(["profile", "record", "--off-cpu", "-o"])
        .arg(&bundle)
        .arg("--")
        .arg(folder.path().join("waits"))
        .output()
        .expect("it is there");
    assert_eq!(recorded.status.code(), Some(0), "{}", said(&recorded));
    let top = profile(
        "top",
        &bundle,
        &["--event", "off-cpu", "--json", "-n", "500"],
    );
    let top: Value = serde_json::from_slice(&top.stdout).expect("JSON");
    assert_eq!(top["unit"], "nanoseconds");
    for function in ["wait_for_feeder", "sleep_between"] {
        let found = seconds(&top["functions"], "function", function, "total_weight");
        assert!(
            (0.95..1.4).contains(&found),
            "{function}: {found} s in {top}"
        );
    }
    for (waker, least) in [("feeder", 0.95), ("a timer", 0.95)] {
        let found = seconds(&top["woken_by"], "name", waker, "weight");
        assert!(found >= least, "{waker}: {found} s in {top}");
    }
    let folded = profile(
        "export",
        &bundle,
        &["--event", "off-cpu", "--format", "folded"],
    );
    let folded = said(&folded);
    let is_whole = |line: &&str| {
        let mut rest = *line;
        [
            "reader;",
            "wait_for_feeder;",
            "pipe_read",
            "woken by feeder ",
        ]
        .iter()
        .all(|part| match rest.split_once(part) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    };
    assert!(folded.lines().any(|line| is_whole(&line)), "{folded}");
    check_usual(&bundle);
}

/// Switches in a second, and what 10,000 of them cost in percent of a core.
fn cost(counting: &Counting, watching: &mut Watching) -> (f64, f64) {
    let before = counting.costs("offcpu_");
    let began = Instant::now();
    watching.poll_for(Duration::from_secs(1));
    let elapsed = began.elapsed();
    let (mut cost, mut n_switches) = (Duration::ZERO, 0);
    for (name, after) in counting.costs("offcpu_") {
        let before = before.get(&name).copied().unwrap_or_default();
        cost += after.time - before.time;
        if name.starts_with("offcpu_sched_sw") {
            n_switches = after.n_runs - before.n_runs;
        }
    }
    let n = n_switches as f64;
    (n / elapsed.as_secs_f64(), cost.as_secs_f64() / n * 1e6)
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn ten_thousand_switches_a_second_cost_two_percent_and_no_time_is_left_out() {
    needs();
    const N: u64 = 120;
    let folder = build();
    let mut watching = Watching::stacks_as(Settings {
        off_cpu: Some(Duration::from_millis(1)),
        ..Settings::default()
    });
    // The names of the kernel are read.
    watching.poll_for(Duration::from_millis(1));
    let counting = Counting::start().expect("it counts");
    let mut child = Command::new(folder.path().join("waits"))
        .args(["3000", &N.to_string()])
        .spawn()
        .expect("it starts");
    let pid = child.id();
    // Others may have the machine for a moment; the best of three seconds is what it costs.
    let seconds: Vec<(f64, f64)> = (0..3).map(|_| cost(&counting, &mut watching)).collect();
    assert!(child.wait().expect("our own child").success());
    watching.poll_for(Duration::from_millis(1));
    println!("switches/s, and percent of a core for 10,000: {seconds:.2?}");
    let most = seconds.iter().map(|(n, _)| *n).fold(0.0, f64::max);
    let least = seconds
        .iter()
        .map(|(_, percent)| *percent)
        .fold(f64::MAX, f64::min);
    assert!(most > 10_000.0, "{most} switches a second are too few");
    assert!(least < 2.0, "{least} %");
    let (mut n, mut waited) = (0_u64, Duration::ZERO);
    for batch in watching.stacks() {
        let samples = batch.samples.iter();
        for sample in samples.filter(|s| s.pid == pid && s.state == CoreState::Waiting) {
            let name = batch.tables.name(sample.comm);
            if name == "sleeper" {
                n += 1;
                waited += Duration::from_nanos(sample.weight);
            }
        }
    }
    let expected = 3.0 * N as f64;
    let share = waited.as_secs_f64() / expected;
    println!(
        "{n} samples for {:.0} s of {expected} s",
        waited.as_secs_f64()
    );
    assert!(
        (0.85..1.1).contains(&share),
        "{share} of the waits are there"
    );
    assert!(n < 12_000, "{n} samples are not bounded");
}
