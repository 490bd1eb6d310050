//! The walk keeps its place when what it stands on goes away.

use std::collections::{HashMap, HashSet};
use std::thread;
use std::time::{Duration, Instant};

use sexton_bpf::prog::memcg::{Options, Walk};
use sexton_kernel_tests::nursery::{Nursery, Pin};
use sexton_kernel_tests::require::{Need, require};

const LEAKER: &str = env!("CARGO_BIN_EXE_leaker");

fn load() -> Walk {
    Walk::load(Options {
        pages_per_list: Some(8),
        n_nodes: 1,
        deadline: Duration::from_secs(20),
    })
    .expect("it loads")
}

/// Names of the memory cgroups that there are now.
fn names(walk: &mut Walk) -> HashSet<Vec<u8>> {
    let mut names = HashSet::new();
    let walked = walk.walk(|batch| names.extend(batch.rows.iter().map(|row| row.name().to_vec())));
    walked.expect("it ends");
    names
}

/// Waits until these are gone; says whether they went.
fn wait_until_gone(walk: &mut Walk, gone: &[Vec<u8>]) -> bool {
    let deadline = Instant::now() + Duration::from_secs(5);
    while Instant::now() < deadline {
        let there = names(walk);
        if !gone.iter().any(|name| there.contains(name)) {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

/// `early-17` and the one after it.
fn this_and_next(name: &[u8]) -> Option<[Vec<u8>; 2]> {
    let number: u32 = std::str::from_utf8(name)
        .ok()?
        .strip_prefix("early-")?
        .parse()
        .ok()?;
    Some([name.to_vec(), format!("early-{}", number + 1).into_bytes()])
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn a_vanished_place_is_found_again() {
    require(Need::Root);
    require(Need::Bpf);
    let nursery = Nursery::new("place").expect("a cgroup of our own");
    // The leaker ends, and with it what its own memory pins; the files stay.
    drop(
        nursery
            .leak(LEAKER, "early", 1201, Pin::Tmpfs)
            .expect("made"),
    );
    for i in 0..97 {
        nursery.keep(format!("live-{i}")).expect("made");
    }
    let mut other = load();
    let mut live: HashMap<Vec<u8>, u32> = HashMap::new();
    let mut vanished = false;
    let tally = load().walk(|batch| {
        for row in batch
            .rows
            .iter()
            .filter(|row| row.name().starts_with(b"live-"))
        {
            *live.entry(row.name().to_vec()).or_default() += 1;
        }
        // The walk goes on from the last row, or from the one after it. Either may be
        // held by something else than its file; then the next batch is tried.
        let place = batch.rows.last().and_then(|row| this_and_next(row.name()));
        if let (false, Some(place)) = (vanished, place) {
            nursery.delete_files();
            vanished = wait_until_gone(&mut other, &place);
        }
    });
    let tally = tally.expect("it ends");
    assert!(vanished, "nothing was released under the walk");
    assert!(tally.lost_place >= 1, "{tally:?}");
    assert_eq!(live.len(), 97, "none of the live ones is missed");
    assert!(live.values().all(|n| *n == 1), "none is seen twice");
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn one_run_is_short_however_many_there_are() {
    require(Need::Root);
    require(Need::Bpf);
    let nursery = Nursery::new("short").expect("a cgroup of our own");
    let _leak = nursery
        .leak(LEAKER, "z", 3001, Pin::SharedLog)
        .expect("made");
    let mut longest = 0;
    let tally = load()
        .walk(|batch| longest = longest.max(batch.rows.len()))
        .expect("it ends");
    assert!(tally.visited >= 3001);
    assert!(longest <= 256, "{longest} in one run");
    assert!(tally.runs >= 3001 / 256, "{} runs", tally.runs);
}
