//! The kernel's log where `/dev/kmsg` cannot be opened: by syslog(2), which gives its newest
//! lines as text and has no place to go on from.
//!
//! So it is read every ten seconds, and what is new is what follows the last lines of the read
//! before. Lines have a time and no number: how many were overwritten between two reads is not
//! known, and the device that a line is about has to be read from its text.

use std::time::Duration;

use sexton_host::{HostError, KernelLog, clock};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::Subject;

use super::NAME;
use super::line::{Line, number};

/// How often it is read.
///
/// Chosen: each read copies text in the kernel, while it holds the log. A buffer of 256 kB is
/// full after ten seconds of 250 lines each.
const EVERY: Duration = Duration::from_secs(10);

/// What is read first; all of it only where the last lines are not in that.
const TAIL_BYTES: usize = 32 * 1024;

/// Lines that the place is recognized by. With their times they are like no others.
const N_LAST: usize = 8;

/// The log, and where the last read of it ended.
pub(super) struct BySyslog {
    log: KernelLog,
    place: Place,
    read: Option<Moment>,
}

impl BySyslog {
    pub(super) fn new(log: KernelLog) -> Self {
        Self {
            log,
            place: Place::default(),
            read: None,
        }
    }

    /// The lines that are new, and from when on there may be more; `None` while it is too early
    /// for another read.
    pub(super) fn read_lines(&mut self, out: &mut Sink) -> Option<(Vec<Line>, Option<Moment>)> {
        let now = clock::now();
        if self.read.is_some_and(|read| now.since(read) < EVERY) {
            return None;
        }
        self.read = Some(now);
        match self.read_new() {
            Ok(new) => {
                tell(&new, out);
                Some((new.lines, Some(now)))
            }
            Err(error) => {
                out.gap(&Subject::node(), super::read_gap(&error));
                Some((Vec::new(), None))
            }
        }
    }

    fn read_new(&mut self) -> Result<New, HostError> {
        if self.place.is_known() {
            let tail = self.log.read_last(TAIL_BYTES)?;
            let new = self.place.take(&tail);
            if !new.is_torn {
                return Ok(new);
            }
        }
        let whole = self.log.read_last(self.log.whole_bytes())?;
        let new = self.place.take(&whole);
        if new.is_torn {
            self.place.begin(&whole);
        }
        Ok(new)
    }
}

fn tell(new: &New, out: &mut Sink) {
    if new.is_torn {
        let text = "lines of the kernel's log were overwritten or cleared between two reads; \
                    how many is not known";
        let gap = Gap::new(NAME, Why::Lost(0), text)
            .with_remedy("give the log more room: boot with log_buf_len=4M");
        out.gap(&Subject::node(), gap);
    }
    if new.n_malformed > 0 {
        let text = format!("{} lines of the kernel's log have no time", new.n_malformed);
        let gap = Gap::new(NAME, Why::Malformed, text)
            .with_remedy("echo 1 > /sys/module/printk/parameters/time");
        out.gap(&Subject::node(), gap);
    }
}

/// What a read has that the one before had not.
#[derive(Debug, Default, PartialEq, Eq)]
struct New {
    lines: Vec<Line>,
    n_malformed: usize,
    /// The last lines of the read before are not there any more: all lines are new, and some
    /// may be missing.
    is_torn: bool,
}

/// The last lines of a read.
#[derive(Debug, Default)]
struct Place(Vec<Vec<u8>>);

impl Place {
    fn is_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// The lines that are new in a text. A text that does not go on from here moves nothing.
    fn take(&mut self, text: &[u8]) -> New {
        let lines = lines(text);
        let begin = match (self.is_known(), self.after_known(&lines)) {
            (false, _) => 0,
            // It was cleared, and nothing was written since.
            (true, None) if lines.is_empty() => return New::default(),
            (true, None) => {
                return New {
                    is_torn: true,
                    ..read(&lines)
                };
            }
            (true, Some(begin)) => begin,
        };
        let new = read(&lines[begin..]);
        self.begin(text);
        new
    }

