//! One event line:
//!
//! ```text
//! java 12688/12764 [002] 6544038.708352:     257597 cpu-clock:uppp:
//! V8 WorkerThread 25607 4794564.109216: cycles:
//! false 64414 20110.539270:      34467 cycles:u:  ffffffff9aa3c8de [unknown] ([unknown])
//! ```

use memchr::memchr;

use super::frame::FrameLine;

/// What an event line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EventLine<'a> {
    pub(super) comm: &'a [u8],
    pub(super) pid: Option<u32>,
    pub(super) tid: u32,
    pub(super) cpu: Option<u32>,
    pub(super) time_ns: u64,
    pub(super) period: Option<u64>,
    pub(super) event: &'a [u8],
    /// The only frame, when it is on the same line.
    pub(super) stack_line: Option<&'a [u8]>,
}

impl<'a> EventLine<'a> {
    /// `None` when it is no such line.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.trim_ascii_end();
        let (comm, pid, tid, rest) = thread(line)?;
        let (cpu, rest) = cpu(rest.trim_ascii_start())?;
        let rest = rest.trim_ascii_start();
        let colon = memchr(b':', rest)?;
        let time_ns = time_ns(&rest[..colon])?;
        let rest = rest[colon + 1..].trim_ascii_start();
        let (period, rest) = period(rest);
        let end = rest.iter().position(u8::is_ascii_whitespace);
        let (event, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let event = event.strip_suffix(b":")?;
        let stack_line = Some(rest.trim_ascii()).filter(|rest| FrameLine::parse(rest).is_some());
        (!event.is_empty()).then_some(Self {
            comm,
            pid,
            tid,
            cpu,
            time_ns,
            period,
            event,
            stack_line,
        })
    }
}

type Thread<'a> = (&'a [u8], Option<u32>, u32, &'a [u8]);

/// The name, the process and the thread, and what follows them. The name may hold spaces:
/// the thread is the first word of digits, as stackcollapse-perf and inferno have it.
fn thread(line: &[u8]) -> Option<Thread<'_>> {
    let mut word_start = 0;
    let mut is_number = false;
    for (at, &byte) in line.iter().enumerate() {
        match byte {
            b' ' => {
                let word = &line[word_start..at];
                if is_number && word.iter().any(u8::is_ascii_digit) && word_start > 0 {
                    let comm = line[..word_start].trim_ascii();
                    let (pid, tid) = match memchr(b'/', word) {
                        Some(slash) => (Some(id(&word[..slash])?), &word[slash + 1..]),
                        None => (None, word),
                    };
                    return Some((comm, pid, id(tid)?, &line[at..]));
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

    #[track_caller]
    fn check(line: &str, expected: (&str, Option<u32>, u32, Option<u32>, u64, Option<u64>, &str)) {
        let event = EventLine::parse(line.as_bytes()).expect("an event line");
        let text = |bytes| str::from_utf8(bytes).expect("text");
        let actual = (
            text(event.comm),
            event.pid,
            event.tid,
            event.cpu,
            event.time_ns,
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
        ] {
            assert_eq!(EventLine::parse(line.as_bytes()), None, "{line}");
        }
    }
}
