//! One event line:
//!
//! ```text
//! java 12688/12764 [002] 6544038.708352:     257597 cpu-clock:uppp:
//! V8 WorkerThread 25607 4794564.109216: cycles:
//! false 64414 20110.539270:      34467 cycles:u:  ffffffff9aa3c8de [unknown] ([unknown])
//! puma srv tp 001 1234/1240 [000] 17.250000: 1 cpu-clock:
//! java  3244 cpu-clock:
//! ```
//!
//! A thread's name may hold anything, words of digits too. The thread's number is the first
//! word of digits behind which the rest of an event line follows.

use std::ops::Range;

use memchr::memchr;

use super::frame::FrameLine;

/// The kernel's names of threads have at most 15 bytes, and so at most 8 words.
const MAX_WORDS: usize = 8;

/// What an event line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EventLine<'a> {
    pub(super) comm: &'a [u8],
    pub(super) pid: Option<u32>,
    pub(super) tid: u32,
    pub(super) cpu: Option<u32>,
    /// `None` where the text was written without times.
    pub(super) time_ns: Option<u64>,
    pub(super) period: Option<u64>,
    pub(super) event: &'a [u8],
    /// The only frame, when it is on the same line.
    pub(super) stack_line: Option<&'a [u8]>,
}

impl<'a> EventLine<'a> {
    /// `None` when it is no such line.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.trim_ascii_end();
        Self::find(line, true).or_else(|| Self::find(line, false))
    }

    fn find(line: &'a [u8], is_timed: bool) -> Option<Self> {
        let (mut word_start, mut is_number, mut n_tried) = (0, false, 0);
        for (at, &byte) in line.iter().enumerate() {
            match byte {
                b' ' => {
                    if is_number && word_start > 0 && at > word_start {
                        n_tried += 1;
                        let event = Self::of_thread(line, word_start..at, is_timed);
                        if event.is_some() || n_tried > MAX_WORDS {
                            return event;
                        }
                    }
                    word_start = at + 1;
                    is_number = true;
                }
                b'/' | b'-' | b'0'..=b'9' => {}
                _ => is_number = false,
            }
        }
        None
    }

    /// The line, if this word is the thread's number.
    fn of_thread(line: &'a [u8], word: Range<usize>, is_timed: bool) -> Option<Self> {
        let (comm, behind) = (&line[..word.start], &line[word.end..]);
        let word = &line[word];
        let (pid, tid) = match memchr(b'/', word) {
            Some(slash) => (Some(id(&word[..slash])?), &word[slash + 1..]),
            None => (None, word),
        };
        let tid = id(tid)?;
        let (cpu, rest) = cpu(behind.trim_ascii_start())?;
        let mut rest = rest.trim_ascii_start();
        let mut at = None;
        if is_timed {
            let colon = memchr(b':', rest)?;
            at = Some(time_ns(&rest[..colon])?);
            rest = rest[colon + 1..].trim_ascii_start();
        }
        let is_tight = !is_timed && cpu.is_none() && is_tight(behind);
        let (period, rest) = if is_tight { (None, rest) } else { period(rest) };
        let end = rest.iter().position(u8::is_ascii_whitespace);
        let (event, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let event = event.strip_suffix(b":")?;
        let rest = rest.trim_ascii();
        let is_frame = FrameLine::parse(rest).is_some();
        // Only its name tells an event without a time from other text. What follows it is
        // nothing, a frame, or the fields of a tracepoint, whose name has two parts.
        let is_name = event.first().is_some_and(u8::is_ascii_alphabetic);
        let is_alone = rest.is_empty() || is_frame || event.contains(&b':');
        if event.is_empty() || !(is_timed || (is_name && is_alone)) {
            return None;
        }
        Some(Self {
            comm: comm.trim_ascii(),
            pid,
            tid,
            cpu,
            time_ns: at,
            period,
            event,
            stack_line: is_frame.then_some(rest),
        })
    }
}

/// Whether a number stands closer than perf puts a period, which it writes 10 places wide: a
/// word of digits before the thread's number is part of the name.
fn is_tight(behind: &[u8]) -> bool {
    let is_number = |b: &&u8| b.is_ascii_digit() || **b == b' ';
    let end = behind.iter().position(|b| !is_number(&b)).unwrap_or(0);
    behind[..end].trim_ascii_end().len() <= 10
}

/// `[002]`, if it is there.
fn cpu(rest: &[u8]) -> Option<(Option<u32>, &[u8])> {
    let Some(inside) = rest.strip_prefix(b"[") else {
        return Some((None, rest));
    };
    let end = memchr(b']', inside)?;
    Some((Some(number(&inside[..end])?), &inside[end + 1..]))
}

