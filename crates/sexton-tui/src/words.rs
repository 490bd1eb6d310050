//! Words and figures that fit their place.

use std::time::Duration;

use ratatui::text::Span;
use sexton_model::fact::Measure;
use sexton_model::moment::Moment;
use sexton_report::text;

use crate::history::Window;
use crate::names::Shown;
use crate::view::View;

/// Said of what no sensor has told.
pub(crate) const NOT_SEEN: &str = "not seen";

/// The eighths of a block, from none to all.
const BLOCKS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// A share as a block; what was not seen is a dot, not the lowest block.
pub(crate) fn block(share: Option<f64>) -> &'static str {
    let Some(share) = share else { return "·" };
    let place = (share.clamp(0.0, 1.0) * BLOCKS.len() as f64) as usize;
    BLOCKS[place.min(BLOCKS.len() - 1)]
}

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// A text in exactly so many columns: cut with an ellipsis, or filled with blanks.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let mut shown = clip(text, columns);
    let rest = columns.saturating_sub(width(&shown));
    shown.extend(std::iter::repeat_n(' ', rest));
    shown
}

/// A text in at most so many columns.
pub(crate) fn clip(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut taken = 1;
    for c in text.chars() {
        taken += width(c.encode_utf8(&mut [0; 4]));
        if taken > columns {
            break;
        }
        shown.push(c);
    }
    if columns > 0 {
        shown.push('…');
    }
    shown
}

/// A text in lines of at most so many columns, broken between words.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(clip(word, columns)),
        }
    }
    lines
}

/// `0.973` as `97%`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// Nanoseconds for people: `0 ms`, `640 µs`, `12 ms`, `4.1 s`.
pub(crate) fn time(ns: f64) -> String {
    match ns {
        _ if ns < 1.0 => "0 ms".into(),
        _ if ns < 1e6 => format!("{:.0} µs", (ns / 1e3).ceil()),
        _ if ns < 1e9 => format!("{:.0} ms", ns / 1e6),
        _ if ns < 1e11 => format!("{:.1} s", ns / 1e9),
        _ => text::duration((ns / 1e9) as u64),
    }
}

/// `5m`.
pub(crate) fn stretch(time: Duration) -> String {
    text::duration(time.as_secs())
}

/// A count that is kept as a float.
pub(crate) fn count(value: f64) -> String {
    text::number(value.round().max(0.0) as u64)
}

/// A value in its measure.
pub(crate) fn measured(value: f64, measure: Measure) -> String {
    match measure {
        Measure::Count | Measure::None => count(value),
        Measure::Bytes => text::bytes(value.max(0.0) as u64),
        Measure::Nanoseconds => time(value),
        Measure::Seconds => time(value * 1e9),
        Measure::Ratio => percent(value),
    }
}

/// The time of day of a moment in UTC or, while no sensor told it, the time since boot.
pub(crate) fn clock(view: &View, at: Moment) -> String {
    let seconds = wall_ns(view, at).unwrap_or(at.as_ns()) / 1_000_000_000;
    let hours = match wall_ns(view, at) {
        Some(_) => seconds / 3600 % 24,
        None => seconds / 3600,
    };
    format!("{hours:02}:{:02}:{:02}", seconds / 60 % 60, seconds % 60)
}

/// What the hours of [`clock`] are counted from.
pub(crate) fn clock_name(view: &View, at: Moment) -> &'static str {
    if wall_ns(view, at).is_some() {
        "UTC"
    } else {
        "since boot"
    }
}

/// What the wall clock said at a moment, by its last word before or its first one after.
fn wall_ns(view: &View, at: Moment) -> Option<u64> {
    let told = view.history.series(Shown::WallClock);
    let before = Window {
        from: Moment::default(),
        to: at,
    };
    let after = Window {
        from: at,
        to: Moment::from_ns(u64::MAX),
    };
    let cell = told.last(before).or_else(|| told.within(after).next())?;
    let then = cell.last as u64;
    Some(
        then.saturating_add(at.as_ns())
            .saturating_sub(cell.at.as_ns()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_take_the_columns_they_are_given() {
        for (text, columns, shown) in [
            ("eth0", 6, "eth0  "),
            ("system.slice", 6, "syste…"),
            ("作業", 3, "作…"),
            ("作業", 2, "… "),
            ("a", 0, ""),
        ] {
            assert_eq!(fit(text, columns), shown, "{text:?} in {columns}");
        }
        assert_eq!(wrap("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrap("enormous", 4), ["eno…"]);
    }

    #[test]
    fn unseen_is_not_the_lowest_block() {
        assert_eq!(block(None), "·");
        let blocks: String = [0.0, 0.13, 0.5, 0.99, 1.0, 7.0]
            .map(|share| block(Some(share)))
            .concat();
        assert_eq!(blocks, "▁▂▅███");
    }

    #[test]
    fn times_are_short() {
        for (ns, shown) in [
            (0.0, "0 ms"),
            (500.0, "1 µs"),
            (12e6, "12 ms"),
            (4.12e9, "4.1 s"),
            (300e9, "5m"),
        ] {
            assert_eq!(time(ns), shown);
        }
    }
}
