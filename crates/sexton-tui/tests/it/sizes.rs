//! Any records, any keys, any size: it is drawn.

use proptest::prelude::*;
use sexton_model::fact;
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_tui::{Action, View};

use crate::story::{live, node, screen};

const ACTIONS: [Action; 14] = [
    Action::Pause,
    Action::Back,
    Action::On,
    Action::First,
    Action::Last,
    Action::Longer,
    Action::Shorter,
    Action::Next,
    Action::Previous,
    Action::Zoom,
    Action::Down,
    Action::Up,
    Action::Help,
    Action::Leave,
];

/// A record that no sensor would make, of any fact there is.
fn wild() -> impl Strategy<Value = Record> {
    let facts: Vec<_> = fact::all().collect();
    let name = prop_oneof![
        Just("0".to_owned()),
        Just("作業".to_owned()),
        any::<String>()
    ];
    let value = prop_oneof![Just(0.0), Just(f64::NAN), any::<f64>()];
    let at = prop_oneof![0..10_000_000_000_000_u64, any::<u64>()];
    let parts = (prop::sample::select(facts), at, name, value, any::<bool>());
    parts.prop_map(|(fact, at, name, value, happens)| Record {
        at: Moment::from_ns(at),
        sensor: "wild".into(),
        subject: Subject::new(SubjectKind::Cpu, name.as_str()),
        body: match happens {
            true => Body::Event {
                fact,
                details: vec![("line".into(), name)],
            },
            false => Body::Sample { fact, value },
        },
    })
}

fn press(view: &mut View, actions: &[Action], columns: u16, rows: u16) {
    screen(view, columns, rows);
    for action in actions {
        view.act(*action);
        screen(view, columns, rows);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_records_are_drawn(
        records in prop::collection::vec(wild(), 0..40),
        actions in prop::collection::vec(prop::sample::select(&ACTIONS[..]), 0..8),
        columns in 1..180_u16,
        rows in 1..60_u16,
    ) {
        press(&mut live(&records), &actions, columns, rows);
        press(&mut View::of_records(&records), &actions, columns, rows);
    }

    #[test]
    fn small_screens_are_drawn(
        actions in prop::collection::vec(prop::sample::select(&ACTIONS[..]), 0..12),
        columns in 20..70_u16,
        rows in 5..20_u16,
    ) {
        press(&mut live(&node(3)), &actions, columns, rows);
    }
}
