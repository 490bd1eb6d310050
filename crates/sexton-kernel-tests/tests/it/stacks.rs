//! Programs that spend their time in known functions, on a known core, at known moments.

use std::ffi::OsStr;
use std::fs;
use std::thread;
use std::time::Duration;

use sexton_bpf::prog::stacks::{Options, Watch};
use sexton_kernel_tests::hog::Hog;
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::spinner::{Busy, Spinner, Spinning, start_on};
use sexton_kernel_tests::watching::Watching;
use sexton_model::fact::stack as fact;
use sexton_model::stack::{CoreState, StackBatch, StackSample, StackTables};
use sexton_sensors::stacks::DEFAULT_RATE_HZ;

const CORE_HOG: &str = env!("CARGO_BIN_EXE_core_hog");

/// The core that is busy.
const CORE: u32 = 1;
/// Some seconds are thousands of samples, and a debug build keeps up.
const FAST_HZ: u32 = 397;

fn needs() {
    require(Need::Root);
    require(Need::Bpf);
    require(Need::Program("cc"));
}

/// The samples of one process, each with the functions of its stack, innermost first.
fn of_process(batches: &[StackBatch], pid: u32) -> Vec<(StackSample, Vec<String>)> {
    let all = batches
        .iter()
        .flat_map(|batch| batch.samples.iter().map(|sample| (sample, &batch.tables)));
    all.filter(|(sample, _)| sample.pid == pid)
        .map(|(sample, tables)| (*sample, functions(sample, tables)))
        .collect()
}

fn functions(sample: &StackSample, tables: &StackTables) -> Vec<String> {
    let frames = tables.frames_of(sample.stack);
    let frames = frames.filter_map(|frame| tables.frame(frame));
    frames
        .map(|frame| frame.symbol.or(frame.module))
        .map(|name| name.map_or(String::new(), |name| tables.name(name).to_owned()))
        .collect()
}

/// The part of these samples whose stack has the function in it.
fn share(samples: &[(StackSample, Vec<String>)], function: &str) -> f64 {
    let with = samples
        .iter()
        .filter(|(_, stack)| stack.iter().any(|name| name == function));
    with.count() as f64 / samples.len() as f64
}

/// A sensor that has read the kernel's names and those of what runs already, which takes
/// long in a debug build.
fn ready(hz: u32) -> Watching {
    let mut watching = Watching::stacks_at(hz);
    for _ in 0..3 {
        watching.poll_for(Duration::from_millis(250));
    }
    watching
}

/// Watches a program until it ends; returns the samples of its work, of which there are as
/// many as it had processor time for.
fn watch(
    watching: &mut Watching,
    mut spinning: Spinning,
    hz: u32,
) -> (Busy, Vec<(StackSample, Vec<String>)>) {
    let pid = spinning.pid();
    while !spinning.is_over() {
        watching.poll_for(Duration::from_millis(250));
    }
    watching.poll_for(Duration::from_millis(250));
    let busy = spinning.join();
    let mut samples = of_process(watching.stacks(), pid);
    // Its own beginning and end are not its work.
    samples.retain(|(sample, _)| (busy.from_ns..=busy.to_ns).contains(&sample.at.as_ns()));
    let expected = busy.used_ns as f64 / 1e9 * f64::from(hz);
    let off = (samples.len() as f64 - expected).abs();
    assert!(
        off < expected * 0.1 + 5.0,
        "{} samples, {expected} expected",
        samples.len()
    );
    (busy, samples)
}

