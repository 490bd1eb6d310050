//! Processes that are gone before `/proc` can be asked have names in their stacks, as perf has
//! them.

use std::time::Duration;

use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::storm::{Kind, Storm};
use sexton_kernel_tests::watching::Watching;
use sexton_kernel_tests::without_bpf;
use sexton_model::stack::{CodeKind, StackBatch};

const HZ: u32 = 397;
const STORM_MS: u32 = 3000;

/// Samples of a storm's children in their program: those whose innermost frame has the name of a
/// function, those in the function that children work in, and the files of the others.
#[derive(Debug, Default)]
struct Seen {
    n: usize,
    n_named: usize,
    n_at_work: usize,
    unnamed: Vec<String>,
}

impl Seen {
    fn of(batches: &[StackBatch], storm: u32, work: &str) -> Self {
        let mut seen = Self::default();
        for batch in batches {
            let tables = &batch.tables;
            let children = batch
                .samples
                .iter()
                .filter(|sample| sample.pid != storm && tables.name(sample.comm) == "storm");
            for sample in children {
                let frames = tables.frames_of(sample.stack);
                let user: Vec<_> = frames
                    .filter_map(|frame| tables.frame(frame))
                    .filter(|frame| frame.kind == CodeKind::User)
                    .collect();
                let Some(inner) = user.first() else {
                    continue;
                };
                seen.n += 1;
                match inner.symbol {
                    Some(_) => seen.n_named += 1,
                    None => {
                        let file = inner.module.map(|module| tables.name(module));
                        seen.unnamed.push(file.unwrap_or("none").to_owned());
                    }
                }
                let mut names = user.iter().filter_map(|frame| frame.symbol);
                seen.n_at_work += usize::from(names.any(|name| tables.name(name) == work));
            }
        }
        seen
    }
}

fn watch(kind: Kind) -> Seen {
    // To execute a program takes most of a millisecond before it can work.
    let (name, work, work_us) = match kind {
        Kind::Fork => ("fork", "in_child", 200),
        Kind::Exec => ("exec", "in_program", 1000),
    };
    let storm = Storm::build(name);
    let mut watching = Watching::stacks_at(HZ);
    // The names of the kernel, and of what runs already.
    for _ in 0..3 {
        watching.poll_for(Duration::from_millis(1));
    }
    let mut child = storm.start(kind, STORM_MS, work_us);
    while child.try_wait().expect("our own child").is_none() {
        watching.poll_for(Duration::from_millis(1));
    }
    watching.poll_for(Duration::from_millis(1));
    let pid = child.id();
    let said = child.wait_with_output().expect("it has ended");
    let n: u32 = String::from_utf8_lossy(&said.stdout)
        .trim()
        .parse()
        .expect("how many there were");
    assert!(n > 100, "only {n} processes: no storm");
    Seen::of(watching.stacks(), pid, work)
}

#[track_caller]
fn check(seen: &Seen) {
    assert!(seen.n >= 50, "{seen:?}");
    assert!(seen.n_named * 100 >= seen.n * 90, "{seen:?}");
    assert!(seen.n_at_work * 100 >= seen.n * 35, "{seen:?}");
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn forked_processes_have_names() {
    require(Need::Root);
    require(Need::Bpf);
    require(Need::Program("cc"));
    check(&watch(Kind::Fork));
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn programs_that_live_for_less_than_a_millisecond_have_names() {
    require(Need::Root);
    require(Need::Bpf);
    require(Need::Program("cc"));
    check(&watch(Kind::Exec));
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn both_have_names_by_perf_events() {
    require(Need::Root);
    require(Need::Program("cc"));
    check(&without_bpf::run(|| watch(Kind::Fork)));
    check(&without_bpf::run(|| watch(Kind::Exec)));
}
