//! The table of `/proc/diskstats`: see Documentation/admin-guide/iostats.rst.

use std::time::Duration;

use sexton_model::text::escape;

/// Sectors have this size there, whatever the device has.
const SECTOR: u64 = 512;

/// What a disk has done since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) completed: u64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    pub(super) in_flight: u64,
    /// Time of all requests together.
    request_ms: u64,
    /// Time in which it had at least one.
    busy_ms: u64,
    /// Requests that it had, times how long.
    weighted_ms: u64,
}

/// What it did in an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Change {
    pub(super) busy: f64,
    pub(super) queue: f64,
    pub(super) completed: u64,
    /// Of a request that was completed, on average.
    pub(super) latency: Option<Duration>,
}

impl Counters {
    pub(super) fn is_used(&self) -> bool {
        self.completed > 0 || self.in_flight > 0
    }

    /// `None` when no time passed or the counters began anew.
    pub(super) fn since(&self, before: &Self, within: Duration) -> Option<Change> {
        let ms = within.as_secs_f64() * 1000.0;
        let busy_ms = self.busy_ms.checked_sub(before.busy_ms)?;
        let weighted_ms = self.weighted_ms.checked_sub(before.weighted_ms)?;
        let completed = self.completed.checked_sub(before.completed)?;
        let request_ms = self.request_ms.checked_sub(before.request_ms)?;
        let latency = |n: u64| Duration::from_secs_f64(request_ms as f64 / n as f64 / 1000.0);
        (ms > 0.0).then(|| Change {
            // The clock of the poll and that of the counter are read a moment apart.
            busy: (busy_ms as f64 / ms).min(1.0),
            queue: weighted_ms as f64 / ms,
            completed,
            latency: (completed > 0).then(|| latency(completed)),
        })
    }
}

/// Names and counters of all lines that make sense, partitions too.
pub(super) fn parse(text: &str) -> Vec<(String, Counters)> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<(String, Counters)> {
    let mut fields = line.split_ascii_whitespace().skip(2);
    let name = fields.next()?;
    let n: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    // Discards and flushes (4.18, 5.5) follow these eleven.
    let [
        reads,
        _,
        sectors_read,
        read_ms,
        writes,
        _,
        sectors_written,
        write_ms,
        in_flight,
        busy_ms,
        weighted_ms,
        ..,
    ] = n[..]
    else {
        return None;
    };
    Some((
        escape(name.as_bytes()),
        Counters {
            completed: reads.saturating_add(writes),
            read_bytes: sectors_read.saturating_mul(SECTOR),
            written_bytes: sectors_written.saturating_mul(SECTOR),
            in_flight,
            request_ms: read_ms.saturating_add(write_ms),
            busy_ms,
            weighted_ms,
        },
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINE: &str = " 254 0 vda 100 5 2000 400 50 9 4000 600 3 800 1000 20 5 12 2 8 4\n";

    #[test]
    fn a_line_of_any_kernel() {
        let disks = parse(&format!(
            "{LINE} 7 0 loop0 1 2 3\n 8 0 sda 0 0 0 0 0 0 0 0 0 0 0\n"
        ));
        let names: Vec<&str> = disks.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["vda", "sda"]);
        let vda = disks[0].1;
        assert_eq!(
            (vda.completed, vda.read_bytes, vda.in_flight),
            (150, 1_024_000, 3)
        );
        assert!(vda.is_used() && !disks[1].1.is_used());
    }

    #[test]
    fn busy_queue_and_latency_of_an_interval() {
        let before = parse(LINE)[0].1;
        let later = " 254 0 vda 110 5 2000 900 60 9 4000 1100 4 1700 11000\n";
        let change = parse(later)[0].1.since(&before, Duration::from_secs(1));
        let change = change.expect("time passed");
        assert!((change.busy - 0.9).abs() < 1e-9 && (change.queue - 10.0).abs() < 1e-9);
        assert_eq!(change.completed, 20);
        assert_eq!(change.latency, Some(Duration::from_millis(50)));
        let back = before.since(&parse(later)[0].1, Duration::from_secs(1));
        assert_eq!(back, None, "it began anew");
    }

    proptest! {
        #[test]
        fn any_text_does(a: String, ns: u64) {
            for (_, disk) in parse(&a) {
                disk.since(&Counters::default(), Duration::from_nanos(ns));
            }
        }
    }
}
