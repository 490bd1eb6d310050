//! A window stays within its bounds, forgets what is old, and keeps what still holds.

use sexton_model::fact::core::CORE_SYSTEM_RATIO;
use sexton_model::fact::unit::{UNIT_SEEN, UNIT_STARTED, UnitSeen, UnitStarted};
use sexton_model::subject::SubjectKind;

use super::*;
use crate::testing::at;

fn unit(name: &str) -> Subject {
    Subject::new(SubjectKind::Unit, name)
}

fn push(window: &mut Window, out: Sink) {
    out.into_records()
        .into_iter()
        .for_each(|record| window.push(record));
}

fn poll(window: &mut Window, sensor: &'static str, second: u64) {
    let mut out = Sink::new(sensor, at(second));
    let own = Subject::new(SubjectKind::Sensor, sensor);
    out.sample(&own, &SEXTON_POLL_NS, 1.0);
    push(window, out);
}

fn seen(window: &mut Window, name: &str, second: u64, active: &str) {
    let mut out = Sink::new("units", at(second));
    let says = UnitSeen {
        active: Some(active.into()),
        ..UnitSeen::default()
    };
    out.event(at(second), &unit(name), &UNIT_SEEN, says);
    push(window, out);
}

fn heard(window: &Window, sensor: &str) -> bool {
    let mut polls = window.of(&SEXTON_POLL_NS);
    polls.any(|record| *record.subject.name == *sensor)
}

#[test]
fn a_day_takes_no_more_than_an_hour() {
    let mut window = Window::default();
    let mut most = [0, 0];
    for second in 0..(24 * 3600) {
        let mut out = Sink::new("cores", at(second));
        for core in 0..4 {
            out.sample(&Subject::cpu(core), &CORE_SYSTEM_RATIO, 0.1);
        }
        push(&mut window, out);
        poll(&mut window, "cores", second);
        if second % 30 == 0 {
            window.trim(at(second));
            let half = usize::from(second > 12 * 3600);
            most[half] = most[half].max(window.len());
        }
    }
    assert!(most[1] <= most[0], "{most:?}");
    assert!(most[0] < 4 * 600 + 4 * 30 + 100, "{most:?}");
}

#[test]
fn more_than_fits_is_cut_and_said() {
    let mut window = Window::default();
    poll(&mut window, "cores", 1);
    for second in 1..100 {
        let mut out = Sink::new("cores", at(second));
        for core in 0..512 {
            out.sample(&Subject::cpu(core), &CORE_SYSTEM_RATIO, 0.1);
        }
        push(&mut window, out);
    }
    window.trim(at(100));
    assert!(window.len() < 9_000, "{}", window.len());
    let gaps: Vec<String> = window.gaps().map(|(_, _, gap)| gap.text.clone()).collect();
    assert_eq!(
        gaps,
        ["more was recorded than is judged at once: core_system_ratio for 16 s only"]
    );
}

#[test]
fn what_holds_until_it_changes_outlives_the_reach() {
    let mut window = Window::default();
    poll(&mut window, "units", 1);
    seen(&mut window, "failed.service", 2, "failed");
    seen(&mut window, "well.service", 2, "active");
    let started = UnitStarted::default();
    for name in ["mended.service", "well.service"] {
        let mut out = Sink::new("units", at(3));
        out.event(at(3), &unit(name), &UNIT_STARTED, started.clone());
        push(&mut window, out);
    }
    seen(&mut window, "mended.service", 2, "failed");
    window.trim(at(30_000));
    let names = |fact| -> Vec<String> {
        let records = window.of(fact);
        records
            .map(|record| record.subject.name.to_string())
            .collect()
    };
    assert_eq!(names(&UNIT_SEEN.fact).len(), 3);
    // The start of a unit that never failed says nothing any more.
    assert_eq!(names(&UNIT_STARTED.fact), ["mended.service"]);
}

#[test]
fn a_sensor_on_a_slow_beat_is_at_work_and_a_stuck_one_is_not() {
    let mut window = Window::default();
    for hour in 0..3 {
        poll(&mut window, "unit_files", 1 + hour * 3600);
    }
    for second in 0..60 {
        poll(&mut window, "cores", second);
    }
    window.trim(at(2 * 3600 + 1800));
    assert!(heard(&window, "unit_files"));
    assert!(!heard(&window, "cores"));
}

#[test]
fn a_lasting_gap_stays_and_a_passing_one_goes() {
    let mut window = Window::default();
    poll(&mut window, "napi", 1);
    for (why, text) in [(Why::Denied, "needs root"), (Why::Overrun, "late by 3 s")] {
        let mut out = Sink::new("napi", at(2));
        out.gap(&Subject::node(), Gap::new("napi", why, text));
        push(&mut window, out);
    }
    window.trim(at(10_000));
    let gaps: Vec<&str> = window.gaps().map(|(_, _, gap)| gap.text.as_str()).collect();
    assert_eq!(gaps, ["needs root"]);
}
