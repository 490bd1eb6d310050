//! The invented story of a kernel that cannot be recorded here is a bundle too, written by the
//! store itself, so that it is judged like any capture. `story.toml` is its source; with
//! `UPDATE_SNAPSHOTS` set the bundle is written anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sexton_model::moment::Moment;
use sexton_model::record::Record;
use sexton_model::timeline::Timeline;
use sexton_store::{Bundle, BundleWriter, Limits, Node};
use sexton_testkit::{TempTree, story};

const KERNEL: &str = "5.4.286";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/synthetic/5.4-numa-walk")
}

fn told() -> Vec<Record> {
    let text = fs::read_to_string(folder().join("story.toml")).expect("a story");
    let mut records: Vec<Record> = story::read(&text).iter().cloned().collect();
    records.sort_by_key(|record| record.at);
    records
}

/// Writes it as a recorder would have.
fn write(to: &Path) {
    let records = told();
    let (first, last) = (records[0].at, records[records.len() - 1].at);
    let node = Node {
        name: "synthetic".into(),
        kernel: KERNEL.into(),
        boot_id: "00000000-0000-0000-0000-000000000054".into(),
    };
    let limits = Limits::ring(64 << 20, Duration::from_secs(100 * 366 * 86_400));
    let mut writer = BundleWriter::create(to, limits, node, first).expect("a bundle");
    writer.append(&records).expect("room");
    writer.finish(Moment::max(last, first)).expect("sealed");
}

#[test]
fn the_bundle_says_what_the_story_says() {
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        let made = TempTree::new();
        let bundle = made.path().join("bundle");
        write(&bundle);
        fs::remove_dir_all(folder().join("records")).ok();
        fs::create_dir_all(folder().join("records")).expect("a folder");
        fs::copy(bundle.join("bundle.json"), folder().join("bundle.json")).expect("copied");
        for entry in fs::read_dir(bundle.join("records"))
            .expect("a folder")
            .flatten()
        {
            fs::copy(
                entry.path(),
                folder().join("records").join(entry.file_name()),
            )
            .expect("copied");
        }
    }
    let bundle = Bundle::open(&folder()).expect("a bundle");
    assert_eq!(bundle.node().kernel, KERNEL);
    assert_eq!(bundle.node().name, "synthetic");
    let records = bundle.load(None, None);
    assert_eq!(records.gaps().count(), 0, "it is whole");
    let shown = |records: Vec<&Record>| {
        let mut shown: Vec<String> = records.iter().map(|one| format!("{one:?}")).collect();
        shown.sort();
        shown
    };
    let told = told();
    assert!(shown(records.iter().collect()) == shown(told.iter().collect()));
}
