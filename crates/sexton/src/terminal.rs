//! What the terminal wants.

use std::io::{self, IsTerminal};

use sexton_report::Paint;

/// Colour on a terminal, unless `NO_COLOR` says otherwise (<https://no-color.org>).
pub fn paint() -> Paint {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if io::stdout().is_terminal() && !refused {
        Paint::Coloured
    } else {
        Paint::Plain
    }
}
