//! A fact is one definition. Whatever stands in the list of facts is recorded and is on the
//! page, by that alone: the first test knows no fact by name, so that one that is added is tested
//! as soon as it is in the list. `sexton-tui` and `sexton-report` do the same for `watch` and
//! `docs/facts.md`. The other test follows a fact and a sensor that were added to this test build,
//! each by its own file and its line in one list (`added.rs`), to every surface of the binary.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use sexton_model::fact::show::Show;
use sexton_model::fact::{self, Fact};
use sexton_model::moment::Moment;
use sexton_model::payload::{Payload, Value};
use sexton_model::record::{Body, Record};
use sexton_model::subject::Subject;
use sexton_store::{Bundle, BundleWriter, Limits, Node};
use sexton_testkit::{TempTree, arbitrary};

use crate::command::{sexton, stderr};
use crate::serve::Server;
use crate::watch::Watch;

const SECOND: u64 = 1_000_000_000;

fn record(second: u64, body: Body) -> Record {
    Record {
        at: Moment::from_ns(second * SECOND),
        sensor: "test".into(),
        subject: Subject::node(),
        body,
    }
}

/// What the page must show of a fact: the lane, and at least so much there.
type Expected = BTreeMap<&'static str, f64>;

/// Records of a fact, and what the page must show of them.
fn records_of(fact: &'static Fact, expected: &mut Expected) -> Vec<Record> {
    let grows = |value: f64| Body::Sample { fact, value };
    match fact.show {
        Show::Series(series) => {
            expected.insert(series.id, f64::MIN_POSITIVE);
        }
        Show::Growth(lane, _) => *expected.entry(lane.id).or_default() += 1.0,
        Show::Marks(mark) => {
            let is_shown = |payload: &dyn Payload| mark(&Subject::node(), payload);
            let (body, mark) = arbitrary::first_event(fact, is_shown);
            *expected.entry(mark.lane.id).or_default() += 1.0;
            return vec![record(2, body)];
        }
        Show::Core(_) | Show::Not if fact.payload.is_some() => {
            let (body, ()) = arbitrary::first_event(fact, |_| Some(()));
            return vec![record(2, body)];
        }
        Show::Core(_) | Show::Not => {}
    }
    vec![
        record(1, grows(1.0)),
        record(2, grows(3.0)),
        record(3, grows(4.0)),
    ]
}

fn write(to: &Path, records: &[Record]) {
    let now = Moment::from_ns(4 * SECOND);
    let node = Node {
        name: "synthetic".into(),
        kernel: "6.12".into(),
        boot_id: "00000000-0000-0000-0000-000000000612".into(),
    };
    let limits = Limits::ring(64 << 20, Duration::from_secs(86_400));
    let mut writer = BundleWriter::create(to, limits, node, now).expect("a bundle");
    writer.append(records).expect("room");
    writer.finish(now).expect("sealed");
}

#[test]
fn every_fact_is_recorded_and_on_the_page() {
    let place = TempTree::new();
    let mut expected = Expected::new();
    let mut records = Vec::new();
    for fact in fact::all() {
        records.extend(records_of(fact, &mut expected));
    }
    let bundle = place.path().join("node.bundle");
    write(&bundle, &records);
    let kept: Vec<Record> = Bundle::open(&bundle)
        .expect("opens")
        .stream(None, None)
        .collect();
    for fact in fact::all() {
        let of = |records: &[Record]| -> Vec<Record> {
            let of = records.iter().filter(|record| record.fact() == Some(fact));
            of.cloned().collect()
        };
        assert_eq!(of(&kept), of(&records), "{}", fact.name);
        assert!(!of(&kept).is_empty(), "{}", fact.name);
    }
    let server = Server::over(&bundle);
    server.wait_until_read();
    let lanes = server.get("/api/v1/sources/main/lanes").json();
    for (lane, least) in expected {
        let all = lanes["lanes"].as_array().expect("a list");
        let found = all.iter().find(|found| found["id"] == lane);
        let shown = found.and_then(|found| found["max"].as_f64());
        assert!(shown >= Some(least), "{lane}: {shown:?}, {least} expected");
    }
}

#[test]
fn a_fact_that_is_added_in_a_test_build_is_on_every_surface() {
    let place = TempTree::new();
    let bundle = place.path().join("node.bundle");
    let path = bundle.to_str().expect("text");
    let args = ["record", "--sensors", "added", "--for", "2s", "-o", path];
    let output = sexton(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let levels = added_levels(&bundle);
    assert!(levels >= 3.0, "{levels}");
    added_is_on_the_page(&bundle, levels);
    let screen = Watch::sized(&bundle, 120, 60).first_screen();
    let screen = String::from_utf8_lossy(&screen);
    assert!(screen.contains("added-level"), "watch: {screen}");
    let docs = place.path().to_str().expect("text");
    let output = sexton(&["generate", "facts", docs]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let page = std::fs::read_to_string(place.path().join("facts.md")).expect("a page");
    for row in ["| `added_level` | gauge |", "| `added_began` | event |"] {
        assert!(page.contains(row), "docs: {row}");
    }
}

/// The last of the values that `record` has kept, which count up from one.
fn added_levels(bundle: &Path) -> f64 {
    let bundle = Bundle::open(bundle).expect("opens");
    let records: Vec<Record> = bundle.stream(None, None).collect();
    let of = |name: &str| {
        let fact = fact::by_name(name).expect("it is in this build");
        let of = records.iter().filter(|record| record.fact() == Some(fact));
        of.cloned().collect::<Vec<_>>()
    };
    let levels = of("added_level");
    let levels: Vec<f64> = levels.iter().filter_map(Record::value).collect();
    let expected: Vec<f64> = (1..=levels.len()).map(|n| n as f64).collect();
    assert_eq!(levels, expected);
    let began = of("added_began");
    let [record] = &began[..] else {
        panic!("{began:?}");
    };
    let Body::Event { payload, .. } = &record.body else {
        panic!("{record:?}");
    };
    let word = ("word".into(), Value::Text("hello".into()));
    assert_eq!(payload.fields(), [word]);
    levels.last().copied().unwrap_or_default()
}

/// The lane of values and the mark, in the JSON that the page draws.
fn added_is_on_the_page(bundle: &Path, levels: f64) {
    let server = Server::over(bundle);
    server.wait_until_read();
    let lanes = server.get("/api/v1/sources/main/lanes").json();
    let lanes = lanes["lanes"].as_array().expect("a list");
    let lane = lanes.iter().find(|lane| lane["id"] == "added.level");
    let lane = lane.expect("page: a lane of its own");
    assert_eq!(
        (lane["max"].as_f64(), &lane["label"]),
        (Some(levels), &"added-level".into())
    );
    let tiles = "/api/v1/sources/main/tiles?lane=added.level&lane=log.kernel&width=50";
    let tiles = server.get(tiles).json()["tiles"].clone();
    let values = tiles[0]["values"].as_array().expect("values").iter();
    let largest = values.filter_map(|it| it.as_f64()).fold(0.0, f64::max);
    assert_eq!(largest, levels, "{tiles}");
    let marks = tiles[1]["events"].as_array().expect("events");
    let says = |mark: &&serde_json::Value| {
        mark["text"]
            .as_str()
            .is_some_and(|text| text.contains("says hello"))
    };
    assert!(marks.iter().any(|mark| says(&mark)), "{tiles}");
}
