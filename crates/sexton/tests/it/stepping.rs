//! Every bundle under `fixtures/`, judged step by step as an agent does: records that come in
//! batches, late and out of order, give the lives of findings that a replay from the store
//! gives; and the last step says what judging the whole bundle at once says.

use std::time::Duration;

use sexton_analysis::live::{Lives, Stepper, Turn, replay};
use sexton_analysis::{Policy, judge};
use sexton_model::moment::Moment;
use sexton_model::record::Record;
use sexton_model::timeline::{Records, Timeline};

use crate::matrix::bundles;

/// Fixtures last for a minute or two: short steps, so that there are some.
const EVERY: Duration = Duration::from_secs(5);

type Lived = Vec<(u64, Turn, String)>;

fn stepper() -> Stepper {
    Stepper::new(Policy::default(), EVERY, Lives::default())
}

fn replayed(records: &[Record]) -> Lived {
    let mut stepper = stepper();
    let mut lived = Vec::new();
    replay(&mut stepper, records.iter().cloned(), |step| {
        let changes = step.changes.iter();
        lived.extend(changes.map(|change| {
            (
                step.at.as_ns(),
                change.turn,
                change.life.finding.id().to_string(),
            )
        }));
    });
    lived
}

/// A number that looks like chance and is the same in every run.
fn scatter(i: u64) -> u64 {
    i.wrapping_add(0x9E37_79B9)
        .wrapping_mul(0xBF58_476D_1CE4_E5B9)
        >> 33
}

/// The same records as an agent gets them: each up to `late` after its moment, in that order.
fn as_they_came(records: &[Record], late: Duration) -> Vec<(Moment, Record)> {
    let late_ms = late.as_millis() as u64;
    let mut came: Vec<(Moment, Record)> = records
        .iter()
        .enumerate()
        .map(|(i, record)| {
            let late = Duration::from_millis(scatter(i as u64) % late_ms.max(1));
            (record.at.after(late), record.clone())
        })
        .collect();
    came.sort_by_key(|(at, _)| *at);
    came
}

/// Steps are taken `lag` after their moment, as an agent does.
fn lived_live(records: &[Record], late: Duration, lag: Duration) -> Lived {
    let mut stepper = stepper();
    let mut lived = Vec::new();
    let end = records.last().map(|record| record.at).unwrap_or_default();
    let mut step = |stepper: &mut Stepper| {
        if let Some(step) = stepper.step() {
            let changes = step.changes.iter();
            lived.extend(changes.map(|change| {
                (
                    step.at.as_ns(),
                    change.turn,
                    change.life.finding.id().to_string(),
                )
            }));
        }
    };
    for (came, record) in as_they_came(records, late) {
        while stepper
            .next()
            .is_some_and(|next| next.after(lag) < came && next < end)
        {
            step(&mut stepper);
        }
        stepper.take(record);
    }
    while stepper.next().is_some_and(|next| next < end) {
        step(&mut stepper);
    }
    lived
}

/// Cuts of a recording: all of it, and some beginnings.
fn cuts(records: &Records) -> Vec<Vec<Record>> {
    let all: Vec<Record> = records.iter().cloned().collect();
    let n = all.len() as u64;
    let mut cuts: Vec<Vec<Record>> = (1..3)
        .map(|i| all[..(scatter(n + i) % (n + 1)) as usize].to_vec())
        .collect();
    cuts.push(all);
    cuts
}

#[test]
fn a_replay_gives_the_lives_that_were_lived() {
    let mut n_turns = 0;
    for (name, records) in bundles() {
        for cut in cuts(&records) {
            let replayed = replayed(&cut);
            let late = Duration::from_secs(2);
            let lived = lived_live(&cut, late, late);
            assert_eq!(lived, replayed, "{name}, {} records", cut.len());
            n_turns += lived.len();
        }
    }
    assert!(n_turns > 100, "only {n_turns} turns in all fixtures");
}

#[test]
fn the_last_step_says_what_judging_all_at_once_says() {
    for (name, records) in bundles() {
        let all: Vec<Record> = records.iter().cloned().collect();
        let mut stepper = stepper();
        let mut last = None;
        replay(&mut stepper, all.iter().cloned(), |step| last = Some(step));
        let Some(last) = last else { continue };
        // What the last step has seen, at once.
        let until: Vec<Record> = all
            .into_iter()
            .filter(|record| record.at <= last.at)
            .collect();
        let whole = Records::new(until);
        assert!(whole.watched().is_some(), "{name}");
        let at_once = judge(&whole, &Policy::default());
        let ids = |findings: &[sexton_model::finding::Finding]| -> Vec<String> {
            findings
                .iter()
                .map(|finding| finding.id().to_string())
                .collect()
        };
        assert_eq!(
            ids(&last.diagnosis.findings),
            ids(&at_once.findings),
            "{name}"
        );
        assert_eq!(last.diagnosis.state, at_once.state, "{name}");
    }
}
