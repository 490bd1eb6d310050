//! Whole screens, as they were looked at and kept.

use std::time::Duration;

use sexton_model::fact::sexton::SEXTON_POLL_NS;
use sexton_model::fact::show::Show;
use sexton_model::fact::{self, Fact};
use sexton_model::payload::Payload;
use sexton_model::record::{Body, Record};
use sexton_model::subject::Subject;
use sexton_model::timeline::Records;
use sexton_testkit::{arbitrary, check_snapshot};
use sexton_tui::{Action, View};

use crate::story::{self, at, live, screen};

#[test]
fn a_node_in_trouble() {
    let view = live(&story::node(4));
    check_snapshot!("trouble-80x24.txt", screen(&view, 80, 24));
    check_snapshot!("trouble-160x50.txt", screen(&view, 160, 50));
    check_snapshot!("trouble-30x8.txt", screen(&view, 30, 8));
}

#[test]
fn many_cores() {
    let view = live(&story::node(96));
    check_snapshot!("96-cores-80x24.txt", screen(&view, 80, 24));
    check_snapshot!("96-cores-160x50.txt", screen(&view, 160, 50));
}

#[test]
fn what_is_not_seen_is_not_zero() {
    let text = screen(&live(&story::gaps()), 80, 24);
    assert!(!text.contains(" 0 "), "{text}");
    assert!(text.matches("not seen").count() >= 8, "{text}");
    check_snapshot!("blind-80x24.txt", text);
    check_snapshot!("nothing-80x24.txt", screen(&View::live(), 80, 24));
}

#[test]
fn none_is_said_only_by_a_sensor_at_work() {
    let text = screen(&live(&story::quiet()), 80, 24);
    assert_eq!(text.matches("none in 5m").count(), 4, "{text}");
    check_snapshot!("quiet-80x24.txt", text);
    let text = screen(&live(&story::births()), 80, 24);
    let docker = text
        .lines()
        .find(|line| line.contains("docker.service"))
        .unwrap();
    let words: Vec<&str> = docker.split_whitespace().collect();
    assert_eq!(words[..4], ["docker.service", "?", "?", "27"]);
}

#[test]
fn workloads_are_counted_by_image_and_by_end() {
    let text = screen(&live(&story::node(4)), 80, 24);
    assert!(text.contains("pressure now cpu 13%"), "{text}");
    assert!(text.contains("worst of 5m cpu 71%"), "{text}");
    assert!(text.contains("24 born 22 died, 407 ended badly"), "{text}");
    let mut view = live(&story::workloads());
    let mut turn = || view.act(Action::Next);
    (0..5).for_each(|_| {
        turn();
    });
    view.act(Action::Zoom);
    check_snapshot!("workloads-80x24.txt", screen(&view, 80, 24));
    // An end that nobody watched is not none.
    let quiet = screen(&live(&story::quiet()), 80, 24);
    assert!(quiet.contains("0 born 0 died, 0 ended badly"), "{quiet}");
    let blind = screen(&live(&story::gaps()), 80, 24);
    let expected = "containers not seen, bad ends not seen";
    assert!(blind.contains(expected), "{blind}");
}

#[test]
fn one_panel_and_help() {
    let mut view = live(&story::gaps());
    view.act(Action::Previous);
    view.act(Action::Zoom);
    check_snapshot!("gaps-80x24.txt", screen(&view, 80, 24));
    view.act(Action::Help);
    check_snapshot!("help-80x24.txt", screen(&view, 80, 24));
}

#[test]
fn a_recording_is_stepped_through() {
    let mut records = story::cores(4);
    records.extend(story::gaps());
    let mut view = View::of_timeline(&Records::new(records));
    let end = screen(&view, 80, 24);
    for _ in 0..4 {
        view.act(Action::Back);
    }
    view.act(Action::Shorter);
    check_snapshot!("recording-80x24.txt", screen(&view, 80, 24));
    view.act(Action::Longer);
    for _ in 0..4 {
        view.act(Action::On);
    }
    assert_eq!(screen(&view, 80, 24), end);
}

#[test]
fn a_live_view_moves_on_and_can_be_held() {
    let mut view = live(&story::node(4));
    view.act(Action::Pause);
    let held = screen(&view, 80, 24);
    view.advance(at(0).after(story::LENGTH + Duration::from_secs(60)));
    let later = screen(&view, 80, 24);
    assert_eq!(
        held.lines().skip(1).collect::<Vec<_>>(),
        later.lines().skip(1).collect::<Vec<_>>()
    );
    view.act(Action::Pause);
    let now = screen(&view, 80, 24);
    assert!(now.contains("worst now not seen"), "{now}");
    assert!(now.contains("live"), "{now}");
}

#[test]
fn what_is_old_is_let_go() {
    let mut view = live(&story::node(4));
    view.advance(at(24 * 3600));
    view.act(Action::First);
    let text = screen(&view, 80, 24);
    assert!(text.contains("cores: not seen"), "{text}");
    // A gap may still hold: it stays.
    assert!(text.contains("17 exits came"), "{text}");
}

#[test]
fn what_has_no_panel_of_its_own_is_in_one_for_all() {
    let mut view = live(&story::other());
    (0..6).for_each(|_| {
        view.act(Action::Next);
    });
    // On a low screen it is alone as soon as it is in focus.
    let text = screen(&view, 80, 24);
    view.act(Action::Zoom);
    assert_eq!(screen(&view, 80, 24), text);
    check_snapshot!("other-80x24.txt", text);
}

/// What panels say of these records, one after the other.
fn panels(records: &[Record]) -> Vec<String> {
    let mut view = live(records);
    view.act(Action::Zoom);
    let mut panel = || {
        view.act(Action::Next);
        screen(&view, 160, 50)
    };
    (0..8).map(|_| panel()).collect()
}

#[test]
fn every_fact_with_a_place_on_the_time_line_is_on_the_screen() {
    let sample = |second: u64, fact: &'static Fact, value: f64| Record {
        at: at(second),
        sensor: "test".into(),
        subject: Subject::node(),
        body: Body::Sample { fact, value },
    };
    let quiet = [1, 2].map(|second| sample(second, &SEXTON_POLL_NS, 1.0));
    let without = panels(&quiet);
    for fact in fact::all() {
        let records = match fact.show {
            Show::Series(_) | Show::Growth(..) => {
                vec![sample(1, fact, 1.0), sample(2, fact, 3.0)]
            }
            Show::Marks(mark) => {
                let is_shown = |payload: &dyn Payload| mark(&Subject::node(), payload);
                let (body, _) = arbitrary::first_event(fact, is_shown);
                vec![Record {
                    body,
                    ..sample(2, fact, 0.0)
                }]
            }
            Show::Core(_) | Show::Not => continue,
        };
        let with = panels(&[&quiet[..], &records].concat());
        assert_ne!(with, without, "{}", fact.name);
    }
}
