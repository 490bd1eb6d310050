//! Text and times as the API server takes them.

use sexton_model::moment::Moment;
use sexton_model::wall::WallClock;

/// The most bytes of a note of an event: the API server refuses more.
pub(crate) const MAX_NOTE_BYTES: usize = 1_024;

/// Cuts a text to a number of bytes, and shows that it was cut.
pub(crate) fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max.saturating_sub('…'.len_utf8()));
    format!("{}…", &text[..end])
}

/// A time with seconds, as conditions have it.
pub(crate) fn seconds(wall_ns: u64) -> String {
    let at = Moment::from_ns(0);
    let text = WallClock::new(vec![(at, wall_ns)]).rfc3339(at);
    let text = text.unwrap_or_default();
    match text.split_once('.') {
        Some((whole, _)) => format!("{whole}Z"),
        None => text,
    }
}

/// A time with microseconds, as events have it.
pub(crate) fn micros(wall_ns: u64) -> String {
    let whole = seconds(wall_ns);
    let micros = wall_ns % 1_000_000_000 / 1_000;
    format!("{}.{micros:06}Z", whole.trim_end_matches('Z'))
}

/// A number that stays the same for the same text (FNV-1a), for names of events.
pub(crate) fn stable_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_api() {
        let wall_ns = 1_763_438_400_123_456_789;
        assert_eq!(seconds(wall_ns), "2025-11-18T04:00:00Z");
        assert_eq!(micros(wall_ns), "2025-11-18T04:00:00.123456Z");
    }

    #[test]
    fn a_long_text_is_cut_at_a_letter() {
        assert_eq!(cut("short", 5), "short");
        let text = cut(&"é".repeat(600), MAX_NOTE_BYTES);
        assert!(
            text.len() <= MAX_NOTE_BYTES && text.ends_with('…'),
            "{}",
            text.len()
        );
    }
}
