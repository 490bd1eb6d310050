//! How many samples fell into each cell of time: a small table in the footer of a segment's
//! samples, so that a heat map of hours need not read them all.
//!
//! A cell is 20 ms of one core, idle or not. Whoever asks in whole cells is answered exactly:
//! samples in the very first microsecond of a cell are counted apart, because a picture may
//! round them down. The table is counted from the samples as they are sealed, lies in the
//! same file, and has a checksum and their number; without it, or when something of it does
//! not fit, the samples themselves are counted.

use sexton_model::moment::Moment;
use sexton_model::stack::{CoreState, StackSample};

use super::base64;
use crate::crc::crc32c;
use crate::wal::bytes::{Broken, Bytes, put_varint, unzigzag, zigzag};

/// The time that a cell takes.
pub const CELL_NS: u64 = 20_000_000;

/// In the file's metadata. Other readers of Parquet pass over what they do not know.
pub(crate) const KEY: &str = "sexton.cells";

/// The first word of the table; another one is of a newer version.
const VERSION: &str = "1";

/// Later times than this, more than a hundred years, are not put into cells: a picture that
/// counts in floating point would no longer tell one microsecond from the next.
const MAX_NS: u64 = (1 << 32) * 1_000_000_000;

/// Packed tables unpack to no more: 16 bytes for each sample of a segment, by far.
const MAX_BYTES: usize = 64 << 20;

/// Samples that differ in nothing that a heat map of cores shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TickCell {
    /// When they were taken, or a moment of the same cell.
    pub at: Moment,
    /// On which CPU.
    pub cpu: u32,
    /// Whether the core was idle.
    pub is_idle: bool,
    /// How many they are.
    pub n: u32,
}

/// What the cells of one series have in common. Those of the first kind count samples in the
/// first microsecond of each cell, those of the second all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Of {
    cpu: u32,
    is_idle: bool,
    is_first: bool,
}

/// Cells of one core in the making: each is coded when the next one begins.
#[derive(Debug)]
struct Series {
    of: Of,
    coded: Vec<u8>,
    before: u64,
    cell: u64,
    n: u32,
}

/// The table in the making.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    series: Vec<Series>,
    n_samples: u64,
    is_impossible: bool,
}

impl Cells {
    /// Counts a sample; they may come in any order.
    pub(crate) fn add(&mut self, sample: &StackSample) {
        self.n_samples += 1;
        if sample.state == CoreState::Waiting {
            return;
        }
        let at_ns = sample.at.as_ns();
        self.is_impossible |= at_ns >= MAX_NS;
        let of = Of {
            cpu: sample.cpu,
            is_idle: sample.state == CoreState::Idle,
            is_first: at_ns % CELL_NS < 1000,
        };
        let known = self.series.iter().position(|series| series.of == of);
        let at = known.unwrap_or_else(|| {
            self.series.push(Series::new(of));
            self.series.len() - 1
        });
        self.series[at].add(at_ns / CELL_NS);
    }

    /// The table as text; `None` when these samples cannot have one.
    pub(crate) fn text(mut self) -> Option<String> {
        if self.is_impossible || self.n_samples == 0 {
            return None;
        }
        let mut coded = Vec::new();
        for series in &mut self.series {
            series.close();
            let Of {
                cpu,
                is_idle,
                is_first,
            } = series.of;
            put_varint(&mut coded, u64::from(cpu));
            coded.push(u8::from(is_idle) | u8::from(is_first) << 1);
            put_varint(&mut coded, series.coded.len() as u64);
            coded.extend_from_slice(&series.coded);
        }
        let packed = zstd::bulk::compress(&coded, 3).ok()?;
        let text = format!("{} {}", self.n_samples, base64::encode(&packed));
        let crc = crc32c(0, text.as_bytes());
        Some(format!("{VERSION} {crc:08x} {text}"))
    }
}

/// The most that one byte says: so many cells on, so many samples.
const MAX_STEP: u64 = 8;
const MAX_COUNT: u32 = 15;
const MORE: u8 = 0x80;

impl Series {
    fn new(of: Of) -> Self {
        Self {
            of,
            coded: Vec::new(),
            before: 0,
            cell: 0,
            n: 0,
        }
    }

    fn add(&mut self, cell: u64) {
        if self.n > 0 && (self.cell != cell || self.n == u32::MAX) {
            self.close();
        }
        self.cell = cell;
        self.n += 1;
    }

    /// Codes the cell that was counted last.
    fn close(&mut self) {
        if self.n == 0 {
            return;
        }
        let step = self.cell.wrapping_sub(self.before);
        if (1..=MAX_STEP).contains(&step) && self.n <= MAX_COUNT {
            self.coded.push((step as u8 - 1) << 4 | self.n as u8);
        } else {
            self.coded.push(MORE);
            put_varint(&mut self.coded, zigzag(step.cast_signed()));
            put_varint(&mut self.coded, u64::from(self.n));
        }
        self.before = self.cell;
        self.n = 0;
    }
}

/// The cells of a table, if it is one of this many samples.
pub(crate) fn parse(text: &str, n_samples: u64) -> Option<Vec<TickCell>> {
    let (version, rest) = text.split_once(' ')?;
    let (crc, rest) = rest.split_once(' ')?;
    let (n, packed) = rest.split_once(' ')?;
    let is_whole = u32::from_str_radix(crc, 16) == Ok(crc32c(0, rest.as_bytes()));
    if version != VERSION || !is_whole || n.parse() != Ok(n_samples) {
        return None;
    }
    let limit = usize::try_from(n_samples).ok()?.checked_mul(32)?;
    let limit = limit.min(MAX_BYTES);
    let coded = zstd::bulk::decompress(&base64::decode(packed)?, limit).ok()?;
    let cells = decode(&coded).ok()?;
    let total: u64 = cells.iter().map(|cell| u64::from(cell.n)).sum();
    // Samples of threads that wait are of no core.
    (total <= n_samples).then_some(cells)
}

