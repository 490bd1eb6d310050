//! The store on a disk that is full.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sexton_kernel_tests::require::{Need, require};
use sexton_model::fact::sexton::SEXTON_POLL_NS;
use sexton_model::gap::Why;
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record};
use sexton_model::subject::Subject;
use sexton_model::timeline::Timeline as _;
use sexton_store::{Bundle, BundleWriter, Limits, Node, StoreError};

/// A filesystem of two megabytes.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("sexton-{name}-{}", std::process::id()));
        fs::create_dir(&dir).expect("a folder to mount on");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2M", "tmpfs"])
            .arg(&dir)
            .status();
        assert!(mount.expect("mount is there").success());
        Self(dir)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
        let _ = fs::remove_dir(&self.0);
    }
}

fn writer(dir: &Path) -> BundleWriter {
    // The bound is far beyond the disk, so that the disk is what is met.
    let limits = Limits {
        max_bytes: 64 << 20,
        max_age: Duration::from_secs(1 << 40),
        segment_bytes: Limits::MIN_SEGMENT_BYTES,
        segment_age: Duration::from_secs(1 << 40),
    };
    let node = Node {
        name: "node".into(),
        kernel: "6".into(),
        boot_id: "0f".into(),
    };
    BundleWriter::create(dir, limits, node, Moment::from_ns(0)).expect("a bundle")
}

fn records(first: u64, n: u64) -> Vec<Record> {
    let record = |i: u64| Record {
        at: Moment::from_ns(i),
        sensor: "test".into(),
        subject: Subject::node(),
        body: Body::Sample {
            fact: &SEXTON_POLL_NS,
            value: (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12) as f64 / 7.0,
        },
    };
    (first..first + n).map(record).collect()
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn a_full_disk_costs_the_oldest_segments() {
    require(Need::Root);
    let disk = SmallDisk::new("full");
    let dir = disk.0.join("bundle");
    let mut writer = writer(&dir);
    let mut next = 1;
    for _ in 0..997 {
        writer.append(&records(next, 499)).expect("kept");
        next += 499;
        let kept = writer.sync(Moment::from_ns(next)).expect("kept");
        assert_eq!(kept.records, next - 1);
    }
    let bundle = Bundle::open(&dir).expect("a bundle");
    let dropped = bundle.dropped().expect("two megabytes do not hold it all");
    let first = dropped.before.as_ns();
    let all = bundle.load(None, None);
    assert!(all.of(&SEXTON_POLL_NS).eq(&records(first, next - first)));
    let full = |text: &str| text.starts_with("the disk is full: records from ");
    let n_gaps = all.gaps().filter(|(_, _, gap)| full(&gap.text)).count();
    assert!(
        n_gaps > 3,
        "{n_gaps} gaps for {} segments",
        dropped.segments
    );
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn with_nothing_left_to_drop_it_says_so_and_goes_on_later() {
    require(Need::Root);
    let disk = SmallDisk::new("stuffed");
    let dir = disk.0.join("bundle");
    let mut writer = writer(&dir);
    writer.append(&records(1, 100)).expect("kept");
    writer.sync(Moment::from_ns(100)).expect("kept");
    let other = disk.0.join("other");
    fs::write(&other, vec![1; 4 << 20]).expect_err("the disk is smaller");
    let error = writer.append(&records(101, 20_000)).expect_err("full");
    assert!(matches!(error, StoreError::NoRoom { .. }), "{error}");
    assert!(error.to_string().contains("the disk is full"), "{error}");
    let there = Bundle::open(&dir).expect("a bundle").load(None, None);
    let n_there = there.of(&SEXTON_POLL_NS).count() as u64;
    assert!(n_there >= 100, "what was acknowledged is readable");
    assert!(there.of(&SEXTON_POLL_NS).eq(&records(1, n_there)));

    fs::remove_file(&other).expect("removed");
    let kept = writer.sync(Moment::from_ns(30_000)).expect("room again");
    writer.append(&records(30_001, 10)).expect("kept");
    writer.finish(Moment::from_ns(30_020)).expect("kept");
    let all = Bundle::open(&dir).expect("a bundle").load(None, None);
    let expected = [records(1, kept.records), records(30_001, 10)].concat();
    assert!(all.of(&SEXTON_POLL_NS).eq(&expected));
    let (_, _, gap) = all.gaps().next().expect("the loss is marked");
    assert_eq!(gap.why, Why::Lost(20_100 - kept.records));
}
