//! Whole verdicts as the binary prints them, kept as they were looked at: text, JSON and HTML
//! of recordings that between them show every state and every section of a verdict.
//!
//! All three are kept whole: the longest is 24 kB, JSON is a contract in which a digest would
//! miss a field that is gone, and nothing in them changes from run to run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::timeline::Timeline;
use sexton_store::{Bundle, BundleWriter, Limits, Node};
use sexton_testkit::{TempTree, check_snapshot};

use crate::command::{SEXTON, stderr, stdout};

/// Recordings of nodes, each with what it is here for.
const FIXTURES: [&str; 14] = [
    // A kernel of each age, a reader that costs a core, a core lost to a leak, two causes.
    "5.10-debian12/lab-other-reader-v1",
    "5.10-debian12/lab-plain-unit-v1",
    "5.10-debian12/lab-two-leakers-v1",
    // Findings that were considered and not linked.
    "6.1-debian12/lab-founding-inner-v1",
    // Runtimes: containerd under a unit, pods.
    "6.1-debian12/lab-containerd-loop-v2",
    "6.12-debian12/lab-kube-shape-v2",
    // The incident that sexton was made for, and much that was not assessed.
    "6.18-debian12/churn-shell-loop",
    "6.18-debian12/founding-inner-loop",
    "6.18-debian12/founding-outer-loop",
    // Symptoms without a cause.
    "6.18-debian12/reset-line",
    "6.18-debian12/saturated-core",
    // Healthy nodes: with rules that were not assessed, and without.
    "6.18-debian12/burst-drains",
    "7.2-debian12/lab-healthy-live-v2",
    // The longest chain.
    "synthetic/5.4-numa-walk",
];

/// What all of them must show between them.
const STATES: [&str; 4] = ["blind", "cause-found", "healthy", "symptoms-only"];
const SECTIONS: [&str; 7] = [
    "explanations",
    "findings",
    "forecast",
    "gaps",
    "links",
    "not_judged",
    "separations",
];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A verdict in one format, and the exit code.
fn diagnose(folder: &Path, bundle: &str, format: &str) -> (String, Option<i32>) {
    let output = Command::new(SEXTON)
        .args(["diagnose", "--full", "--from", bundle, "--format", format])
        .current_dir(folder)
        .output()
        .expect("the binary runs");
    assert_eq!(stderr(&output), "", "{bundle}");
    (stdout(&output), output.status.code())
}

/// Compares a verdict in all formats with what was kept, and returns its JSON.
fn check_verdict(folder: &Path, bundle: &str, name: &str) -> Value {
    let name = name.replace('/', "-");
    let formats = [("text", "txt"), ("json", "json"), ("html", "html")];
    let verdicts = formats.map(|(format, ending)| {
        let (verdict, code) = diagnose(folder, bundle, format);
        check_snapshot!(format!("golden/{name}.{ending}"), verdict);
        (verdict, code)
    });
    let [(_, text_code), (json, json_code), (_, html_code)] = verdicts;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let state = json["verdict"]["state"].as_str().expect("a state");
    let expected = match state {
        "healthy" => 0,
        "blind" => 3,
        _ => 1,
    };
    for code in [text_code, json_code, html_code] {
        assert_eq!(code, Some(expected), "{name} is {state}");
    }
    json
}

/// The first of the fixtures again, as one sees it who may read nothing: a gap of each sensor
/// stands where its records were.
pub fn write_blind(to: &Path) {
    write_seen(to, FIXTURES[0], &[]);
}

/// A node that leaks, as one sees it who is not root: by what every user may read.
pub fn write_without_root(to: &Path) {
    const OPEN: [&str; 5] = ["clock", "cores", "host", "pressure", "units"];
    write_seen(to, FIXTURES[1], &OPEN);
}

/// A fixture again, seen by these sensors alone.
fn write_seen(to: &Path, fixture: &str, open: &[&str]) {
    let fixture = root().join("fixtures").join(fixture);
    let whole = Bundle::open(&fixture).expect("a bundle").load_to_judge();
    let span = whole.span().expect("records");
    let sensors: BTreeSet<String> = whole.iter().map(|one| one.sensor.to_string()).collect();
    let is_open = |sensor: &str| open.contains(&sensor);
    let seen = whole.iter().filter(|one| is_open(&one.sensor)).cloned();
    let denied = sensors.iter().filter(|name| !is_open(name));
    let records: Vec<Record> = denied
        .map(|name| denied_by(name, *span.start()))
        .chain(seen)
        .collect();
    let node = Node {
        name: "node".into(),
        kernel: "5.10.0".into(),
        boot_id: "00000000-0000-0000-0000-000000000003".into(),
    };
    let limits = Limits::ring(64 << 20, Duration::from_secs(100 * 366 * 86_400));
    let mut writer = BundleWriter::create(to, limits, node, *span.start()).expect("a bundle");
    writer.append(&records).expect("room");
    writer.finish(*span.end()).expect("sealed");
}

fn denied_by(sensor: &str, at: Moment) -> Record {
    let gap = Gap {
        sensor: sensor.to_owned().into(),
        why: Why::Denied,
        text: format!("sensor {sensor} cannot be opened"),
        remedy: Some("run as root".to_owned()),
    };
    Record {
        at,
        sensor: sensor.to_owned().into(),
        subject: Subject::new(SubjectKind::Sensor, sensor),
        body: Body::Gap(Box::new(gap)),
    }
}

#[test]
fn verdicts_are_as_they_were_looked_at() {
    let made = TempTree::new();
    write_blind(&made.path().join("blind.bundle"));
    let mut verdicts = vec![check_verdict(made.path(), "blind.bundle", "blind")];
    for name in FIXTURES {
        let bundle = format!("fixtures/{name}");
        verdicts.push(check_verdict(&root(), &bundle, name));
    }
    for state in STATES {
        let is_there = verdicts.iter().any(|one| one["verdict"]["state"] == state);
        assert!(is_there, "no verdict is {state}");
    }
    for section in SECTIONS {
        let entries = |one: &Value| one[section].as_array().map_or(0, Vec::len);
        let is_there = verdicts.iter().any(|one| entries(one) > 0);
        assert!(is_there, "no verdict has {section}");
    }
}
