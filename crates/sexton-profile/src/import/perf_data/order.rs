//! Puts records into the order of their times.
//!
//! Each CPU has a buffer of its own, and perf empties one after the other. After each round
//! over all of them it writes a mark: what comes after the next mark is later than all that
//! came before this one. So records are kept for two rounds.

/// Records that wait take at most this much; then half of them go on in the order known so
/// far. perf's own buffers are some megabytes.
const MAX_WAITING: usize = 128 << 20;

/// A record that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) time: u64,
    at: usize,
    len: u32,
}

/// Records that wait for those before them.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Vec<Waiting>,
    bytes: Vec<u8>,
    /// The latest time that was seen, now and at the last mark.
    latest: u64,
    limit: u64,
    /// Room that is used again.
    spare: Due,
}

/// Records that are due, in order.
#[derive(Debug, Default)]
pub(super) struct Due {
    records: Vec<Waiting>,
    bytes: Vec<u8>,
}

impl Due {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.bytes.clear();
    }

    /// Adds those that are due next; returns room that is no longer needed.
    pub(super) fn append(&mut self, next: Self) -> Self {
        if self.is_empty() {
            return std::mem::replace(self, next);
        }
        for record in &next.records {
            let end = record.at + record.len as usize;
            let at = self.bytes.len();
            self.bytes.extend_from_slice(&next.bytes[record.at..end]);
            self.records.push(Waiting { at, ..*record });
        }
        next
    }

    /// The time of the record at this place.
    pub(super) fn time_at(&self, at: usize) -> Option<u64> {
        Some(self.records.get(at)?.time)
    }

    /// The record at this place.
    pub(super) fn record_at(&self, at: usize) -> Option<&[u8]> {
        let record = self.records.get(at)?;
        self.bytes.get(record.at..record.at + record.len as usize)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.records.iter().map(|record| {
            let end = record.at + record.len as usize;
            (record.time, &self.bytes[record.at..end])
        })
    }
}

impl Queue {
    /// Keeps a record; `true` when too much waits, and [`Self::cut`] is due.
    pub(super) fn push(&mut self, time: u64, record: &[u8]) -> bool {
        self.waiting.push(Waiting {
            time,
            at: self.bytes.len(),
            len: u32::try_from(record.len()).unwrap_or(0),
        });
        self.bytes.extend_from_slice(record);
        self.latest = self.latest.max(time);
        self.bytes.len() >= MAX_WAITING
    }

    /// A round over all buffers ended: what is due now.
    pub(super) fn round(&mut self) -> Due {
        let due = self.take_until(self.limit);
        self.limit = self.latest;
        due
    }

    /// Too much waits: the earlier half.
    pub(super) fn cut(&mut self) -> Due {
        self.waiting.sort_by_key(|record| record.time);
        let middle = self.waiting.get(self.waiting.len() / 2);
        let middle = middle.map_or(u64::MAX, |record| record.time);
        self.take_until(middle)
    }

    /// All that waits.
    pub(super) fn rest(&mut self) -> Due {
        self.take_until(u64::MAX)
    }

    fn take_until(&mut self, time: u64) -> Due {
        // Buffers are in order in themselves, so the list is a few sorted runs, and a stable
        // sort merges them quickly.
        self.waiting.sort_by_key(|record| record.time);
        let n_due = self.waiting.partition_point(|record| record.time <= time);
        let mut left = std::mem::take(&mut self.spare);
        for record in self.waiting.drain(n_due..) {
            let at = left.bytes.len();
            let end = record.at + record.len as usize;
            left.bytes.extend_from_slice(&self.bytes[record.at..end]);
            left.records.push(Waiting { at, ..record });
        }
        Due {
            records: std::mem::replace(&mut self.waiting, left.records),
            bytes: std::mem::replace(&mut self.bytes, left.bytes),
        }
    }

    /// Takes back what was delivered: the next ones need the room.
    pub(super) fn take_back(&mut self, mut due: Due) {
        due.clear();
        self.spare = due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(due: &Due) -> Vec<u64> {
        due.iter().map(|(time, _)| time).collect()
    }

    #[test]
    fn two_rounds_are_put_in_order() {
        let mut queue = Queue::default();
        for time in [1u64, 5, 9, 2, 6] {
            queue.push(time, &time.to_le_bytes());
        }
        assert_eq!(times(&queue.round()), [0; 0]);
        for time in [10u64, 14, 7, 11] {
            queue.push(time, &time.to_le_bytes());
        }
        let due = queue.round();
        assert_eq!(times(&due), [1, 2, 5, 6, 7, 9]);
        assert!(due.iter().all(|(time, bytes)| bytes == time.to_le_bytes()));
        queue.take_back(due);
        let rest = queue.rest();
        assert_eq!(times(&rest), [10, 11, 14]);
        assert!(rest.iter().all(|(time, bytes)| bytes == time.to_le_bytes()));
    }
}