#[test]
#[ignore = "needs bpf: run cargo xtask test kernel"]
fn every_core_is_sampled_here() {
    require(Need::Bpf);
    // The clock of a core that sleeps may stand still.
    let _hogs = [0, 1].map(|core| Hog::on(core, std::hint::spin_loop));
    let mut watching = Watching::open("stacks");
    watching.poll_for(Duration::from_secs(2));
    assert!(watching.gaps().is_empty(), "{:?}", watching.gaps());
    let samples = watching.stacks().iter().flat_map(|batch| &batch.samples);
    for core in 0..2 {
        let n = samples.clone().filter(|sample| sample.cpu == core).count();
        assert!(
            (100..=250).contains(&n),
            "{n} samples of core {core} in 2 s"
        );
    }
    assert!(!watching.of(&fact::STACK_SAMPLES).is_empty());
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn known_shares_come_back_on_their_core_in_their_seconds() {
    needs();
    let spinner = Spinner::build("shares");
    let mut watching = ready(FAST_HZ);
    let spinning = spinner.start(CORE, &["shares", "6000"]);
    let (busy, samples) = watch(&mut watching, spinning, FAST_HZ);
    for (function, expected) in [("alpha", 0.61), ("beta", 0.29), ("gamma_", 0.10)] {
        let found = share(&samples, function);
        assert!((found - expected).abs() < 0.03, "{function}: {found}");
    }
    let in_user = samples
        .iter()
        .filter(|(sample, _)| sample.state == CoreState::User);
    let (mut n_burn, mut n_whole) = (0, 0);
    for (sample, stack) in in_user {
        assert_eq!(sample.cpu, CORE);
        if stack[0] == "burn" {
            n_burn += 1;
            n_whole += usize::from(stack.get(2).is_some_and(|caller| caller == "main"));
        }
    }
    // A function that has just begun has no frame of its own yet: its caller is left out.
    assert!(n_whole * 100 >= n_burn * 98, "{n_whole} of {n_burn}");
    let times = || samples.iter().map(|(sample, _)| sample.at.as_ns());
    let covered = times().max().expect("some") - times().min().expect("some");
    let ratio = covered as f64 / (busy.to_ns - busy.from_ns) as f64;
    assert!(ratio > 0.95, "{ratio} of its time is there");
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn a_short_burst_is_there_and_nowhere_else() {
    needs();
    let spinner = Spinner::build("burst");
    let mut watching = ready(DEFAULT_RATE_HZ);
    let spinning = spinner.start(CORE, &["burst", "1500", "300"]);
    let pid = spinning.pid();
    let (busy, _) = watch(&mut watching, spinning, DEFAULT_RATE_HZ);
    let all = of_process(watching.stacks(), pid);
    let work = all
        .iter()
        .filter(|(_, stack)| stack.iter().any(|name| name == "alpha"));
    assert!(work.clone().count() > 0, "not one of {} samples", all.len());
    for (sample, _) in work {
        assert!((busy.from_ns..=busy.to_ns).contains(&sample.at.as_ns()));
        assert_eq!(sample.cpu, CORE);
    }
}

/// Nanoseconds that a core was idle, as the kernel counts them.
fn idle_ns(core: u32) -> f64 {
    let stat = fs::read_to_string("/proc/stat").expect("it is there");
    let prefix = format!("cpu{core} ");
    let line = stat.lines().find_map(|line| line.strip_prefix(&prefix));
    let fields = line.expect("the core is online").split_whitespace();
    let ticks: Vec<f64> = fields
        .map(|field| field.parse().expect("a number"))
        .collect();
    (ticks[3] + ticks[4]) * 1e7
}

#[test]
#[ignore = "needs bpf: run cargo xtask test kernel"]
fn idle_is_what_the_kernel_counts_as_idle() {
    require(Need::Bpf);
    let mut watching = Watching::stacks_at(FAST_HZ);
    let before = idle_ns(CORE);
    watching.poll_for(Duration::from_secs(4));
    let idle_ns = idle_ns(CORE) - before;
    let samples = watching.stacks().iter().flat_map(|batch| &batch.samples);
    let idle = samples
        .clone()
        .filter(|sample| sample.cpu == CORE && sample.state == CoreState::Idle);
    let n_all = samples.clone().filter(|sample| sample.cpu == CORE).count();
    // A core that sleeps need not be sampled, so what is told is how busy it was.
    let expected = 1.0 - idle_ns / 4e9;
    let n_busy = n_all - idle.clone().count();
    let found = n_busy as f64 / (f64::from(FAST_HZ) * 4.0);
    assert!(
        (found - expected).abs() < 0.1,
        "busy {found}, the kernel: {expected}"
    );
    for sample in idle {
        assert_eq!((sample.pid, sample.tid), (0, 0));
    }
}

#[test]
#[ignore = "needs bpf: run cargo xtask test kernel"]
fn what_finds_no_room_is_counted() {
    require(Need::Bpf);
    let options = Options {
        n_cores: 2,
        hz: 999,
        room: Duration::ZERO,
    };
    let mut watch = Watch::load(options).expect("loaded");
    for core in 0..2 {
        watch.sample_core(core).expect("an online core");
    }
    thread::sleep(Duration::from_secs(4));
    for core in 0..2 {
        watch.forget_core(core);
    }
    let mut n_drained = 0;
    let malformed = watch.drain(usize::MAX, |_| n_drained += 1);
    let tally = watch.tally();
    assert_eq!(malformed, 0);
    assert!(tally.n_lost > 0, "the ring held all {}", tally.n_taken);
    assert_eq!(n_drained + tally.n_lost, tally.n_taken);
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn programs_in_a_mount_namespace_and_deleted_ones_have_names() {
    needs();
    let spinner = Spinner::build("hidden");
    let mut watching = ready(DEFAULT_RATE_HZ);
    // A filesystem that only this process sees.
    let script = r#"mount -t tmpfs none "$1" && cp "$0" "$1/boxed" && exec "$1/boxed" shares 700"#;
    let (path, top) = (spinner.path(), spinner.folder().join("top"));
    fs::create_dir(&top).expect("a folder");
    let parts = ["unshare", "--mount", "sh", "-c", script].map(OsStr::new);
    let command: Vec<&OsStr> = parts
        .into_iter()
        .chain([path.as_os_str(), top.as_os_str()])
        .collect();
    let boxed = start_on(CORE, &command);
    let (_, boxed) = watch(&mut watching, boxed, DEFAULT_RATE_HZ);
    assert!(!top.join("boxed").exists(), "the name space is not its own");
    let deleted = spinner.start(CORE, &["shares", "700"]);
    thread::sleep(Duration::from_millis(300));
    fs::remove_file(spinner.path()).expect("it goes while it runs");
    let (_, deleted) = watch(&mut watching, deleted, DEFAULT_RATE_HZ);
    for (what, samples) in [("in a mount namespace", boxed), ("deleted", deleted)] {
        let named = share(&samples, "main");
        assert!(named > 0.9, "{what}: {named} of {} samples", samples.len());
    }
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn code_that_a_program_made_has_the_name_it_gave() {
    needs();
    let spinner = Spinner::build("made");
    let mut watching = ready(DEFAULT_RATE_HZ);
    let spinning = spinner.start(CORE, &["made", "2000"]);
    let (_, samples) = watch(&mut watching, spinning, DEFAULT_RATE_HZ);
    let named = share(&samples, "made_by_spinner");
    assert!(named > 0.8, "{named} of {} samples", samples.len());
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn who_holds_a_core_in_the_kernel_is_told() {
    needs();
    let mut watching = ready(DEFAULT_RATE_HZ);
    let hog = start_on(CORE, &[CORE_HOG, "hold", "9000"].map(OsStr::new));
    let pid = hog.pid().to_string();
    watching.poll_for(Duration::from_secs(11));
    let told = watching.events(&fact::PROCESS_ON_CORE);
    let on_core = told.iter().find(|event| *event.subject.name == *pid);
    let on_core = on_core.unwrap_or_else(|| panic!("not among {told:?}")).says;
    assert_eq!(on_core.comm.as_deref(), Some("core_hog"));
    assert_eq!(on_core.cpu, Some(1));
    assert!(on_core.kernel_ratio >= Some(0.1), "{on_core:?}");
    assert!(on_core.hot_share > Some(0.5), "{on_core:?}");
    let stack = on_core.hot_stack.join(";");
    assert!(stack.contains("ksys_read;vfs_read;"), "{stack}");
}
