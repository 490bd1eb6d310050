//! The bundle of a kernel that sexton was never recorded on is what its importer makes of the
//! files that were captured there.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sexton_model::moment::Moment;
use sexton_model::record::Record;
use sexton_store::{Bundle, BundleWriter, Limits, Node};
use sexton_testkit::TempTree;
use sexton_testkit::captured::{self, Files};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/5.4-vm/kubelet-walk-v1")
}

fn imported() -> Vec<Record> {
    let read = |name: &str| {
        let path = folder().join("captured").join(name);
        fs::read_to_string(path).expect("a captured file")
    };
    captured::records(&Files {
        timings: &read("timings"),
        stacks: &read("stacks"),
        kpagecgroup: &read("kpagecgroup"),
        told: &read("told.toml"),
    })
}

fn sorted<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<String> {
    let mut all: Vec<String> = records.map(|record| format!("{record:?}")).collect();
    all.sort();
    all
}

#[test]
fn the_bundle_is_what_was_captured() {
    let bundle = Bundle::open(&folder()).expect("a bundle").load(None, None);
    let imported = imported();
    assert_eq!(sorted(bundle.iter()), sorted(imported.iter()));
}

#[test]
#[ignore = "writes the fixture: run it when the captured files or the facts changed"]
fn make_the_bundle() {
    let temporary = TempTree::new();
    let made = temporary.path().join("bundle");
    let mut records = imported();
    records.sort_by_key(|record| record.at);
    let ends = records.first().zip(records.last());
    let (first, last) = ends.expect("records");
    let (first, last): (Moment, Moment) = (first.at, last.at);
    let limits = Limits {
        max_bytes: 1 << 30,
        max_age: Duration::from_secs(1 << 30),
        segment_bytes: Limits::MIN_SEGMENT_BYTES,
        segment_age: Duration::from_secs(1 << 30),
    };
    let node = Node {
        name: "node".into(),
        kernel: "5.4.286".into(),
        boot_id: "00000000-0000-0000-0000-000000000001".into(),
    };
    let mut writer = BundleWriter::create(&made, limits, node, first).expect("a bundle");
    writer.append(&records).expect("room for them");
    writer.finish(last).expect("sealed");
    let target = folder();
    fs::copy(made.join("bundle.json"), target.join("bundle.json")).expect("copied");
    let tables = target.join("records");
    fs::remove_dir_all(&tables).ok();
    fs::create_dir(&tables).expect("a folder");
    for table in fs::read_dir(made.join("records"))
        .expect("tables")
        .flatten()
    {
        fs::copy(table.path(), tables.join(table.file_name())).expect("copied");
    }
}
