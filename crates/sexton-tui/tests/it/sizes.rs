//! Any records, any keys, any size: it is drawn.

use proptest::prelude::*;
use sexton_model::moment::Moment;
use sexton_model::record::Record;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_testkit::arbitrary;
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

/// A record that no sensor would make, of any fact there is, often of a core and of a time
/// that is near others.
fn wild() -> impl Strategy<Value = Record> {
    let at = prop_oneof![0..10_000_000_000_000_u64, any::<u64>()];
    let name = prop_oneof![
        Just("0".to_owned()),
        Just("作業".to_owned()),
        any::<String>()
    ];
    let parts = (arbitrary::record(), at, name, any::<bool>());
    parts.prop_map(|(record, at, name, is_core)| Record {
        at: Moment::from_ns(at),
        subject: match is_core {
            true => Subject::new(SubjectKind::Cpu, name.as_str()),
            false => record.subject.clone(),
        },
        ..record
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
