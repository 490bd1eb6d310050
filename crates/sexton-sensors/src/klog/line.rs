//! One record of `/dev/kmsg`.
//!
//! `6,339,5140900,-,caller=T1;text` and then lines that begin with a space: more of the
//! same for machines, `KEY=value`. Bytes that are not plain are written `\xNN`.

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// 0 is the kernel; what a program writes has another number, and cannot have 0.
    pub(super) facility: u64,
    /// 0 (emergency) to 7 (debug).
    pub(super) level: u8,
    /// The record's number since boot. syslog(2) has none.
    pub(super) seq: Option<u64>,
    /// When it was written, on the clock of the log.
    pub(super) us: u64,
    /// The text, as it was before it was escaped.
    pub(super) text: Vec<u8>,
    /// The device that the kernel says it is about, by its address on its bus.
    pub(super) bus: Option<Vec<u8>>,
}

const LEVELS: [&str; 8] = [
    "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug",
];

impl Line {
    /// Reads a record. `None` when it makes no sense.
    pub(super) fn parse(record: &[u8]) -> Option<Self> {
        let end = record.iter().position(|&byte| byte == b';')?;
        let (head, body) = (&record[..end], &record[end + 1..]);
        let mut fields = head.split(|&byte| byte == b',');
        let priority = number(fields.next()?)?;
        let seq = number(fields.next()?)?;
        let us = number(fields.next()?)?;
        let mut lines = body.split(|&byte| byte == b'\n');
        let text = unescape(lines.next().unwrap_or_default());
        let bus = lines.find_map(|line| line.strip_prefix(b" DEVICE=+"));
        Some(Self {
            facility: priority >> 3,
            level: (priority & 7) as u8,
            seq: Some(seq),
            us,
            text,
            bus: bus.map(|device| unescape(after_subsystem(device))),
        })
    }

    /// Who wrote it.
    pub(super) fn written_by(&self) -> &'static str {
        if self.facility == 0 {
            "kernel"
        } else {
            "userspace"
        }
    }

    /// The name of its level.
    pub(super) fn level_name(&self) -> &'static str {
        LEVELS.get(usize::from(self.level)).copied().unwrap_or("")
    }
}

/// `pci:0000:00:05.0` without the subsystem.
fn after_subsystem(device: &[u8]) -> &[u8] {
    let colon = device.iter().position(|&byte| byte == b':');
    colon.map_or(device, |at| &device[at + 1..])
}

pub(super) fn number(digits: &[u8]) -> Option<u64> {
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let digits = plain.then(|| str::from_utf8(digits).ok()).flatten()?;
    digits.parse().ok()
}

fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = match (first, tail) {
            (b'\\', [b'x', high, low, ..]) => nibble(*high).zip(nibble(*low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                bytes.push(high << 4 | low);
                rest = &tail[3..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    bytes
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(record: &[u8], expected: Option<Line>) {
        assert_eq!(Line::parse(record), expected);
    }

    fn line(facility: u64, level: u8, seq: u64, us: u64, text: &[u8]) -> Option<Line> {
        Some(Line {
            facility,
            level,
            seq: Some(seq),
            us,
            text: text.to_vec(),
            bus: None,
        })
    }

    #[test]
    fn what_the_kernel_writes_is_read() {
        check(
            b"5,0,0,-;Linux version 6.1\n",
            line(0, 5, 0, 0, b"Linux version 6.1"),
        );
        check(
            b"3,712,9134775812,-,caller=T88;ena 0000:00:05.0 ens5: Trigger reset is on\n SUBSYSTEM=pci\n DEVICE=+pci:0000:00:05.0\n",
            line(
                0,
                3,
                712,
                9_134_775_812,
                b"ena 0000:00:05.0 ens5: Trigger reset is on",
            )
            .map(|line| Line {
                bus: Some(b"0000:00:05.0".to_vec()),
                ..line
            }),
        );
    }

    #[test]
    fn what_a_program_writes_is_told_apart() {
        check(b"12,9,8,-;hello\n", line(1, 4, 9, 8, b"hello"));
        check(
            b"30,9,8,c;systemd[1]: x",
            line(3, 6, 9, 8, b"systemd[1]: x"),
        );
    }

    #[test]
    fn escaped_bytes_come_back() {
        check(
            br"6,1,2,-;two\x0alines\x5cx41 \xZZ \x4",
            line(0, 6, 1, 2, b"two\nlines\\x41 \\xZZ \\x4"),
        );
        check(b"6,1,2,-;a;b", line(0, 6, 1, 2, b"a;b"));
        check(b"6,1,2,-;", line(0, 6, 1, 2, b""));
    }

    #[test]
    fn nonsense_is_refused() {
        for record in [
            &b""[..],
            b"hello",
            b";",
            b"6,1;x",
            b"6,-1,2,-;x",
            b"+6,1,2;x",
            b"6,99999999999999999999,2,-;x",
        ] {
            check(record, None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(record in prop::collection::vec(any::<u8>(), 0..200)) {
            Line::parse(&record);
        }

        #[test]
        fn any_body_is_taken(body in prop::collection::vec(prop::sample::select(&b"\\x0aF;\n =+:D"[..]), 0..60)) {
            let record = [b"6,1,2,-;", body.as_slice()].concat();
            prop_assert!(Line::parse(&record).is_some());
        }
    }
}
