//! Network polling that is kept off its core for a known time.

use std::fs;
use std::thread;
use std::time::Duration;

use sexton_kernel_tests::cores::{Hog, Pinned};
use sexton_kernel_tests::network::Network;
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::watching::Watching;
use sexton_model::fact::napi::{self as fact, NapiDelay};
use sexton_model::record::{Event, Record};

const CORE_HOG: &str = env!("CARGO_BIN_EXE_core_hog");

/// The core that is held, and the one that watches.
const HELD: u32 = 1;
const WATCHING: u32 = 0;

const HOLD: Duration = Duration::from_millis(727);

#[test]
#[ignore = "needs bpf: run cargo xtask test kernel"]
fn network_polling_is_seen_here() {
    require(Need::Bpf);
    let mut watching = Watching::open("napi");
    watching.poll_for(Duration::from_millis(1300));
    assert!(watching.gaps().is_empty(), "{:?}", watching.gaps());
    assert!(!watching.of(&fact::NAPI_WAIT_NS).is_empty());
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn a_starved_poller_and_who_starves_it_are_named() {
    require(Need::Root);
    require(Need::Bpf);
    let _pinned = Pinned::to(WATCHING).expect("two cores");
    let network = Network::new("napi", HELD).expect("a network of our own");
    let mut watching = Watching::open("napi");
    let _sender = network
        .send(CORE_HOG, WATCHING, Duration::from_secs(60))
        .expect("sends");
    thread::sleep(Duration::from_millis(300));
    let mut hog = Hog::start(CORE_HOG, HELD, HOLD).expect("started");
    watching.poll_until(|| hog.is_over());
    hog.join().expect("it held the core");

    let starved = of_poller(watching.events(&fact::NAPI_STARVED));
    let [starved] = &starved[..] else {
        panic!("{starved:?}");
    };
    assert_eq!(&*starved.subject.name, "1");
    assert_eq!(starved.says.holder_comm.as_deref(), Some("core_hog"));
    // One look at it: it may be anywhere on the way into or out of a read.
    let stack = &starved.says.stack;
    assert!(stack.iter().any(|name| name.contains("_read")), "{stack:?}");

    let served = of_poller(watching.events(&fact::NAPI_SERVED));
    let [served] = &served[..] else {
        panic!("{served:?}");
    };
    let waited = waited_ns(served);
    let ratio = waited / HOLD.as_nanos() as f64;
    assert!((0.8..1.2).contains(&ratio), "{served:?}");
    assert_eq!(served.says.holder_comm.as_deref(), Some("core_hog"));

    let longest = watching.of(&fact::NAPI_THREAD_DELAY_MAX_NS);
    assert!(longest.iter().any(|record| record.value() >= Some(waited)));
    let gaps = watching.of(&fact::NAPI_POLL_GAP_NS);
    let is_ours = |record: &&Record| record.subject.name.starts_with("far/napi-");
    assert!(gaps.into_iter().any(|record| is_ours(&record)));
}

/// Whoever runs last before the poller does is not who kept it waiting.
#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn the_one_that_held_the_core_longest_is_named() {
    require(Need::Root);
    require(Need::Bpf);
    const LONG: Duration = Duration::from_millis(593);
    const SHORT: Duration = Duration::from_millis(97);
    let _pinned = Pinned::to(WATCHING).expect("two cores");
    let network = Network::new("holder", HELD).expect("a network of our own");
    let mut watching = Watching::open("napi");
    let _sender = network
        .send(CORE_HOG, WATCHING, Duration::from_secs(60))
        .expect("sends");
    thread::sleep(Duration::from_millis(300));
    let mut long = Hog::start_at(50, CORE_HOG, HELD, LONG).expect("started");
    let mut short = Hog::start_at(40, CORE_HOG, HELD, SHORT).expect("started");
    let culprit = long.pid();
    watching.poll_until(|| long.is_over() && short.is_over());
    long.join().expect("it held the core");
    short.join().expect("it held the core");

    let served = of_poller(watching.events(&fact::NAPI_SERVED));
    let [served] = &served[..] else {
        panic!("{served:?}");
    };
    assert_eq!(served.says.holder_pid, Some(culprit), "{served:?}");
    let held = served.says.holder_ns.unwrap_or(0);
    let ratio = held as f64 / LONG.as_nanos() as f64;
    assert!((0.8..1.2).contains(&ratio), "{served:?}");
}

/// Polling without a thread of its own. A flood has the core's ksoftirqd woken, which is an
/// ordinary task and waits for the hog. Since Linux 6.6 interrupts serve the network meanwhile:
/// no polling waits, however long the thread does.
#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn a_ksoftirqd_that_waits_while_interrupts_poll_starves_nothing() {
    require(Need::Root);
    require(Need::Bpf);
    let _pinned = Pinned::to(WATCHING).expect("two cores");
    let network = Network::steered("softirq", HELD).expect("a network of our own");
    let poller = network.poller().expect("it polls by softirq");
    let mut watching = Watching::open("napi");
    // Whether it is woken while the hog runs or loses its core to it, it waits.
    let _sender = network
        .flood(CORE_HOG, WATCHING, Duration::from_secs(60))
        .expect("sends from the other core");
    thread::sleep(Duration::from_millis(300));
    let (waited, n_polled) = (waited_of(poller), n_received(HELD));
    let mut hog = Hog::start(CORE_HOG, HELD, HOLD).expect("started");
    watching.poll_until(|| hog.is_over());
    let n_polled = n_received(HELD) - n_polled;
    hog.join().expect("it held the core");
    let waited = waited_of(poller) - waited;

    assert!(waited >= HOLD.mul_f64(0.8), "ksoftirqd waited {waited:?}");
    assert!(n_polled >= 10, "interrupts polled {n_polled} times");
    for fact in [&fact::NAPI_STARVED, &fact::NAPI_SERVED] {
        let mut told = watching.events(fact);
        told.retain(|event| &*event.subject.name == "1");
        assert!(told.is_empty(), "{told:?}");
    }
}

/// How long a task has waited for a core in its life.
fn waited_of(pid: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("it lives");
    let waited = text.split(' ').nth(1).expect("three numbers");
    Duration::from_nanos(waited.parse().expect("a number"))
}

/// How often this core has polled since boot.
fn n_received(cpu: u32) -> u64 {
    let text = fs::read_to_string("/proc/softirqs").expect("procfs");
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("NET_RX:"));
    let mut counts = line.expect("counted").split_ascii_whitespace();
    let count = counts.nth(cpu as usize).expect("for each core");
    count.parse().expect("a number")
}

fn waited_ns(delay: &Event<'_, NapiDelay>) -> f64 {
    delay.says.waited_ns.expect("told") as f64
}

fn of_poller(mut delays: Vec<Event<'_, NapiDelay>>) -> Vec<Event<'_, NapiDelay>> {
    delays.retain(|delay| {
        let what = delay.says.what.as_ref();
        what.is_some_and(|what| what.starts_with("napi/far-"))
    });
    delays
}
