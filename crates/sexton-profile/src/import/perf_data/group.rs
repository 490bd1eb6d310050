//! Samples of a group of events, of which only the first one samples (`perf record -e '{a,b}:S'`):
//! they say how far each event had counted. Each event that has counted on since is a sample.

use ahash::AHashMap;

use super::fields::Fields;
use super::sample::skip_read;

const TIMES: u64 = 0b11;
const ID: u64 = 1 << 2;
const GROUP: u64 = 1 << 3;
const LOST: u64 = 1 << 4;

/// What one sample says of the events of its group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group<'a> {
    values: &'a [u8],
    words_of_each: usize,
}

impl<'a> Group<'a> {
    /// Reads what the counters say; `None` in it when they are not those of a group, or do not say
    /// whose they are.
    #[allow(
        clippy::option_option,
        reason = "cut short, and no group, are two things"
    )]
    pub(super) fn read(format: u64, fields: &mut Fields<'a>) -> Option<Option<Self>> {
        let mut values = *fields;
        skip_read(format, fields)?;
        if format & GROUP == 0 || format & ID == 0 {
            return Some(None);
        }
        let n = usize::try_from(values.u64()?).ok()?;
        values.skip_words(u64::from((format & TIMES).count_ones()))?;
        let words_of_each = 1 + (format & (ID | LOST)).count_ones() as usize;
        let bytes = n.checked_mul(words_of_each * 8)?;
        Some(Some(Self {
            values: values.bytes(bytes)?,
            words_of_each,
        }))
    }

    /// The id of each counter, and how far it had counted.
    pub(super) fn values(self) -> impl Iterator<Item = (u64, u64)> + 'a {
        let each = self.values.chunks_exact(self.words_of_each * 8);
        each.filter_map(|one| {
            let mut fields = Fields(one);
            let value = fields.u64()?;
            Some((fields.u64()?, value))
        })
    }
}

/// How far counters had counted at the last sample: by their id, and by the thread where each
/// thread has its own.
#[derive(Debug, Default)]
pub(super) struct Counters(AHashMap<(u64, u32), u64>);

impl Counters {
    /// How much was counted since the last sample.
    pub(super) fn since(&mut self, counter: (u64, u32), value: u64) -> u64 {
        let last = self.0.insert(counter, value).unwrap_or(0);
        value.checked_sub(last).unwrap_or(value)
    }
}
