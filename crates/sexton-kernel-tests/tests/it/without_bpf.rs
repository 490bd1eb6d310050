//! What is seen where the kernel refuses BPF: stacks by perf events, births of cgroups by
//! tracepoints through perf, parents of dying cgroups by the owners of pages, exits by taskstats,
//! network polling by `/proc` of its threads.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use sexton_bpf::LoadError;
use sexton_bpf::prog::memcg::{Options, Walk};
use sexton_host::{Host, page_batches};
use sexton_kernel_tests::cores::{Hog, Pinned};
use sexton_kernel_tests::network::Network;
use sexton_kernel_tests::nursery::{Nursery, Pin};
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton;
use sexton_kernel_tests::spinner::{Spinner, start_on};
use sexton_kernel_tests::watching::Watching;
use sexton_kernel_tests::without_bpf;
use sexton_model::census::{Hierarchy, Method};
use sexton_model::fact::sexton::SEXTON_STEP_DOWN;
use sexton_model::fact::{EventFact, cgroup, exit, napi, stack};
use sexton_model::payload::Payload;
use sexton_model::record::Body;
use sexton_model::stack::CoreState;
use sexton_sensors::memcg::{CensusOptions, census};
use sexton_sensors::stacks::DEFAULT_RATE_HZ;

const LEAKER: &str = env!("CARGO_BIN_EXE_leaker");
const ENDER: &str = env!("CARGO_BIN_EXE_ender");
const CORE_HOG: &str = env!("CARGO_BIN_EXE_core_hog");

/// The core that is busy.
const CORE: u32 = 1;

