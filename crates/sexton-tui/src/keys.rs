//! Keys and what they do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// End the view.
    Quit,
    /// Hold a live view, or let it go on.
    Pause,
    /// Step back in time; a live view is held.
    Back,
    /// Step on in time.
    On,
    /// Go to the first moment that is kept.
    First,
    /// Go to the last moment, and follow it.
    Last,
    /// Look at more time at once.
    Longer,
    /// Look at less time at once.
    Shorter,
    /// Turn to the next panel.
    Next,
    /// Turn to the panel before.
    Previous,
    /// Show the panel in focus alone, or all of them again.
    Zoom,
    /// Scroll the panel in focus down.
    Down,
    /// Scroll the panel in focus up.
    Up,
    /// Show or hide the help.
    Help,
    /// Leave the help, or the panel that is shown alone.
    Leave,
}

/// A key as it is shown: its name, a word for the bottom line (none when it is only in
/// the help), and a sentence.
pub(crate) const KEYS: &[(&str, &str, &str)] = &[
    ("q", "quit", "quit"),
    ("p", "pause", "hold a live view, or let it go on"),
    ("←→", "time", "step back and on in time"),
    ("+-", "window", "look at more or less time at once"),
    ("tab", "panel", "turn to the next panel"),
    ("enter", "zoom", "show this panel alone, or all again"),
    ("↑↓", "", "scroll this panel"),
    ("home end", "", "go to the first or the newest moment"),
    ("?", "help", "show or hide this help"),
];

/// What a key asks for; `None` when it means nothing here.
pub fn action(key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        // In raw mode the terminal no longer makes a signal of it.
        return (key.code == KeyCode::Char('c')).then_some(Action::Quit);
    }
    Some(match key.code {
        KeyCode::Char('q') => Action::Quit,
        KeyCode::Char('p' | ' ') => Action::Pause,
        KeyCode::Left | KeyCode::Char('h') => Action::Back,
        KeyCode::Right | KeyCode::Char('l') => Action::On,
        KeyCode::Home => Action::First,
        KeyCode::End => Action::Last,
        KeyCode::Char('+' | '=') => Action::Longer,
        KeyCode::Char('-') => Action::Shorter,
        KeyCode::Tab => Action::Next,
        KeyCode::BackTab => Action::Previous,
        KeyCode::Enter => Action::Zoom,
        KeyCode::Down | KeyCode::Char('j') => Action::Down,
        KeyCode::Up | KeyCode::Char('k') => Action::Up,
        KeyCode::Char('?') => Action::Help,
        KeyCode::Esc => Action::Leave,
        _ => return None,
    })
}
