//! A writer is killed at random moments, again and again in one folder. What it had
//! acknowledged is there, in order and once, and every kill is marked by a gap.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use sexton_model::timeline::Timeline as _;
use sexton_store::Bundle;

use crate::stacks::{busy_stacks, plains, read};
use crate::support::*;

const FOLDER: &str = "SEXTON_TEST_FOLDER";
const FIRST: &str = "SEXTON_TEST_FIRST";
const N_KILLS: u64 = 200;
const MAX_BYTES: u64 = 1 << 30;

/// The process that is killed: this test, started by the other one with a folder to
/// write to. By itself it writes a little and ends.
#[test]
fn numbered_writer() {
    let given = std::env::var_os(FOLDER);
    // Made only if it is needed: nobody removes what belongs to a process that is killed.
    let temporary = given.is_none().then(|| tempfile::tempdir().unwrap());
    let dir = match (&given, &temporary) {
        (Some(given), _) => Path::new(given),
        (None, own) => own.as_ref().unwrap().path(),
    };
    let first: u64 = std::env::var(FIRST).map_or(1, |first| first.parse().unwrap());
    let mut writer = create(dir, limits(MAX_BYTES), first * 1000).unwrap();
    let mut out = std::io::stdout();
    let mut next = first;
    while given.is_some() || next < first + 100 {
        let n = 1 + next % 97;
        writer.append(&busy(next, n)).unwrap();
        let (samples, tables) = busy_stacks(next, n);
        writer.append_stacks(&samples, &tables).unwrap();
        next += n;
        let kept = writer.sync(at(next * 1000)).unwrap();
        assert_eq!(kept.records, next - first);
        if given.is_some() {
            // One call, so that a line is never cut.
            out.write_all(format!("ack {next}\n").as_bytes()).unwrap();
        }
    }
}

/// Starts a writer, kills it, and returns one more than the last number acknowledged.
fn write_and_kill(dir: &Path, first: u64, after: Duration) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::numbered_writer", "--nocapture"])
        .env(FOLDER, dir)
        .env(FIRST, first.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let number = |line: String| line.strip_prefix("ack ")?.parse::<u64>().ok();
    let begun = lines.by_ref().find_map(|line| number(line.unwrap()));
    let id = rustix::process::Pid::from_child(&child);
    let killer = std::thread::spawn(move || {
        std::thread::sleep(after);
        rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
    });
    let last = lines.filter_map(|line| number(line.unwrap())).last();
    killer.join().unwrap();
    assert!(!child.wait().unwrap().success());
    last.or(begun).expect("the writer ended by itself")
}

/// The samples of a run are there in order and once, up to the last acknowledged at least.
fn check_stacks(dir: &Path, first: u64, end: u64) {
    let from_ns = busy_stacks(first, 1).0[0].at.as_ns();
    let (there, _) = read(dir, Some((from_ns, u64::MAX)));
    let n_there = there.len() as u64;
    assert!((end - first..end - first + 98).contains(&n_there));
    let (samples, tables) = busy_stacks(first, n_there);
    let mut expected = plains(&samples, &tables);
    expected.sort();
    assert_eq!(there, expected);
}

#[test]
fn nothing_acknowledged_is_lost_to_a_kill() {
    // A kill loses nothing that is in the page cache, so a disk would only be slower.
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    };
    let mut runs: Vec<(u64, u64)> = Vec::new();
    let mut first = 1;
    for kill in 0..N_KILLS {
        let micros = kill.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50;
        let end = write_and_kill(dir.path(), first, Duration::from_micros(micros));
        let bundle = Bundle::open(dir.path()).unwrap();
        let there = bundle.load(Some(at(first * 1000)..=at(u64::MAX)), None);
        let n_there = there.of(POLL).count() as u64;
        assert!(there.of(POLL).eq(&busy(first, n_there)), "kill {kill}");
        // The last batch may be there whole without having been acknowledged.
        assert!(
            (end - first..end - first + 98).contains(&n_there),
            "kill {kill}"
        );
        check_stacks(dir.path(), first, end);
        runs.push((first, n_there));
        first += n_there + 1000;
    }
    let last = create(dir.path(), limits(MAX_BYTES), first * 1000).unwrap();
    last.finish(at(first * 1000)).unwrap();
    let all = Bundle::open(dir.path()).unwrap().load(None, None);
    let expected = runs.iter().flat_map(|(first, n)| busy(*first, *n));
    assert!(
        all.iter()
            .filter(|record| record.fact().is_some())
            .cloned()
            .eq(expected)
    );
    let killed = all
        .gaps()
        .filter(|(_, _, gap)| gap.text.contains("was killed"));
    let starts: Vec<u64> = killed.map(|(when, ..)| when.as_ns() / 1000).collect();
    let ends: Vec<u64> = runs.iter().map(|(first, n)| first + n - 1).collect();
    assert_eq!(starts, ends, "each kill is marked, where it struck");
}
