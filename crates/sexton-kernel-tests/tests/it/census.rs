//! The census counts, names and explains exactly what was made.

use sexton_host::Host;
use sexton_kernel_tests::nursery::{Nursery, Pin};
use sexton_kernel_tests::require::{Need, require};
use sexton_model::census::{Census, FileKind, Method, OriginGroup, PinFile, State};
use sexton_model::fact::memcg as fact;
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_sensors::SENSORS;
use sexton_sensors::memcg::{CensusOptions, census};

const LEAKER: &str = env!("CARGO_BIN_EXE_leaker");

fn nursery(name: &str) -> Nursery {
    require(Need::Root);
    require(Need::Bpf);
    Nursery::new(name).expect("a cgroup of our own")
}

fn take() -> Census {
    let host = Host::live().expect("a mount table");
    let census = census(&host, CensusOptions::default()).expect("a memory controller");
    assert_eq!(census.method, Method::BpfWalk, "{:?}", census.gaps);
    census
}

/// The group of `<nursery>/<name>`, which must be there.
fn origin<'c>(census: &'c Census, nursery: &Nursery, name: &str) -> &'c OriginGroup {
    let pattern = format!("{}/{name}", nursery.path);
    let found = census
        .origins
        .iter()
        .find(|origin| origin.pattern == pattern.as_bytes());
    found.unwrap_or_else(|| panic!("no {pattern} among {:#?}", census.origins))
}

fn files_below<'c>(census: &'c Census, folder: &std::path::Path) -> Vec<&'c PinFile> {
    let folder = format!("{}/", folder.display());
    census
        .files
        .iter()
        .filter(|file| file.path.starts_with(folder.as_bytes()))
        .collect()
}

