//! A fact is one definition. Whatever stands in the list of facts is recorded and is on the
//! page, by that alone: these tests know no fact by name, so that one that is added is tested as
//! soon as it is in the list. `sexton-tui` and `sexton-report` do the same for `watch` and
//! `docs/facts.md`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use sexton_model::fact::show::Show;
use sexton_model::fact::{self, Fact};
use sexton_model::moment::Moment;
use sexton_model::payload::Payload;
use sexton_model::record::{Body, Record};
use sexton_model::subject::Subject;
use sexton_store::{Bundle, BundleWriter, Limits, Node};
use sexton_testkit::{TempTree, arbitrary};

use crate::serve::Server;

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
