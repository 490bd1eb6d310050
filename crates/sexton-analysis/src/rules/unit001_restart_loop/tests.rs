use sexton_model::fact::unit::UnitLastLines;
use sexton_model::record::Sink;
use sexton_model::subject::SubjectKind;

use super::*;
use crate::testing;
use crate::testing::{Watch, at};

fn unit() -> Subject {
    Subject::new(SubjectKind::Unit, "loop.service")
}

fn started(out: &mut Sink, second: u64, by: &str, trigger: Option<&str>) {
    let mut details = vec![("by".into(), by.to_owned()), ("n".into(), "1".into())];
    details.extend(trigger.map(|name| ("triggered_by".into(), name.to_owned())));
    out.event(
        at(second),
        &unit(),
        &fact::UNIT_STARTED,
        testing::read(details),
    );
}

/// Counts at 10 s steps, restarts seen, up for so many hours.
fn check(counts: &[f64], n_started: u64, hours: u64, expected: usize) {
    let from = hours * 3600;
    let mut watch = Watch::new(from, 30);
    for (i, count) in counts.iter().enumerate() {
        let mut out = Sink::new("units", at(from + 10 * i as u64));
        out.sample(&unit(), &fact::UNIT_RESTARTS, *count);
        watch.add(out);
    }
    let mut out = Sink::new("units", at(from));
    (0..n_started).for_each(|i| started(&mut out, from + i, "restart", None));
    watch.add(out);
    assert_eq!(watch.judge(&RULE).findings.len(), expected, "{counts:?}");
}

#[test]
fn growth_is_a_loop_and_one_restart_is_none() {
    check(&[0.0, 3.0, 6.0], 0, 24, 1);
    check(&[], 4, 24, 1);
    check(&[1.0], 1, 24, 0);
}

#[test]
fn history_counts() {
    check(&[5_000.0], 0, 240, 1);
    // Twelve in three hundred days are none.
    check(&[12.0], 0, 7_200, 0);
}

#[test]
fn a_count_that_begins_anew_is_no_negative_growth() {
    check(&[9.0, 0.0, 1.0], 0, 2_400, 0);
    check(&[9.0, 0.0, 4.0], 0, 2_400, 1);
}

/// A count of long ago, and the state in which the unit was found, for so many seconds.
fn seen(total: f64, hours: u64, sub: &str, seconds: u64) -> usize {
    let from = hours * 3600;
    let mut watch = Watch::new(from, 30);
    let mut out = Sink::new("units", at(from));
    out.sample(&unit(), &fact::UNIT_RESTARTS, total);
    let since = (from - seconds) * 1_000_000_000;
    let details = vec![
        ("sub".into(), sub.to_owned()),
        ("state_monotonic_ns".into(), since.to_string()),
    ];
    out.event(at(from), &unit(), &fact::UNIT_SEEN, testing::read(details));
    watch.add(out);
    watch.judge(&RULE).findings.len()
}

#[test]
fn a_loop_that_is_over_is_none() {
    // Every three minutes until it was mended an hour ago.
    assert_eq!(seen(480.0, 25, "running", 3_600), 0);
    assert_eq!(seen(480.0, 25, "running", 60), 1);
    // Stopped by an operator: systemd keeps the count.
    assert_eq!(seen(480.0, 25, "dead", 60), 0);
    // Of a unit that came to a node long after its boot only its state tells.
    assert_eq!(seen(480.0, 7_200, "auto-restart", 60), 1);
    assert_eq!(seen(480.0, 7_200, "running", 60), 0);
}

#[test]
fn a_few_restarts_in_a_long_watch_are_no_loop() {
    let story = |hours: u64| {
        let mut watch = Watch::new(9_000, hours * 3_600);
        let mut out = Sink::new("units", at(9_000));
        (0..4).for_each(|i| started(&mut out, 9_000 + 600 * i, "restart", None));
        watch.add(out);
        watch.judge(&RULE).findings.len()
    };
    assert_eq!((story(1), story(12)), (1, 0));
}

#[test]
fn the_end_of_a_run_is_told_as_it_was() {
    let told = |details: &[(&'static str, &str)]| {
        let mut watch = Watch::new(9_000, 30);
        let mut out = Sink::new("units", at(9_000));
        (0..4).for_each(|i| started(&mut out, 9_000 + i, "restart", None));
        let end = testing::event(&fact::UNIT_STOPPED, details);
        out.event(at(9_004), &unit(), &fact::UNIT_STOPPED, end);
        watch.add(out);
        let found = watch.judge(&RULE).findings.remove(0);
        found.evidence.last().expect("evidence").text.clone()
    };
    let five = [("exit_code", "exited"), ("exit_status", "5")];
    assert_eq!(
        told(&[&five[..], &[("result", "success")]].concat()),
        "its last run ended: exit status 5"
    );
    assert_eq!(
        told(&[&five[..], &[("result", "exit-code")]].concat()),
        "its last run ended: exit status 5, result exit-code"
    );
    assert_eq!(
        told(&[("result", "unseen")]),
        "its last run ended; exit status unknown"
    );
}

#[test]
fn what_a_timer_starts_is_no_loop() {
    let story = |trigger: &str| {
        let mut watch = Watch::new(9_000, 30);
        let mut out = Sink::new("units", at(9_000));
        (0..8).for_each(|i| started(&mut out, 9_000 + i, "start", Some(trigger)));
        watch.add(out);
        watch.judge(&RULE).findings
    };
    assert!(story("tick.timer").is_empty());
    let by_socket = story("tick.socket");
    assert!(
        by_socket[0].title.starts_with("tick.socket starts"),
        "{}",
        by_socket[0].title
    );
    assert_eq!(
        by_socket[0].remedies[0].command.as_deref(),
        Some("sudo systemctl stop tick.socket && sudo systemctl stop loop.service")
    );
}

#[test]
fn without_systemd_it_is_not_judged() {
    let findings = Watch::blind("units", "there is no systemd").judge(&RULE);
    assert_eq!(findings.not_judged[0].because, "there is no systemd");
}

/// Where the bus did not say how a run ended, the journal does.
#[test]
fn the_journal_says_how_it_ends_and_in_which_words() {
    let mut watch = Watch::new(100, 30);
    let mut out = Sink::new("units", at(100));
    (0..4).for_each(|i| started(&mut out, 100 + i, "restart", None));
    watch.add(out);
    let mut out = Sink::new("journal", at(105));
    let says = UnitLastLines {
        lines: vec!["starting".into(), "cannot read a.conf".into()],
        exit_code: Some("exited".into()),
        exit_status: Some("4".into()),
    };
    out.event(at(105), &unit(), &fact::UNIT_LAST_LINES, says);
    watch.add(out);
    let found = watch.judge(&RULE).findings;
    assert_eq!(found[0].figure, "4 restarts in 30 s, exit status 4");
    let quote = found[0]
        .evidence
        .iter()
        .find_map(|piece| piece.quote.as_deref());
    assert_eq!(quote, Some("\"cannot read a.conf\""));
}