/// Paths of the dying cgroups below the nursery.
fn dying_paths(census: &Census, nursery: &Nursery) -> Vec<String> {
    let dying = census
        .tree
        .iter()
        .filter(|(_, cgroup)| cgroup.state == State::Dying);
    let paths = dying.map(|(ix, _)| String::from_utf8(census.tree.path(ix)).expect("plain names"));
    let mut paths: Vec<String> = paths
        .filter(|path| path.starts_with(&nursery.path))
        .collect();
    paths.sort();
    paths
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn this_machine_can_make_dying_cgroups() {
    let nursery = nursery("can");
    let before = take().counts.dying.expect("counted");
    let _leak = nursery
        .leak(LEAKER, "z", 2, Pin::OwnFile)
        .expect("two of them");
    assert!(take().counts.dying.expect("counted") >= before + 2);
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn own_files_are_named_one_by_one() {
    let nursery = nursery("own");
    let _leak = nursery.leak(LEAKER, "z", 23, Pin::OwnFile).expect("made");
    let census = take();
    let group = origin(&census, &nursery, "z-<n>");
    assert_eq!((group.dying, group.live), (23, 0));
    assert!(group.pages.expect("seen").file >= 23);
    let files = files_below(&census, &nursery.files);
    assert_eq!(files.len(), 23);
    for i in 0..23 {
        let path = nursery.files.join(format!("z-{i}.data"));
        let file = files
            .iter()
            .find(|file| file.path == path.as_os_str().as_encoded_bytes());
        let file = file.unwrap_or_else(|| panic!("{} is not named", path.display()));
        assert_eq!(
            (file.zombies, file.pages, file.kind),
            (1, 1, FileKind::File)
        );
        assert!(!file.deleted && !file.mapped);
        let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).expect("there"));
        assert_eq!(file.inode, inode);
    }
    let expected: Vec<String> = (0..23).map(|i| format!("{}/z-{i}", nursery.path)).collect();
    let mut expected = expected;
    expected.sort();
    assert_eq!(dying_paths(&census, &nursery), expected);
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn one_shared_log_pins_them_all() {
    let nursery = nursery("log");
    let _leak = nursery
        .leak(LEAKER, "run", 31, Pin::SharedLog)
        .expect("made");
    let census = take();
    assert_eq!(origin(&census, &nursery, "run-<n>").dying, 31);
    let files = files_below(&census, &nursery.files);
    let [log] = files[..] else {
        panic!("one log, not {files:?}")
    };
    assert_eq!((log.zombies, log.pages), (31, 31));
    assert!(log.path.ends_with(b"/run.log"));
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn tmpfs_files_are_told_as_such() {
    let nursery = nursery("tmpfs");
    let _leak = nursery.leak(LEAKER, "z", 19, Pin::Tmpfs).expect("made");
    let census = take();
    let group = origin(&census, &nursery, "z-<n>");
    assert_eq!(group.dying, 19);
    assert_eq!(group.pages.expect("seen").shmem, 19);
    let files = files_below(&census, &nursery.tmpfs);
    assert_eq!(files.len(), 19);
    assert!(
        files
            .iter()
            .all(|file| file.kind == FileKind::Shmem && file.zombies == 1)
    );
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn mapped_files_are_told_as_such() {
    let nursery = nursery("mapped");
    let _leak = nursery.leak(LEAKER, "z", 17, Pin::Mapped).expect("made");
    let census = take();
    assert_eq!(origin(&census, &nursery, "z-<n>").dying, 17);
    let files = files_below(&census, &nursery.files);
    assert_eq!(files.len(), 17);
    assert!(files.iter().all(|file| file.mapped && !file.deleted));
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn deleted_files_keep_their_name() {
    let nursery = nursery("deleted");
    let _leak = nursery.leak(LEAKER, "z", 13, Pin::Deleted).expect("made");
    let census = take();
    assert_eq!(origin(&census, &nursery, "z-<n>").dying, 13);
    let files = files_below(&census, &nursery.files);
    assert_eq!(files.len(), 13);
    assert!(files.iter().all(|file| file.deleted && file.zombies == 1));
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn nested_parents_are_followed() {
    let nursery = nursery("nested");
    let mut leaks = Vec::new();
    for parent in ["a", "a/b", "a/b/c"] {
        let directory = nursery.keep(parent).expect("a parent");
        let inner = Inner::below(&directory, &nursery, &parent.replace('/', "-"));
        leaks.push(inner.leak(7));
    }
    let census = take();
    for parent in ["a", "a/b", "a/b/c"] {
        let name = parent.replace('/', "-");
        assert_eq!(
            origin(&census, &nursery, &format!("{parent}/{name}-<n>")).dying,
            7,
            "below {parent}"
        );
    }
    drop(leaks);
    for parent in ["a/b/c", "a/b", "a"] {
        std::fs::remove_dir(nursery.cgroup.join(parent).join("home")).expect("it is empty");
        std::fs::remove_dir(nursery.cgroup.join(parent)).expect("it is empty");
    }
    let census = take();
    assert_eq!(
        origin(&census, &nursery, "a/b/c").dying,
        1,
        "held by those below it"
    );
    // A home has nothing to hold it; it may still be on its way out.
    let dying = dying_paths(&census, &nursery)
        .into_iter()
        .filter(|path| !path.ends_with("/home"));
    assert_eq!(dying.count(), 3 * 7 + 3, "those and their parents");
}

/// A parent inside a nursery that a leaker can work below.
struct Inner<'n> {
    directory: std::path::PathBuf,
    nursery: &'n Nursery,
    name: String,
}

impl<'n> Inner<'n> {
    fn below(directory: &std::path::Path, nursery: &'n Nursery, name: &str) -> Self {
        std::fs::create_dir(directory.join("home")).expect("a home");
        Self {
            directory: directory.to_owned(),
            nursery,
            name: name.to_owned(),
        }
    }

    fn leak(&self, n: u32) -> sexton_kernel_tests::nursery::Leak {
        let mut leak = self
            .nursery
            .start_in(&self.directory, LEAKER, &self.name, n, Pin::OwnFile)
            .expect("started");
        leak.wait().expect("made");
        leak
    }
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn two_leakers_are_told_apart() {
    let nursery = nursery("two");
    let first = nursery.start(LEAKER, "alpha", 29, Pin::SharedLog);
    let second = nursery.start(LEAKER, "beta", 11, Pin::SharedLog);
    let (mut first, mut second) = (first.expect("started"), second.expect("started"));
    first.wait().expect("made");
    second.wait().expect("made");
    let census = take();
    assert_eq!(origin(&census, &nursery, "alpha-<n>").dying, 29);
    assert_eq!(origin(&census, &nursery, "beta-<n>").dying, 11);
    let zombies: Vec<u64> = files_below(&census, &nursery.files)
        .iter()
        .map(|file| file.zombies)
        .collect();
    assert_eq!(zombies, [29, 11], "most first");
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn a_leak_that_goes_on_is_counted_as_it_grows() {
    let nursery = nursery("running");
    let mut leak = nursery
        .start(LEAKER, "z", 2003, Pin::Tmpfs)
        .expect("started");
    let mut counts = Vec::new();
    while !nursery.tmpfs.join("z-2002.data").exists() && leak.is_running() {
        counts.push(dying_paths(&take(), &nursery).len());
    }
    leak.wait().expect("made");
    counts.push(dying_paths(&take(), &nursery).len());
    assert!(counts.is_sorted(), "{counts:?}");
    assert_eq!(counts.last(), Some(&2003));
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn the_census_agrees_with_the_kernel() {
    let nursery = nursery("agrees");
    let _leak = nursery.leak(LEAKER, "z", 101, Pin::Tmpfs).expect("made");
    let census = take();
    assert_eq!(
        census.counts.total, census.counts.kernel_total,
        "{:?}",
        census.gaps
    );
    assert_eq!(
        census
            .counts
            .live
            .zip(census.counts.dying)
            .map(|(a, b)| a + b),
        census.counts.total
    );
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn ages_are_in_seconds() {
    let nursery = nursery("ages");
    let _leak = nursery.leak(LEAKER, "z", 3, Pin::Tmpfs).expect("made");
    std::thread::sleep(std::time::Duration::from_secs(2));
    let age = origin(&take(), &nursery, "z-<n>")
        .oldest_seconds
        .expect("this kernel keeps it");
    assert!((2..=4).contains(&age), "{age} s");
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn live_empty_directories_are_not_dying() {
    let nursery = nursery("live");
    for i in 0..37 {
        nursery.keep(format!("spare-{i}")).expect("made");
    }
    let census = take();
    let group = origin(&census, &nursery, "spare-<n>");
    assert_eq!((group.live, group.dying), (37, 0));
    assert_eq!(group.leaked, 0, "young directories are not leaked");
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn all_pages_are_looked_at_on_request() {
    let nursery = nursery("pages");
    let _leak = nursery.leak(LEAKER, "z", 2, Pin::SharedLog).expect("made");
    let big = nursery.files.join("big.data");
    let script = format!(
        "mkdir {0}/big && echo 0 > {0}/big/cgroup.procs && head -c 1638400 /dev/zero > {1} && \
         echo 0 > {0}/home/cgroup.procs && rmdir {0}/big",
        nursery.cgroup.display(),
        big.display()
    );
    let status = std::process::Command::new("sh")
        .args(["-c", &script])
        .status()
        .expect("a shell");
    assert!(status.success());
    let host = Host::live().expect("a mount table");
    let seen = |all_pages| {
        let options = CensusOptions {
            all_pages,
            ..CensusOptions::default()
        };
        let census = census(&host, options).expect("a memory controller");
        let files = files_below(&census, &nursery.files);
        let big = files.iter().find(|file| file.path.ends_with(b"/big.data"));
        // A sample may see nothing but the programs that the cgroup was the first to read.
        (big.map_or(0, |file| file.pages), census.sampled)
    };
    let (sample, sampled) = seen(false);
    assert!(sampled && sample < 400, "{sample} pages");
    // The kernel may have taken a page or two meanwhile.
    let (pages, sampled) = seen(true);
    assert!(!sampled && (390..=400).contains(&pages), "{pages} pages");
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn the_sensor_tells_what_the_census_counts() {
    let nursery = nursery("sensor");
    let _leak = nursery.leak(LEAKER, "z", 41, Pin::Tmpfs).expect("made");
    let host = Host::live().expect("a mount table");
    let spec = SENSORS
        .iter()
        .find(|spec| spec.name == "memcg")
        .expect("it is listed");
    let mut sink = Sink::new("memcg", Moment::default());
    (spec.open)(&host).expect("it sees").poll(&host, &mut sink);
    let records = sink.into_records();
    let dying = records
        .iter()
        .find(|record| record.fact() == Some(&fact::MEMCG_DYING));
    let dying = dying
        .and_then(|record| record.value())
        .map(|value| value as u64);
    assert_eq!(dying, take().counts.dying);
    let read = records
        .iter()
        .find(|record| record.fact() == Some(&fact::MEMCG_STAT_READ_NS));
    assert!(
        read.and_then(|record| record.value()) > Some(0.0),
        "what a reader pays is timed"
    );
    assert!(dying >= Some(41));
}
