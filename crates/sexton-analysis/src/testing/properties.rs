//! What holds of every judgement, whatever the records: it ends, its chains have no ring and
//! leave no finding out, and the order in which records came changes nothing.

use proptest::prelude::*;
use sexton_model::fact::core::CORE_SYSTEM_RATIO;
use sexton_model::fact::{self, Fact, FactKind, klog::CLASSES};
use sexton_model::moment::Moment;
use sexton_model::payload::{Fields, Value};
use sexton_model::record::{Body, Record, Sink};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::timeline::Records;

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

/// Details that rules read, and what they may say.
const DETAILS: [(&str, &[&str]); 12] = [
    ("device", &["eth0", "eth1"]),
    ("cpu", &["0", "1", "x"]),
    ("unit", &["a.service", "b.service"]),
    ("image", &["agent:1"]),
    ("path", &["/docker/1", "/docker/2", ""]),
    ("exit_code", &["0", "1", "137"]),
    ("lifetime_ms", &["100", "-1"]),
    ("creator_unit", &["docker.service", "a.service"]),
    ("creator_ancestry", &["sh[7] < systemd[1]"]),
    ("n", &["3", "many"]),
    ("waited_ns", &["700000000"]),
    ("active", &["active", "failed"]),
];

fn a_record() -> impl Strategy<Value = Record> {
    let facts: Vec<&'static Fact> = fact::all().collect();
    let value = prop_oneof![
        Just(0.0),
        Just(1.0),
        Just(0.97),
        Just(f64::NAN),
        0.0..1e12f64,
        Just(-1.0)
    ];
    (
        prop::sample::select(facts),
        prop::sample::select(&SENSORS[..]),
        prop::sample::select(&SUBJECTS[..]),
        value,
        0u64..120_000,
        prop::collection::vec(any::<prop::sample::Index>(), DETAILS.len() + 1),
    )
        .prop_map(|(fact, sensor, (kind, name), value, ms, picks)| {
            let at = Moment::from_ns(1_000_000_000_000 + ms * 1_000_000);
            let mut out = Sink::new(sensor, at);
            let subject = Subject::new(kind, name);
            if fact.kind == FactKind::Event {
                // A payload that lacks what it must have is none: another fact says something.
                let body = Body::read_event(fact, &details(&picks));
                let body = body.unwrap_or(Body::Sample {
                    fact: &CORE_SYSTEM_RATIO,
                    value,
                });
                return Record {
                    at,
                    sensor: sensor.into(),
                    subject,
                    body,
                };
            }
            out.sample(&subject, fact, value);
            out.into_records().remove(0)
        })
}

fn details(picks: &[prop::sample::Index]) -> Fields {
    let class = CLASSES[picks[DETAILS.len()].index(CLASSES.len())].0;
    let known = DETAILS.iter().zip(picks).map(|((key, values), pick)| {
        let value = values[pick.index(values.len())];
        (
            std::borrow::Cow::Borrowed(*key),
            Value::Text(value.to_owned()),
        )
    });
    let class = Value::Text(class.to_owned());
    known.chain([("class".into(), class)]).collect()
}

fn judge(records: Vec<Record>) -> sexton_model::diagnosis::Diagnosis {
    crate::judge(&Records::new(records), &Policy::default())
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
