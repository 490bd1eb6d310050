//! What holds of every judgement, whatever the records: it ends, its chains have no ring and
//! leave no finding out, and the order in which records came changes nothing.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use sexton_model::fact::{self, Fact};
use sexton_model::gap::Gap;
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::timeline::Records;
use sexton_testkit::arbitrary::{self, Vocabulary};

use crate::policy::Policy;

const SENSORS: [&str; 10] = [
    "cgroups",
    "containers",
    "cores",
    "exits",
    "filesystems",
    "klog",
    "memcg",
    "napi",
    "nics",
    "units",
];

/// Few names, so that evidence meets by chance.
const SUBJECTS: [(SubjectKind, &str); 10] = [
    (SubjectKind::Node, ""),
    (SubjectKind::Cpu, "0"),
    (SubjectKind::Cpu, "1"),
    (SubjectKind::Cgroup, "/docker/<id>"),
    (SubjectKind::Unit, "a.service"),
    (SubjectKind::Image, "agent:1"),
    (SubjectKind::Device, "eth0"),
    (SubjectKind::Queue, "eth0/tx-0"),
    (SubjectKind::Process, "7"),
    (SubjectKind::Mount, "/"),
];

/// What events speak of, mostly: names of subjects, of processes, states and paths.
const TEXTS: [&str; 14] = [
    "a.service",
    "b.service",
    "docker.service",
    "agent:1",
    "eth0",
    "eth1",
    "sh",
    "dockerd",
    "/docker/1",
    "/docker/2",
    "/docker/<id>",
    "/system.slice/a.service",
    "active",
    "failed",
];

/// Small ones are cores, statuses and numbers of processes; great ones are times in
/// nanoseconds. 137 is the status of what was killed.
const COUNTS: [u64; 9] = [0, 1, 2, 3, 7, 100, 137, 700_000_000, 60_000_000_000];

fn a_record() -> impl Strategy<Value = Record> {
    let at = (0u64..120_000).prop_map(|ms| Moment::from_ns(1_000_000_000_000 + ms * 1_000_000));
    let sensor = select(&SENSORS[..]);
    (at, sensor, select(&SUBJECTS[..]), a_body()).prop_map(|(at, sensor, (kind, name), body)| {
        Record {
            at,
            sensor: sensor.into(),
            subject: Subject::new(kind, name),
            body,
        }
    })
}

/// A value, an event or a gap; each fact as often as any other.
fn a_body() -> impl Strategy<Value = Body> {
    let facts: Vec<&'static Fact> = fact::all().collect();
    let words = Vocabulary::few(&TEXTS, &COUNTS);
    let said = select(facts).prop_flat_map(move |fact| match fact.payload {
        Some(_) => arbitrary::event_in(&words, fact).boxed(),
        None => a_value()
            .prop_map(move |value| Body::Sample { fact, value })
            .boxed(),
    });
    let gap = (arbitrary::gap(), select(&SENSORS[..])).prop_map(|(gap, sensor)| {
        Body::Gap(Box::new(Gap {
            sensor: sensor.into(),
            ..gap
        }))
    });
    prop_oneof![30 => said, 1 => gap]
}

fn a_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(1.0),
        Just(0.97),
        Just(f64::NAN),
        0.0..1e12f64,
        Just(-1.0),
        arbitrary::number(),
    ]
}

fn judge(records: Vec<Record>) -> sexton_model::diagnosis::Diagnosis {
    crate::judge(&Records::new(records), &Policy::default())
}

/// What never makes a rule fire would say nothing of chains.
#[test]
fn evidence_meets() {
    let mut runner = TestRunner::deterministic();
    let watches = prop::collection::vec(a_record(), 200);
    let mut codes = BTreeSet::new();
    let mut n_links = 0;
    for _ in 0..192 {
        let records = watches.new_tree(&mut runner).expect("records").current();
        let diagnosis = judge(records);
        codes.extend(diagnosis.findings.iter().map(|finding| finding.code));
        n_links += diagnosis.links.len();
    }
    assert!(codes.len() >= 8, "only these fire: {codes:?}");
    assert!(n_links > 0, "no two findings are linked");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn chains_have_no_ring_and_leave_nobody_out(
        records in prop::collection::vec(a_record(), 0..200),
    ) {
        let diagnosis = judge(records);
        for chain in &diagnosis.chains {
            let mut ids = chain.clone();
            ids.sort();
            ids.dedup();
            prop_assert_eq!(ids.len(), chain.len(), "a ring in {:?}", chain);
        }
        for finding in &diagnosis.findings {
            let id = finding.id();
            let told = diagnosis.chains.iter().any(|chain| chain.contains(&id));
            prop_assert!(told, "{} is in no chain", id);
        }
    }

    #[test]
    fn the_order_of_records_changes_nothing(
        records in prop::collection::vec(a_record(), 0..200).prop_shuffle(),
        seed in any::<u64>(),
    ) {
        let mut shuffled = records.clone();
        // Moves each to a place that its number and the seed tell.
        shuffled.sort_by_cached_key(|record| {
            let key = (record.at.as_ns() ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (key, record.subject.clone())
        });
        let (one, other) = (judge(records), judge(shuffled));
        prop_assert_eq!(format!("{one:?}"), format!("{other:?}"));
    }
}