/// What was said of a step down, which must be said once, with its reason.
fn stepped_down(watching: &Watching, how: &str) {
    let steps: Vec<String> = watching
        .events(&SEXTON_STEP_DOWN)
        .into_iter()
        .map(|event| format!("{} by {}", event.says.what, event.says.by))
        .collect();
    assert_eq!(steps, [how]);
    let reasons = watching.gaps().into_iter().filter(|record| {
        matches!(&record.body, Body::Gap(gap) if gap.text.starts_with("loading a BPF program was refused"))
    });
    assert_eq!(reasons.count(), 1, "{:?}", watching.gaps());
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn the_kernel_really_refuses() {
    require(Need::Root);
    let options = Options {
        pages_per_list: None,
        n_nodes: 1,
        deadline: Duration::from_secs(1),
    };
    let error = without_bpf::run(|| Walk::load(options).err());
    assert!(matches!(error, Some(LoadError::Denied(_))), "{error:?}");
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn known_shares_come_back_by_perf_events() {
    require(Need::Root);
    require(Need::Program("cc"));
    let spinner = Spinner::build("by-perf");
    let (pid, busy, watching) = without_bpf::run(|| {
        let mut watching = Watching::open("stacks");
        keep_up(&mut watching);
        let mut spinning = spinner.start(CORE, &["shares", "6000"]);
        let pid = spinning.pid();
        while !spinning.is_over() {
            watching.poll_for(Duration::from_millis(250));
        }
        watching.poll_for(Duration::from_millis(250));
        (pid, spinning.join(), Said::of(&watching))
    });
    let work: Vec<_> = watching
        .samples
        .iter()
        .filter(|sample| sample.pid == pid)
        .filter(|sample| (busy.from_ns..=busy.to_ns).contains(&sample.at_ns))
        .collect();
    let expected = busy.used_ns as f64 / 1e9 * f64::from(DEFAULT_RATE_HZ);
    let off = (work.len() as f64 - expected).abs();
    assert!(off < expected * 0.1 + 5.0, "{} of {expected}", work.len());
    for (function, expected) in [("alpha", 0.61), ("beta", 0.29), ("gamma_", 0.10)] {
        let with = work
            .iter()
            .filter(|sample| sample.stack.iter().any(|name| name == function));
        let found = with.count() as f64 / work.len() as f64;
        assert!((found - expected).abs() < 0.06, "{function}: {found}");
    }
    for sample in &work {
        assert_eq!((sample.cpu, &*sample.comm), (CORE, "spinner"));
        assert!(sample.cgroup.is_some() && !sample.is_idle);
    }
}

/// Polls until that takes no longer than it should: to read the names of the kernel and of what
/// runs already takes long in a debug build.
fn keep_up(watching: &mut Watching) {
    let until = Instant::now() + Duration::from_secs(60);
    let mut n_quick = 0;
    while n_quick < 3 && Instant::now() < until {
        let began = Instant::now();
        watching.poll_for(Duration::from_millis(1));
        let was_quick = began.elapsed() < Duration::from_millis(350);
        n_quick = if was_quick { n_quick + 1 } else { 0 };
    }
}

/// What a sensor of stacks said, to be taken out of its thread.
struct Said {
    samples: Vec<Sampled>,
}

struct Sampled {
    pid: u32,
    cpu: u32,
    at_ns: u64,
    is_idle: bool,
    comm: String,
    cgroup: Option<String>,
    stack: Vec<String>,
}

impl Said {
    fn of(watching: &Watching) -> Self {
        stepped_down(watching, "stacks by perf events");
        let mut samples = Vec::new();
        for batch in watching.stacks() {
            let tables = &batch.tables;
            samples.extend(batch.samples.iter().map(|sample| {
                let frames = tables.frames_of(sample.stack);
                let frames = frames.filter_map(|frame| tables.frame(frame));
                let names = frames.filter_map(|frame| frame.symbol.or(frame.module));
                Sampled {
                    pid: sample.pid,
                    cpu: sample.cpu,
                    at_ns: sample.at.as_ns(),
                    is_idle: sample.state == CoreState::Idle,
                    comm: tables.name(sample.comm).to_owned(),
                    cgroup: sample.cgroup.map(|name| tables.name(name).to_owned()),
                    stack: names.map(|name| tables.name(name).to_owned()).collect(),
                }
            }));
        }
        Self { samples }
    }
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn who_holds_a_core_in_the_kernel_is_told_by_perf_events() {
    require(Need::Root);
    without_bpf::run(|| {
        let mut watching = Watching::open("stacks");
        watching.poll_for(Duration::from_millis(500));
        let hog = start_on(CORE, &[CORE_HOG, "hold", "9000"].map(OsStr::new));
        let pid = hog.pid().to_string();
        watching.poll_for(Duration::from_secs(11));
        let told = watching.events(&stack::PROCESS_ON_CORE);
        let on_core = told.iter().find(|event| *event.subject.name == *pid);
        let on_core = on_core.unwrap_or_else(|| panic!("not among {told:?}")).says;
        assert_eq!(on_core.comm.as_deref(), Some("core_hog"));
        assert_eq!(on_core.cpu, Some(1));
        assert!(on_core.kernel_ratio >= Some(0.1), "{on_core:?}");
        let stack = on_core.hot_stack.join(";");
        assert!(stack.contains("ksys_read;vfs_read;"), "{stack}");
    });
}

/// What was said of a fact of cgroups in the nursery, whose path is the subject.
fn below<'w, T: Payload>(
    watching: &'w Watching,
    nursery: &Nursery,
    fact: &'static EventFact<T>,
) -> Vec<&'w T> {
    let prefix = format!("{}/z-", nursery.path);
    let events = watching.events(fact).into_iter();
    events
        .filter(|event| event.subject.name.starts_with(&prefix))
        .map(|event| event.says)
        .collect()
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn births_removals_and_releases_come_through_perf() {
    require(Need::Root);
    let nursery = Nursery::new("perf").expect("a cgroup of our own");
    without_bpf::run(|| {
        let mut watching = Watching::open("cgroups");
        let leak = nursery.leak(LEAKER, "z", 211, Pin::Tmpfs).expect("made");
        let pid = leak.pid();
        // It is gone before anyone looks: what it was, only records tell.
        drop(leak);
        watching.poll_for(Duration::from_millis(300));
        stepped_down(&watching, "births of cgroups by tracepoints through perf");
        let born = below(&watching, &nursery, &cgroup::CGROUP_BORN);
        assert_eq!(born.len(), 211);
        let own = std::process::id();
        for born in born {
            assert_eq!(born.creator_comm.as_deref(), Some("leaker"));
            assert_eq!(born.creator_pid, Some(pid));
            let is_above = born.creator_ancestry.iter().any(|task| task.pid == own);
            assert!(is_above, "{born:?} without {own}");
        }
        let removed = below(&watching, &nursery, &cgroup::CGROUP_REMOVED);
        assert_eq!(removed.len(), 211);
        assert!(removed.iter().all(|one| one.lived_ns.is_some()));
        assert!(below(&watching, &nursery, &cgroup::CGROUP_RELEASED).is_empty());
        let undrained = page_batches::drain(Duration::from_secs(5));
        assert!(undrained.is_empty(), "{undrained:?}");
        nursery.delete_files();
        watching.poll_for(Duration::from_secs(3));
        let released = below(&watching, &nursery, &cgroup::CGROUP_RELEASED);
        assert_eq!(released.len(), 211);
    });
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn owners_of_pages_name_the_parent_of_dying_cgroups() {
    require(Need::Root);
    let nursery = Nursery::new("owners").expect("a cgroup of our own");
    let _leak = nursery.leak(LEAKER, "z", 97, Pin::OwnFile).expect("made");
    // A page that waits on a CPU is on no list yet.
    let undrained = page_batches::drain(Duration::from_secs(5));
    assert!(undrained.is_empty(), "{undrained:?}");
    let options = CensusOptions {
        all_pages: true,
        owners: true,
    };
    let host = Host::live().expect("a mount table");
    let census = without_bpf::run(|| census(&host, options).expect("it counts"));
    let expected = match census.hierarchy {
        Hierarchy::V1 => Method::PageOwnership,
        Hierarchy::V2 => Method::CgroupStat,
    };
    assert_eq!(census.method, expected, "{:?}", census.gaps);
    assert!(!census.sampled);
    let pattern = format!("{}/<gone>", nursery.path);
    let mut origins = census.origins.iter();
    let origin = origins.find(|origin| origin.pattern == pattern.as_bytes());
    let origin = origin.unwrap_or_else(|| panic!("no {pattern} in {:#?}", census.origins));
    let pages = origin.pages.expect("seen");
    // Some may be on their way from one list to another, or reclaimed.
    assert!((97 * 3 / 4..97 * 4).contains(&pages.file), "{pages:?}");
    match census.hierarchy {
        // Others may have left pages on this machine as well.
        Hierarchy::V1 => assert!((1..=97).contains(&origin.dying), "{origin:?}"),
        Hierarchy::V2 => assert_eq!(origin.dying, 97),
    }
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn exits_come_by_taskstats() {
    require(Need::Root);
    let nursery = Nursery::new("exits").expect("a cgroup of our own");
    let home = nursery.keep("ends").expect("made");
    without_bpf::run(|| {
        let mut watching = Watching::open("exits");
        let ends: Vec<(u32, &str)> = ["41", "kill", "43"]
            .into_iter()
            .map(|how| {
                let mut child = Command::new(ENDER)
                    .arg(&home)
                    .arg(how)
                    .spawn()
                    .expect("started");
                child.wait().expect("it ends");
                (child.id(), how)
            })
            .collect();
        watching.poll_for(Duration::from_millis(300));
        stepped_down(&watching, "exits of processes by taskstats");
        let failed = watching.events(&exit::PROCESS_FAILED);
        for (pid, how) in ends {
            let of: Vec<_> = failed
                .iter()
                .filter(|event| event.says.tgid == Some(pid))
                .collect();
            let [one] = of[..] else {
                panic!("one of {pid}, not {of:?}")
            };
            let one = one.says;
            assert_eq!(one.comm.as_deref(), Some("ender"));
            let (code, signal) = match how {
                "kill" => (None, Some(9)),
                code => (code.parse().ok(), None),
            };
            assert_eq!((one.exit_code, one.signal), (code, signal));
            // It moved itself there before it ended.
            let path = format!("{}/ends", nursery.path);
            assert_eq!(one.cgroup, Some(path));
            assert!(one.lifetime_ns < Some(60_000_000_000), "{one:?}");
        }
    });
}

/// The poller is a thread of the network stack; a hog of higher priority holds its core.
#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn a_starved_poller_and_who_starves_it_are_named() {
    const HOLD: Duration = Duration::from_millis(853);
    require(Need::Root);
    let _pinned = Pinned::to(0).expect("two cores");
    let network = Network::new("by-proc", CORE).expect("a network of our own");
    without_bpf::run(|| {
        let mut watching = Watching::open("napi");
        let sends = network.send(CORE_HOG, 0, Duration::from_secs(60));
        let _sender = sends.expect("sends");
        watching.poll_for(Duration::from_millis(600));
        let mut hog = Hog::start(CORE_HOG, CORE, HOLD).expect("started");
        watching.poll_until(|| hog.is_over());
        hog.join().expect("it held the core");
        stepped_down(
            &watching,
            "waits of network polling by /proc of the threads that poll",
        );
        let of_poller = |fact: &'static EventFact<napi::NapiDelay>| {
            let mut delays = watching.events(fact);
            let is_poller = |what: &str| what.starts_with("napi/far-");
            delays.retain(|delay| delay.says.what.as_deref().is_some_and(is_poller));
            delays
        };
        let starved = of_poller(&napi::NAPI_STARVED);
        let [starved] = &starved[..] else {
            panic!("{starved:?}");
        };
        assert_eq!(&*starved.subject.name, "1");
        assert_eq!(starved.says.holder_comm.as_deref(), Some("core_hog"));
        let stack = &starved.says.stack;
        assert!(stack.iter().any(|name| name.contains("_read")), "{stack:?}");
        let served = of_poller(&napi::NAPI_SERVED);
        let [served] = &served[..] else {
            panic!("{served:?}");
        };
        assert_eq!(served.says.holder_comm.as_deref(), Some("core_hog"));
        // It is first seen up to one poll (250 ms) after it began.
        let ratio = served.says.waited_ns.expect("told") as f64 / HOLD.as_nanos() as f64;
        assert!((0.65..1.2).contains(&ratio), "{served:?}");
    });
}

#[test]
#[ignore = "needs root and sexton: run cargo xtask test kernel"]
fn types_from_a_file_do_where_the_kernel_has_none() {
    for need in [Need::Root, Need::Bpf, Need::Sexton] {
        require(need);
    }
    let place = tempfile::tempdir().expect("a folder");
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a name");
    let types = place.path().join(format!("{}.btf", release.trim()));
    fs::copy("/sys/kernel/btf/vmlinux", &types).expect("the kernel describes its types");
    let zombies = |args: &[&OsStr]| {
        let zombies = [OsStr::new("zombies"), OsStr::new("--json")];
        let told = told_without_types(&[&zombies, args].concat());
        told["method"].as_str().expect("a name").to_owned()
    };
    let btf = OsStr::new("--btf");
    assert_ne!(zombies(&[]), "bpf-walk");
    assert_eq!(zombies(&[btf, types.as_os_str()]), "bpf-walk");
    // Of a folder, the one of this kernel is taken.
    assert_eq!(zombies(&[btf, place.path().as_os_str()]), "bpf-walk");
}

#[test]
#[ignore = "needs root and sexton: run cargo xtask test kernel"]
fn an_agent_finds_the_types_of_its_kernel_in_a_folder() {
    for need in [Need::Root, Need::Bpf, Need::Sexton] {
        require(need);
    }
    let place = tempfile::tempdir().expect("a folder");
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a name");
    let types = place.path().join(format!("{}.btf", release.trim()));
    // How stacks were taken, and what the agent said of types when it started.
    let steps_down = |ring: &str| {
        let (ring, config) = (place.path().join(ring), place.path().join("agent.toml"));
        let text = format!(
            "[ring]\npath = {ring:?}\n[listen]\nsocket = \"\"\nhttp = \"\"\n\
             [sensors]\nbtf = {:?}\noff = [\"units\", \"unit_files\", \"containers\", \"klog\"]\n",
            place.path()
        );
        fs::write(&config, text).expect("written");
        let agent = without_types("exec timeout -s TERM 4 \"$0\" agent --config \"$@\"")
            .arg(&config)
            .output()
            .expect("unshare, of util-linux, runs");
        let mut boots = fs::read_dir(ring.join("boots")).expect("it recorded");
        let boot = boots.next().expect("this boot").expect("readable").path();
        let told = Command::new(sexton::binary().expect("required"))
            .args(["diagnose", "--json", "--from"])
            .arg(&boot)
            .output()
            .expect("it runs");
        let told: serde_json::Value = serde_json::from_slice(&told.stdout).expect("JSON");
        let said = String::from_utf8_lossy(&agent.stderr).contains("no types of this kernel");
        let by_perf = told["seen_by"].to_string().contains("perf events");
        (by_perf, said)
    };
    assert_eq!(steps_down("without"), (true, true));
    fs::copy("/sys/kernel/btf/vmlinux", &types).expect("the kernel describes its types");
    assert_eq!(steps_down("with"), (false, false));
}

/// Sexton where the kernel has no type information, as far as that process sees.
fn without_types(script: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("mount -t tmpfs none /sys/kernel/btf && {script}");
    command.args(["--mount", "sh", "-c", &script]);
    command.arg(sexton::binary().expect("required"));
    command
}

fn told_without_types(args: &[&OsStr]) -> serde_json::Value {
    let told = without_types("exec \"$0\" \"$@\"")
        .args(args)
        .output()
        .expect("unshare, of util-linux, runs");
    serde_json::from_slice(&told.stdout).expect("JSON")
}
