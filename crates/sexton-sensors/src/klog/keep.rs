//! Which lines are recorded: those that someone may ask for, and not a flood of the rest.
//!
//! A line that has a piece of a known wording is always recorded, whatever its level. Of the
//! others those of level warning or worse are, a few of each kind in a minute: a signature that
//! is written tomorrow finds them. This only looks for pieces; what a line means is for the judge.

use std::collections::HashMap;

use super::line::Line;

include!(concat!(env!("OUT_DIR"), "/kernel_log_pieces.rs"));

/// The least grave level that is recorded without being asked for: warning.
const WARNING: u8 = 4;

/// Lines that differ in numbers alone, recorded in one minute. The rest is counted.
const ALIKE_PER_MINUTE: u64 = 5;

/// Lines that nothing asks for, recorded in one minute.
const MAX_PER_MINUTE: u64 = 200;

/// Kinds of lines that are told apart in one minute.
const MAX_KINDS: usize = 512;

/// What tells kinds of lines apart is in the first part of them.
const KIND_BYTES: usize = 120;

const MINUTE_US: u64 = 60_000_000;

/// What was recorded in this minute of the log.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    minute: u64,
    n_kept: u64,
    kinds: HashMap<Vec<u8>, Kind>,
}

#[derive(Debug, Default)]
struct Kind {
    n_kept: u64,
    n_left_out: u64,
}

impl Keeper {
    /// Whether a line is recorded; if so, how many like it were left out since the one before.
    pub(super) fn keep(&mut self, line: &Line) -> Option<u64> {
        if is_asked_for(&line.text) {
            return Some(0);
        }
        if line.level > WARNING {
            return None;
        }
        self.turn(line.us / MINUTE_US);
        let kind = kind(&line.text);
        if self.kinds.len() >= MAX_KINDS && !self.kinds.contains_key(&kind) {
            return None;
        }
        let kind = self.kinds.entry(kind).or_default();
        if kind.n_kept >= ALIKE_PER_MINUTE || self.n_kept >= MAX_PER_MINUTE {
            kind.n_left_out += 1;
            return None;
        }
        kind.n_kept += 1;
        self.n_kept += 1;
        Some(std::mem::take(&mut kind.n_left_out))
    }

    /// Begins another minute. Kinds of which some were left out are remembered, so that the next
    /// one says so.
    fn turn(&mut self, minute: u64) {
        if minute == self.minute {
            return;
        }
        (self.minute, self.n_kept) = (minute, 0);
        self.kinds.retain(|_, kind| kind.n_left_out > 0);
        for kind in self.kinds.values_mut() {
            kind.n_kept = 0;
        }
    }
}

fn is_asked_for(text: &[u8]) -> bool {
    PIECES.iter().any(|piece| has(text, piece.as_bytes()))
}

fn has(text: &[u8], piece: &[u8]) -> bool {
    let Some((first, rest)) = piece.split_first() else {
        return true;
    };
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|byte| byte == first) {
        from += at + 1;
        if text[from..].starts_with(rest) {
            return true;
        }
    }
    false
}

/// A line without its numbers: `CPU#3 stuck for 22s` is `CPU## stuck for #s`.
fn kind(text: &[u8]) -> Vec<u8> {
    let mut kind = Vec::with_capacity(KIND_BYTES);
    for &byte in &text[..text.len().min(KIND_BYTES)] {
        let byte = if byte.is_ascii_digit() { b'#' } else { byte };
        if byte != b'#' || kind.last() != Some(&b'#') {
            kind.push(byte);
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(level: u8, second: u64, text: &str) -> Line {
        let record = format!("{level},1,{},-;{text}", second * 1_000_000);
        Line::parse(record.as_bytes()).expect("it is a record")
    }

    #[test]
    fn what_signatures_ask_for_and_what_is_grave_is_kept() {
        let mut keeper = Keeper::default();
        let mut check = |level, text, expected| {
            assert_eq!(keeper.keep(&line(level, 1, text)), expected, "{text}");
        };
        check(6, "r8169 0000:03:00.0 enp3s0: Link is Down", Some(0));
        check(6, "veth0: entered promiscuous mode", None);
        check(5, "audit: backlog limit exceeded", None);
        check(4, "frobnicator 3: the flux is out of bounds", Some(0));
        check(0, "everything is on fire", Some(0));
    }

    #[test]
    fn a_flood_is_counted_and_hides_no_other_line() {
        let mut keeper = Keeper::default();
        let flood = |n: u64| format!("frob {n}: out of flux");
        let kept = (0..100).filter(|n| keeper.keep(&line(4, 1, &flood(*n))).is_some());
        assert_eq!(kept.count(), 5);
        assert_eq!(keeper.keep(&line(3, 2, "another trouble")), Some(0));
        // In the next minute the flood says how much of it is missing.
        assert_eq!(keeper.keep(&line(4, 61, &flood(7))), Some(95));
        assert_eq!(keeper.keep(&line(4, 62, &flood(8))), Some(0));
        // What is asked for is never left out.
        let down = "r8169 0000:03:00.0 enp3s0: Link is Down";
        assert!((0..500).all(|_| keeper.keep(&line(6, 63, down)) == Some(0)));
    }

    #[test]
    fn many_kinds_are_bounded() {
        let mut keeper = Keeper::default();
        let text = |n: u32| "x".repeat(n as usize % 97 + 1) + &"y".repeat(n as usize / 97);
        let kept = (0..5_000).filter(|n| keeper.keep(&line(4, 1, &text(*n))).is_some());
        assert_eq!(kept.count() as u64, MAX_PER_MINUTE);
        assert!(keeper.kinds.len() <= MAX_KINDS);
    }
}
