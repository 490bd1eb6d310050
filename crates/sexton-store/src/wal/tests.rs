use std::borrow::Cow;
use std::io::Write as _;

use proptest::prelude::*;
use sexton_model::fact::{self, Fact};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record};
use sexton_model::subject::{Subject, SubjectKind};

use super::*;

fn any_fact() -> impl Strategy<Value = &'static Fact> {
    let facts: Vec<&'static Fact> = fact::all().collect();
    proptest::sample::select(facts)
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-c]{1,2}", "\\PC{0,20}", ".{0,8}"]
}

fn any_why() -> impl Strategy<Value = Why> {
    prop_oneof![
        Just(Why::Denied),
        Just(Why::Vanished),
        Just(Why::Unsupported),
        Just(Why::Malformed),
        any::<u64>().prop_map(Why::Lost),
        Just(Why::Overrun),
        Just(Why::Bug),
    ]
}

fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("equal to itself", |value| !value.is_nan()),
        (-5_i32..5).prop_map(f64::from),
        any::<i64>().prop_map(|value| value as f64),
        Just(-0.0),
    ]
}

fn any_body() -> impl Strategy<Value = Body> {
    let details = proptest::collection::vec((any_text().prop_map(Cow::Owned), any_text()), 0..4);
    let gap = (
        any_text(),
        any_why(),
        any_text(),
        proptest::option::of(any_text()),
    );
    prop_oneof![
        (any_fact(), any_value()).prop_map(|(fact, value)| Body::Sample { fact, value }),
        (any_fact(), details).prop_map(|(fact, details)| Body::Event { fact, details }),
        gap.prop_map(|(sensor, why, text, remedy)| Body::Gap(Gap {
            sensor: sensor.into(),
            why,
            text,
            remedy
        })),
    ]
}

pub(crate) fn any_record() -> impl Strategy<Value = Record> {
    let kinds = [SubjectKind::Node, SubjectKind::Cgroup, SubjectKind::Sensor];
    let subject = (proptest::sample::select(kinds.to_vec()), any_text());
    let time = prop_oneof![any::<u64>(), 0_u64..1000];
    (time, any_text(), subject, any_body()).prop_map(|(at, sensor, (kind, name), body)| Record {
        at: Moment::from_ns(at),
        sensor: sensor.into(),
        subject: Subject::new(kind, name),
        body,
    })
}

/// A log of these batches; every third begins a block. Also where each batch ends.
fn log(batches: &[Vec<Record>]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = file_header(7).to_vec();
    let mut ends = Vec::new();
    let mut encoder = Encoder::default();
    for (i, batch) in batches.iter().enumerate() {
        let begins = i % 3 == 0;
        if begins {
            encoder.begin_block();
        }
        let mut payload = Vec::new();
        for record in batch {
            encoder.record(&mut payload, record);
        }
        bytes.extend(frame(&payload, batch.len(), begins));
        ends.push(bytes.len());
    }
    (bytes, ends)
}

fn scan(bytes: &[u8]) -> Option<Log> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Log::scan(file).unwrap()
}

/// All records, block by block, last block first: blocks do not need each other.
fn replay(bytes: &[u8]) -> Vec<Record> {
    let Some(mut log) = scan(bytes) else {
        return Vec::new();
    };
    let mut blocks: Vec<Vec<Record>> = Vec::new();
    for block in log.blocks.clone().iter().rev() {
        let rows = log.rows(block).unwrap().into_iter();
        blocks.push(rows.map(|row| row.into_record().unwrap()).collect());
    }
    blocks.into_iter().rev().flatten().collect()
}

fn any_batches() -> impl Strategy<Value = Vec<Vec<Record>>> {
    proptest::collection::vec(proptest::collection::vec(any_record(), 1..6), 1..8)
}

/// As many records as the batches that end within `bytes`.
fn whole(batches: &[Vec<Record>], ends: &[usize], bytes: usize) -> Vec<Record> {
    let n = ends.iter().filter(|end| **end <= bytes).count();
    batches[..n].concat()
}

proptest! {
    #[test]
    fn what_is_written_is_read(batches in any_batches()) {
        let (bytes, _) = log(&batches);
        prop_assert_eq!(replay(&bytes), batches.concat());
        prop_assert_eq!(scan(&bytes).unwrap().torn, None);
    }

    #[test]
    fn no_record_is_longer_than_its_bound(record in any_record()) {
        let mut bytes = Vec::new();
        Encoder::default().record(&mut bytes, &record);
        prop_assert!(bytes.len() <= size_bound(&record), "{}", bytes.len());
    }

    #[test]
    fn a_log_can_be_continued(batches in any_batches(), more in any_batches()) {
        let (mut bytes, _) = log(&batches);
        let (_, mut encoder) = scan(&bytes).unwrap().into_writer();
        encoder.begin_block();
        for (i, batch) in more.iter().enumerate() {
            let mut payload = Vec::new();
            for record in batch {
                encoder.record(&mut payload, record);
            }
            bytes.extend(frame(&payload, batch.len(), i == 0));
        }
        prop_assert_eq!(replay(&bytes), [batches.concat(), more.concat()].concat());
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Decoder::default().batch(&bytes, &mut Vec::new());
        let mut log = file_header(1).to_vec();
        log.extend(frame(&bytes, bytes.len() / 3, true));
        replay(&log);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn a_cut_at_any_byte_leaves_the_whole_batches(batches in any_batches()) {
        let (bytes, ends) = log(&batches);
        for cut in 0..bytes.len() {
            let expected = whole(&batches, &ends, cut);
            prop_assert_eq!(replay(&bytes[..cut]), expected, "cut at {}", cut);
            let at_an_end = cut == HEADER_BYTES as usize || ends.contains(&cut);
            let torn = scan(&bytes[..cut]).is_some_and(|log| log.torn.is_none());
            prop_assert_eq!(torn, at_an_end, "cut at {}", cut);
        }
    }

    #[test]
    fn a_changed_byte_never_makes_a_wrong_record(batches in any_batches(), change in 1_u8..) {
        let (bytes, ends) = log(&batches);
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= change;
            let expected = if at < HEADER_BYTES as usize {
                Vec::new()
            } else {
                whole(&batches, &ends, at)
            };
            prop_assert_eq!(replay(&broken), expected, "changed at {}", at);
        }
    }
}
