//! A task that is kept off its core for a known time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sexton_kernel_tests::cores::{Hog, Pinned};
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::watching::Watching;
use sexton_model::fact::runq::{self as fact, CoreWait};
use sexton_model::record::Event;

const CORE_HOG: &str = env!("CARGO_BIN_EXE_core_hog");

/// The core that is held, and the one that watches.
const HELD: u32 = 1;
const WATCHING: u32 = 0;

const HOLD: Duration = Duration::from_millis(727);

#[test]
#[ignore = "needs bpf: run cargo xtask test kernel"]
fn waits_for_a_core_are_seen_here() {
    require(Need::Bpf);
    let mut watching = Watching::open("runq");
    watching.poll_for(Duration::from_millis(600));
    assert!(watching.gaps().is_empty(), "{:?}", watching.gaps());
    assert!(!watching.of(&fact::RUNQ_DELAY_P99_NS).is_empty());
    assert!(!watching.of(&fact::RUNQ_WAITING_TASKS).is_empty());
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn who_waits_and_who_runs_meanwhile_are_named() {
    require(Need::Root);
    require(Need::Bpf);
    let _pinned = Pinned::to(WATCHING).expect("two cores");
    let mut watching = Watching::open("runq");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let victim = thread::Builder::new().name("victim".into());
        let nap = || {
            let _pinned = Pinned::to(HELD).expect("two cores");
            while !done.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(2));
            }
        };
        victim.spawn_scoped(scope, nap).expect("a thread");
        thread::sleep(Duration::from_millis(100));
        let hog = Hog::start(CORE_HOG, HELD, HOLD).expect("started");
        watching.poll_for(Duration::from_secs(2));
        done.store(true, Ordering::Relaxed);
        hog.join().expect("it held the core");
    });

    let waiting = of_victim(watching.events(&fact::RUNQ_WAITING));
    assert!(!waiting.is_empty(), "it was not seen while it waited");
    check_parties(&waiting);
    let waited = of_victim(watching.events(&fact::RUNQ_WAIT));
    check_parties(&waited);
    let lengths = waited.iter().map(|wait| wait.says.waited_ns as f64);
    let longest = lengths.fold(0.0, f64::max);
    let ratio = longest / HOLD.as_nanos() as f64;
    assert!((0.8..1.2).contains(&ratio), "{waited:?}");
    let max = watching.of(&fact::RUNQ_DELAY_MAX_NS);
    assert!(max.iter().any(|record| record.value() >= Some(longest)));
}

fn check_parties(waits: &[Event<'_, CoreWait>]) {
    for wait in waits {
        assert_eq!(&*wait.subject.name, "1");
        assert_eq!(wait.says.holder_comm.as_deref(), Some("core_hog"));
    }
}

fn of_victim(mut waits: Vec<Event<'_, CoreWait>>) -> Vec<Event<'_, CoreWait>> {
    waits.retain(|wait| wait.says.comm.as_deref() == Some("victim"));
    waits
}
