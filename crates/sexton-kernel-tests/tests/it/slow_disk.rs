//! A disk that takes seconds for every write holds nobody up, and costs what a kill costs.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use sexton_host::clock;
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton::binary;
use sexton_kernel_tests::slow_disk::SlowDisk;
use sexton_model::fact::sexton::SEXTON_POLL_NS;
use sexton_model::moment::Moment;
use sexton_model::timeline::Timeline as _;
use sexton_store::Bundle;

/// A kilobyte a second: the page that a second of records takes is four seconds' work.
const BYTES_PER_SECOND: u64 = 1024;

/// What a kill may cost.
const LOSS: Duration = Duration::from_secs(5);

/// Where the disk is, and not memory.
const ON_DISK: &str = env!("CARGO_TARGET_TMPDIR");

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn a_disk_can_be_made_slow_here() {
    require(Need::Root);
    let disk = SlowDisk::new(Path::new(ON_DISK)).expect("a folder and a cgroup");
    disk.limit(BYTES_PER_SECOND).expect("a slow disk");
    let mut copy = Command::new("dd");
    copy.args(["if=/dev/zero", "of=page", "bs=4096", "count=2"])
        .args(["conv=fdatasync", "status=none"])
        .current_dir(disk.folder());
    let began = Instant::now();
    let mut copy = disk.start(&copy).expect("dd is there");
    assert!(copy.wait().expect("it ends").success());
    assert!(began.elapsed() > Duration::from_secs(1), "it is not slow");
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn a_slow_disk_holds_nobody_up() {
    require(Need::Root);
    require(Need::Sexton);
    let disk = SlowDisk::new(Path::new(ON_DISK)).expect("a folder and a cgroup");
    let folder = disk.folder().join("bundle");
    let mut record = Command::new(binary().expect("it is built"));
    record.args(["record", "--sensors", "cores,host,runq", "-o"]);
    record.arg(&folder);
    let mut child = disk.start(&record).expect("sexton starts");
    while !folder.join("records/current.wal").exists() {
        assert!(child.try_wait().expect("our child").is_none(), "it ended");
        thread::sleep(Duration::from_millis(20));
    }
    disk.limit(BYTES_PER_SECOND).expect("a slow disk");
    thread::sleep(Duration::from_secs(11));
    let killed = clock::now();
    child.kill().expect("it runs");
    // It ends only when the disk has done what it was at.
    disk.limit(0).expect("as fast as before");
    child.wait().expect("it ends");

    let all = Bundle::open(&folder).expect("a bundle").load(None, None);
    let polls = all
        .of(&SEXTON_POLL_NS)
        .filter(|record| record.sensor == "cores");
    let times: Vec<Moment> = polls.map(|record| record.at).collect();
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        panic!("nothing was kept");
    };
    assert!(
        killed.since(*last) <= LOSS,
        "lost {:?}",
        killed.since(*last)
    );
    // Ten a second. A machine that is busy delays some; a disk that is waited for, most.
    let expected = last.since(*first).as_secs_f64() * 10.0;
    let ratio = times.len() as f64 / expected;
    assert!(ratio > 0.7, "{} polls of {expected:.0}", times.len());
}