    /// Goes on from the end of this text.
    fn begin(&mut self, text: &[u8]) {
        let lines = lines(text);
        let last = &lines[lines.len().saturating_sub(N_LAST)..];
        if !last.is_empty() {
            self.0 = last.iter().map(|line| line.to_vec()).collect();
        }
    }

    /// Where the lines begin that follow the known ones. Of these the first may be cut off.
    fn after_known(&self, lines: &[&[u8]]) -> Option<usize> {
        (1..=lines.len()).rev().find(|&end| {
            let n = end.min(self.0.len());
            let known = &self.0[self.0.len() - n..];
            n > 0 && lines[end - n..end] == *known
        })
    }
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    let lines = text.split(|&byte| byte == b'\n');
    lines.filter(|line| !line.is_empty()).collect()
}

fn read(lines: &[&[u8]]) -> New {
    let parsed: Vec<Line> = lines.iter().filter_map(|line| parse(line)).collect();
    New {
        n_malformed: lines.len() - parsed.len(),
        lines: parsed,
        is_torn: false,
    }
}

/// Reads `<6>[    5.140900][    T1] what happened`; who wrote it (`T1`) is there only where the
/// kernel is told to say so. The kernel begins each line of what was written with the rest, so
/// no program can make up a line of its own.
pub(super) fn parse(line: &[u8]) -> Option<Line> {
    let (priority, rest) = between(line, b'<', b'>')?;
    let priority = number(priority)?;
    let (time, rest) = between(rest, b'[', b']')?;
    let mut time = time.trim_ascii_start().split(|&byte| byte == b'.');
    let (seconds, micros) = (time.next()?, time.next()?);
    let micros = Some(micros).filter(|micros| micros.len() == 6);
    let us = number(seconds)?
        .checked_mul(1_000_000)?
        .checked_add(number(micros?)?)?;
    let caller = between(rest, b'[', b']').filter(|(caller, _)| is_caller(caller));
    let rest = caller.map_or(rest, |(_, rest)| rest);
    Some(Line {
        facility: priority >> 3,
        level: (priority & 7) as u8,
        seq: None,
        us,
        text: rest.strip_prefix(b" ")?.to_vec(),
        bus: None,
    })
}

fn between(text: &[u8], open: u8, close: u8) -> Option<(&[u8], &[u8])> {
    let rest = text.strip_prefix(&[open])?;
    let end = rest.iter().position(|&byte| byte == close)?;
    Some((&rest[..end], &rest[end + 1..]))
}

