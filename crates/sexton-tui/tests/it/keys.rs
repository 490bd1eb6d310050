//! Keys and what they ask for.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sexton_tui::{Action, Flow, View, action};

fn check(code: KeyCode, modifiers: KeyModifiers, expected: Option<Action>) {
    assert_eq!(action(KeyEvent::new(code, modifiers)), expected, "{code:?}");
}

#[test]
fn keys_ask_for_what_the_bottom_line_says() {
    for (code, expected) in [
        (KeyCode::Char('q'), Action::Quit),
        (KeyCode::Char('p'), Action::Pause),
        (KeyCode::Left, Action::Back),
        (KeyCode::Right, Action::On),
        (KeyCode::Char('+'), Action::Longer),
        (KeyCode::Char('-'), Action::Shorter),
        (KeyCode::Tab, Action::Next),
        (KeyCode::Char('?'), Action::Help),
    ] {
        check(code, KeyModifiers::NONE, Some(expected));
    }
    check(
        KeyCode::Char('c'),
        KeyModifiers::CONTROL,
        Some(Action::Quit),
    );
    check(KeyCode::Char('q'), KeyModifiers::CONTROL, None);
    check(KeyCode::Char('x'), KeyModifiers::NONE, None);
}

#[test]
fn only_quit_ends_the_view() {
    let mut view = View::live();
    assert_eq!(view.act(Action::Leave), Flow::Stay);
    assert_eq!(view.act(Action::Quit), Flow::Quit);
}
