//! What the terminal wants: its width, colour, and a pager for what is longer than its screen.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

use anyhow::Result;
use rustix::termios::tcgetwinsize;
use sexton_report::text::WIDTH;
use sexton_report::{Canvas, Paint};

/// What `less` does unless told otherwise, as under git: quit if one screen is enough, keep
/// colours, leave the text on the screen.
const LESS: &str = "FRX";

/// Narrower than this nothing is legible.
const NARROWEST: usize = 40;

/// Colour on a terminal, unless `NO_COLOR` says otherwise (<https://no-color.org>).
pub fn paint() -> Paint {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if io::stdout().is_terminal() && !refused {
        Paint::Coloured
    } else {
        Paint::Plain
    }
}

/// Width and colour of standard output: 80 columns, fewer on a narrow terminal.
pub fn canvas() -> Canvas {
    let columns = size().map_or(WIDTH, |(columns, _)| columns);
    Canvas {
        width: columns.clamp(NARROWEST, WIDTH),
        paint: paint(),
    }
}

/// Writes text to standard output; through a pager when that is a terminal with fewer lines.
pub fn show(text: &[u8], with_pager: bool) -> Result<()> {
    let n_lines = text.iter().filter(|byte| **byte == b'\n').count();
    let is_long = size().is_some_and(|(_, rows)| n_lines >= rows);
    let pager = pager().filter(|_| with_pager && is_long);
    if let Some(pager) = pager
        && page(&pager, text)
    {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(text)?;
    Ok(out.flush()?)
}

/// Columns and rows of standard output, when that is a terminal which knows them.
fn size() -> Option<(usize, usize)> {
    let out = io::stdout();
    let size = out.is_terminal().then(|| tcgetwinsize(&out).ok())??;
    let known = size.ws_col > 0 && size.ws_row > 0;
    known.then_some((usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// The pager that the user wants, if any.
fn pager() -> Option<String> {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".into());
    (!pager.is_empty() && pager != "cat").then_some(pager)
}

/// Whether the pager took it. One that ends early has shown what its user wanted to see.
fn page(pager: &str, text: &[u8]) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", LESS);
    }
    // sexton runs as root: no shell from within the pager.
    command.env("LESSSECURE", "1");
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(text);
    }
    const NOT_FOUND: i32 = 127;
    let status = child.wait();
    status.is_ok_and(|status| status.code() != Some(NOT_FOUND))
}