/// `6544038.708352`, with six or nine digits behind the point.
fn time_ns(text: &[u8]) -> Option<u64> {
    let point = memchr(b'.', text)?;
    let (seconds, fraction) = (&text[..point], &text[point + 1..]);
    let n_digits = u32::try_from(fraction.len())
        .ok()
        .filter(|n| (1..=9).contains(n))?;
    let fraction = u64::from(number(fraction)?) * 10u64.pow(9 - n_digits);
    let seconds: u64 = str::from_utf8(seconds).ok()?.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// The number in front of the event, if there is one.
fn period(rest: &[u8]) -> (Option<u64>, &[u8]) {
    let end = rest.iter().position(|b| !b.is_ascii_digit());
    match end {
        Some(end) if end > 0 && rest[end] == b' ' => {
            let period = str::from_utf8(&rest[..end])
                .ok()
                .and_then(|n| n.parse().ok());
            (period, rest[end..].trim_ascii_start())
        }
        _ => (None, rest),
    }
}

/// A process or a thread; one that has ended is -1.
fn id(text: &[u8]) -> Option<u32> {
    if text == b"-1" {
        Some(u32::MAX)
    } else {
        number(text)
    }
}

fn number(digits: &[u8]) -> Option<u32> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    str::from_utf8(digits)
        .ok()
        .filter(|_| is_number)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, process, thread, core, time, period, event.
    type Expected<'a> = (
        &'a str,
        Option<u32>,
        u32,
        Option<u32>,
        u64,
        Option<u64>,
        &'a str,
    );

    #[track_caller]
    fn check(line: &str, expected: Expected<'_>) {
        let event = EventLine::parse(line.as_bytes()).expect("an event line");
        let text = |bytes| str::from_utf8(bytes).expect("text");
        let actual = (
            text(event.comm),
            event.pid,
            event.tid,
            event.cpu,
            event.time_ns.unwrap_or(0),
            event.period,
            text(event.event),
        );
        assert_eq!(actual, expected);
    }

    #[test]
    fn every_shape_is_read() {
        check(
            "java 12688/12764 [002] 6544038.708352:     257597 cpu-clock:uppp: ",
            (
                "java",
                Some(12688),
                12764,
                Some(2),
                6_544_038_708_352_000,
                Some(257_597),
                "cpu-clock:uppp",
            ),
        );
        check(
            "V8 WorkerThread 25607 4794564.109216: cycles:",
            (
                "V8 WorkerThread",
                None,
                25607,
                None,
                4_794_564_109_216_000,
                None,
                "cycles",
            ),
        );
        check(
            "     swapper     0 [011]    72.176760123:          1 sched:sched_switch: prev_comm=a",
            (
                "swapper",
                None,
                0,
                Some(11),
                72_176_760_123,
                Some(1),
                "sched:sched_switch",
            ),
        );
        check(
            "            :-1    -1/-1    [000]     1.5: dummy:HG:",
            (
                ":-1",
                Some(u32::MAX),
                u32::MAX,
                Some(0),
                1_500_000_000,
                None,
                "dummy:HG",
            ),
        );
    }

    #[test]
    fn names_may_hold_words_of_digits() {
        for name in [
            "puma srv tp 001",
            "Job.Worker 3",
            "12",
            "1 2 3",
            "4/5 x",
            "a 1 [000] b",
            "-1 7.5",
            "a 1 2.5",
            "a 1 b: c",
        ] {
            let line = format!("{name:>16} 1234/1240 [001] 17.25:     250 cpu-clock:u: ");
            let (time, period) = (17_250_000_000, Some(250));
            check(
                &line,
                (name, Some(1234), 1240, Some(1), time, period, "cpu-clock:u"),
            );
            let line = format!("{name} 1240 cpu-clock: ");
            check(&line, (name, None, 1240, None, 0, None, "cpu-clock"));
            let line = format!("{name} 1240       7000 cpu-clock: ");
            check(&line, (name, None, 1240, None, 0, Some(7000), "cpu-clock"));
        }
    }

    #[test]
    fn a_frame_on_the_event_line_is_its_stack() {
        let line = b"false 64414 20110.539270:      34467 cycles:u:  ffffffff9aa3c8de [unknown] ([unknown])";
        let event = EventLine::parse(line).expect("an event line");
        assert_eq!(
            event.stack_line,
            Some(&b"ffffffff9aa3c8de [unknown] ([unknown])"[..])
        );
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "",
            "main;foo 12",
            "\tffffffff8162f4aa kmem_cache_free+0x5a ([kernel.kallsyms])",
            "comm 12 [x] 1.5: cycles:",
            "comm 12 1.5.6: cycles:",
            "comm 99999999999 1.5: cycles:",
            "comm 12 1.5: cycles",
            "comm 12 cycles",
            "main;foo 12 bar: 5",
        ] {
            assert_eq!(EventLine::parse(line.as_bytes()), None, "{line}");
        }
    }
}
