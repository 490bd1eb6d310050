//! Small helpers to write for people, in 80 columns.

use std::io::{self, Write};

pub use sexton_model::figures::{bytes, count, number};

/// Text answers fit this many columns, unless the terminal has fewer.
pub const WIDTH: usize = 80;

/// A count, or a question mark where it is not known.
pub(crate) fn known(n: Option<u64>) -> String {
    n.map_or_else(|| "?".into(), number)
}

/// A stretch of time in its two largest units: `3d 4h`.
pub fn duration(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let Some(first) = UNITS.iter().position(|(size, _)| seconds >= *size) else {
        return "0s".into();
    };
    let (size, unit) = UNITS[first];
    let mut text = format!("{}{unit}", seconds / size);
    if let Some((next, unit)) = UNITS.get(first + 1) {
        let rest = seconds % size / next;
        if rest > 0 {
            text.push_str(&format!(" {rest}{unit}"));
        }
    }
    text
}

/// Writes a paragraph wrapped to the width, with `first` before its first line
/// and as many blanks before the others.
pub(crate) fn paragraph(out: &mut dyn Write, first: &str, text: &str) -> io::Result<()> {
    paragraph_in(out, WIDTH, first, text)
}

/// The same, for another width.
pub(crate) fn paragraph_in(
    out: &mut dyn Write,
    width: usize,
    first: &str,
    text: &str,
) -> io::Result<()> {
    let indent = first.chars().count();
    let lines = wrap(text, width.saturating_sub(indent));
    if lines.is_empty() {
        return writeln!(out, "{}", first.trim_end());
    }
    for (i, line) in lines.iter().enumerate() {
        match i {
            0 => writeln!(out, "{first}{line}")?,
            _ => writeln!(out, "{}{line}", " ".repeat(indent))?,
        }
    }
    Ok(())
}

/// Breaks a text between words. Only a word that is too long by itself is longer than the
/// width.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Cuts the end off a text that is too long for its place.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let start: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

/// Cuts the middle out of a text that is too long for its place.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    let len = text.chars().count();
    if len <= width {
        return text.to_owned();
    }
    let tail = width * 2 / 3;
    let head = width.saturating_sub(tail + 1);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(len - tail).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_figures() {
        assert_eq!(duration(0), "0s");
        assert_eq!(duration(59), "59s");
        assert_eq!(duration(3600), "1h");
        assert_eq!(duration(90_061), "1d 1h");
    }

    #[test]
    fn paragraphs_keep_the_width() {
        let mut out = Vec::new();
        paragraph(&mut out, "  - ", &"word ".repeat(40)).expect("a vector takes all");
        let text = String::from_utf8(out).expect("text");
        assert!(
            text.lines()
                .all(|line| line.chars().count() <= WIDTH && line.starts_with("  "))
        );
        assert_eq!(text.matches("word").count(), 40);
    }

    #[test]
    fn long_texts_keep_both_ends() {
        assert_eq!(shorten("/a/b", 10), "/a/b");
        let short = shorten("/very/long/path/to/a/file.log", 15);
        assert_eq!(short.chars().count(), 15);
        assert!(short.starts_with("/ver") && short.ends_with("file.log"));
    }
}