/// `T1` is a task, `C1` a core in an interrupt.
fn is_caller(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    matches!(text, [b'T' | b'C', digits @ ..] if number(digits).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(line: &str, expected: Option<(u64, u8, u64, &str)>) {
        let line = parse(line.as_bytes());
        let found = line.as_ref().map(|line| {
            let text = str::from_utf8(&line.text).expect("text");
            (line.facility, line.level, line.us, text)
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn what_the_kernel_gives_is_read() {
        check("<6>[    5.140900] x", Some((0, 6, 5_140_900, "x")));
        check(
            "<3>[123456.000007] ena 0000:00:05.0: reset",
            Some((0, 3, 123_456_000_007, "ena 0000:00:05.0: reset")),
        );
        check("<4>[    0.000000][    T0] Linux", Some((0, 4, 0, "Linux")));
        check(
            "<4>[    1.500000][   C12] irq",
            Some((0, 4, 1_500_000, "irq")),
        );
        check(
            "<4>[    1.500000] [T1] told",
            Some((0, 4, 1_500_000, "[T1] told")),
        );
        check(
            "<30>[    9.000000] systemd[1]: x",
            Some((3, 6, 9_000_000, "systemd[1]: x")),
        );
        check("<6>[    5.140900]  ", Some((0, 6, 5_140_900, " ")));
    }

    #[test]
    fn what_has_no_time_or_makes_no_sense_is_refused() {
        for line in [
            "",
            "hello",
            "<6>hello",
            "<6>[x] hello",
            "<6>[5] hello",
            "<6>[5.1] hello",
            "<6>[5.140900]hello",
            "<6>[-5.140900] hello",
            "<6>[99999999999999999999.000000] x",
            "<6>[18446744073709551615.000000] x",
            "<>[5.140900] x",
        ] {
            check(line, None);
        }
    }

    fn log(numbers: std::ops::Range<u64>) -> Vec<u8> {
        let lines = numbers.map(|n| format!("<4>[{:5}.{:06}] line {n}\n", n / 3, n % 3));
        lines.collect::<String>().into_bytes()
    }

    /// The numbers of the lines that are new, and whether some may be missing.
    fn told(place: &mut Place, text: &[u8]) -> (Vec<u64>, bool) {
        let new = place.take(text);
        let number = |line: &Line| {
            let text = str::from_utf8(&line.text).expect("text");
            text["line ".len()..].parse().expect("a number")
        };
        assert_eq!(new.n_malformed, 0);
        (new.lines.iter().map(number).collect(), new.is_torn)
    }

    #[test]
    fn each_line_is_told_once() {
        let mut place = Place::default();
        assert_eq!(told(&mut place, &log(0..5)), ((0..5).collect(), false));
        assert_eq!(told(&mut place, &log(0..5)), (vec![], false));
        assert_eq!(told(&mut place, &log(0..20)), ((5..20).collect(), false));
        // Old lines are overwritten, down to one that was seen.
        assert_eq!(told(&mut place, &log(19..40)), ((20..40).collect(), false));
        assert_eq!(told(&mut place, &log(38..41)), (vec![40], false));
    }

    #[test]
    fn lines_that_differ_in_time_alone_are_not_the_same() {
        let line = |second| format!("<4>[{second:5}.000000] again\n");
        let first = [line(1), line(2)].concat();
        let second = [line(1), line(2), line(3), line(3), line(4)].concat();
        let mut place = Place::default();
        place.take(first.as_bytes());
        assert_eq!(place.take(second.as_bytes()).lines.len(), 3);
        assert_eq!(place.take(second.as_bytes()).lines.len(), 0);
    }

    #[test]
    fn a_log_that_ran_over_is_torn_and_goes_on() {
        let mut place = Place::default();
        place.take(&log(0..10));
        assert_eq!(told(&mut place, &log(30..40)), ((30..40).collect(), true));
        place.begin(&log(30..40));
        assert_eq!(told(&mut place, &log(30..42)), (vec![40, 41], false));
    }

    #[test]
    fn a_log_that_was_cleared_goes_on() {
        let mut place = Place::default();
        place.take(&log(0..10));
        assert_eq!(told(&mut place, b""), (vec![], false));
        assert_eq!(told(&mut place, &log(10..12)), (vec![10, 11], true));
    }

    #[test]
    fn lines_without_time_are_counted() {
        let new = Place::default().take(b"<6>hello\n<6>[    1.000000] x\n");
        assert_eq!((new.lines.len(), new.n_malformed), (1, 1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..4)) {
            let mut place = Place::default();
            for text in texts {
                place.take(&text);
                place.begin(&text);
                parse(&text);
            }
        }

        /// Whatever is left of the log at each read, no line is told twice, and none is missed
        /// without a word.
        #[test]
        fn reads_are_joined(steps in prop::collection::vec((1_u64..30, 1_u64..40), 1..12)) {
            let mut place = Place::default();
            let (mut end, mut next) = (0, 0);
            for (n_new, n_kept) in steps {
                end += n_new;
                let text = log(end.saturating_sub(n_kept)..end);
                let (numbers, is_torn) = told(&mut place, &text);
                if is_torn {
                    place.begin(&text);
                } else {
                    prop_assert!(next == 0 || numbers.first().is_none_or(|first| *first == next));
                }
                prop_assert!(numbers.iter().all(|n| *n >= next));
                prop_assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
                prop_assert_eq!(numbers.last(), Some(&(end - 1)));
                next = end;
            }
        }
    }
}