fn decode(coded: &[u8]) -> Result<Vec<TickCell>, Broken> {
    let mut bytes = Bytes(coded);
    // Most cells take one byte, and none takes less.
    let mut cells = Vec::with_capacity(coded.len());
    while !bytes.0.is_empty() {
        let cpu = u32::try_from(bytes.varint()?).map_err(|_| Broken)?;
        let flags = bytes.byte()?;
        let len = usize::try_from(bytes.varint()?).map_err(|_| Broken)?;
        let of = Of {
            cpu,
            is_idle: flags & 1 == 1,
            is_first: flags & 2 == 2,
        };
        decode_series(of, bytes.take(len)?, &mut cells)?;
    }
    Ok(cells)
}

fn decode_series(of: Of, coded: &[u8], cells: &mut Vec<TickCell>) -> Result<(), Broken> {
    let middle = if of.is_first { 0 } else { CELL_NS / 2 };
    let mut bytes = Bytes(coded);
    let mut cell = 0u64;
    while let Some((&byte, rest)) = bytes.0.split_first() {
        bytes.0 = rest;
        let n = if byte & MORE == 0 {
            cell = cell.checked_add(u64::from(byte >> 4) + 1).ok_or(Broken)?;
            u32::from(byte & 15)
        } else {
            let step = unzigzag(bytes.varint()?);
            cell = cell.checked_add_signed(step).ok_or(Broken)?;
            u32::try_from(bytes.varint()?).map_err(|_| Broken)?
        };
        let at_ns = cell.checked_mul(CELL_NS).ok_or(Broken)? + middle;
        cells.push(TickCell {
            at: Moment::from_ns(at_ns),
            cpu: of.cpu,
            is_idle: of.is_idle,
            n,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn sample(at_ns: u64, cpu: u32, state: CoreState) -> StackSample {
        StackSample::without_owner(Moment::from_ns(at_ns), cpu, state)
    }

    fn table(samples: &[StackSample]) -> Option<String> {
        let mut cells = Cells::default();
        samples.iter().for_each(|sample| cells.add(sample));
        cells.text()
    }

    /// Where a sample is counted: its cell, and whether it is the first microsecond's.
    fn place(at_ns: u64) -> (u64, bool) {
        (at_ns / CELL_NS, at_ns % CELL_NS < 1000)
    }

    fn any_samples() -> impl Strategy<Value = Vec<StackSample>> {
        let times = prop_oneof![0u64..300_000_000, (0u64..40).prop_map(|n| n * CELL_NS)];
        let state = prop_oneof![
            Just(CoreState::Idle),
            Just(CoreState::User),
            Just(CoreState::Kernel)
        ];
        let one = (times, 0u32..3, state).prop_map(|(at, cpu, state)| sample(at, cpu, state));
        prop::collection::vec(one, 1..200)
    }

    proptest! {
        #[test]
        fn each_sample_is_counted_once_in_its_cell(samples in any_samples()) {
            let text = table(&samples).expect("they have a table");
            let cells = parse(&text, samples.len() as u64).expect("it is whole");
            let (mut expected, mut actual) = (BTreeMap::new(), BTreeMap::new());
            for s in &samples {
                let key = (s.cpu, s.state == CoreState::Idle, place(s.at.as_ns()));
                *expected.entry(key).or_insert(0u64) += 1;
            }
            for cell in cells {
                let key = (cell.cpu, cell.is_idle, place(cell.at.as_ns()));
                *actual.entry(key).or_insert(0u64) += u64::from(cell.n);
            }
            prop_assert_eq!(actual, expected);
        }

        #[test]
        fn any_bytes_are_cells_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
            let _ = parse(&String::from_utf8_lossy(&bytes), 3);
        }

        #[test]
        fn a_table_that_was_changed_is_none(samples in any_samples(), at in any::<prop::sample::Index>(), to in b' '..b'~') {
            let text = table(&samples).expect("they have a table");
            let mut changed = text.clone().into_bytes();
            let at = at.index(changed.len());
            changed[at] = to;
            let changed = String::from_utf8(changed).expect("ASCII");
            if !changed.eq_ignore_ascii_case(&text) {
                prop_assert_eq!(parse(&changed, samples.len() as u64), None);
            }
            prop_assert_eq!(parse(&text, samples.len() as u64 + 1), None);
        }
    }

    #[test]
    fn an_even_clock_takes_a_byte_or_less_for_each_cell() {
        let times = (0..99 * 600).map(|n| n * 1_000_000_000 / 99 + 5000);
        let samples: Vec<StackSample> = times.map(|at| sample(at, 0, CoreState::User)).collect();
        let text = table(&samples).expect("they have a table");
        assert!(text.len() < 50 * 600, "{} bytes", text.len());
    }

    #[test]
    fn threads_that_wait_are_in_no_cell() {
        let samples = [
            sample(5000, 1, CoreState::Waiting),
            sample(6000, 1, CoreState::User),
            sample(7000, 1, CoreState::Waiting),
        ];
        let text = table(&samples).expect("they have a table");
        let cells = parse(&text, 3).expect("it is whole");
        let n: Vec<u32> = cells.iter().map(|cell| cell.n).collect();
        assert_eq!(n, [1]);
    }

    #[test]
    fn times_beyond_all_clocks_have_no_table() {
        assert_eq!(table(&[sample(u64::MAX, 0, CoreState::User)]), None);
        assert_eq!(table(&[]), None);
    }
}
