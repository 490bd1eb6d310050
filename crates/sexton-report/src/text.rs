//! Small helpers to write for people, in 80 columns.

use std::io::{self, Write};

/// Text answers fit this many columns, unless the terminal has fewer.
pub const WIDTH: usize = 80;

/// `68680` as `68,680`.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count, or a question mark where it is not known.
pub(crate) fn known(n: Option<u64>) -> String {
    n.map_or_else(|| "?".into(), number)
}

/// `1 cgroup`, `2 cgroups`.
pub fn count(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", number(n), if n == 1 { "" } else { "s" })
}

/// Bytes in the largest unit that leaves at least one: `1.4 GiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || value >= 100.0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
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
    fn numbers_are_grouped() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (68_680, "68,680"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(number(n), text);
        }
    }

    #[test]
    fn sizes_and_times_have_two_figures() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(1 << 40), "1.0 TiB");
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
