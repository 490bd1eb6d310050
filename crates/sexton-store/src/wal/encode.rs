//! Records to bytes. The inverse is `decode`.
//!
//! A record is: its series (a number, when it came before), the time since the record
//! before it, and what it says. A whole value is written as its difference to the last
//! one of the series. Numbers are varints, so a sample mostly takes four to six bytes.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use sexton_model::gap::Gap;
use sexton_model::payload::{Fields, Value};
use sexton_model::record::{Body, Record};

use super::bytes::{put_str, put_varint, zigzag};
use super::tables::Tables;
use crate::row::{Kind, Known, Series};

/// Written in full and not remembered.
pub(super) const INLINE: u64 = 0;
/// Written in full; from here on it is the next number.
pub(super) const NEW: u64 = 1;
/// The number of what was remembered first.
pub(super) const FIRST: u64 = 2;
/// Stands before eight bytes of a value that is not whole; differences are even.
pub(super) const RAW: u64 = 1;
/// What stands before the value of a field.
pub(super) const TEXT: u8 = 0;
pub(super) const COUNT: u8 = 1;
pub(super) const REAL: u8 = 2;
pub(super) const NO: u8 = 3;
pub(super) const YES: u8 = 4;
pub(super) const LIST: u8 = 5;
pub(super) const GROUP: u8 = 6;
/// Whole numbers up to here have a floating-point form of their own.
const MAX_WHOLE: u64 = 1 << 53;

/// Makes the records of an open segment into bytes.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    tables: Tables,
    words: HashMap<Arc<str>, u64>,
    series: HashMap<BySeries, u64>,
}

/// Finds a series without a second copy of it.
#[derive(Debug)]
struct BySeries(Arc<Known>);

impl Borrow<Series> for BySeries {
    fn borrow(&self) -> &Series {
        &self.0.series
    }
}

impl PartialEq for BySeries {
    fn eq(&self, other: &Self) -> bool {
        self.0.series == other.0.series
    }
}

impl Eq for BySeries {}

impl Hash for BySeries {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.series.hash(state);
    }
}

impl Encoder {
    /// Goes on where a reader of the same segment has come to.
    pub(crate) fn continuing(tables: Tables) -> Self {
        let words = (FIRST..).zip(&tables.words);
        let words = words.map(|(id, word)| (Arc::clone(word), id)).collect();
        let series = (FIRST..).zip(&tables.series);
        let series = series.map(|(id, known)| (BySeries(Arc::clone(known)), id));
        Self {
            series: series.collect(),
            words,
            tables,
        }
    }

    pub(crate) fn begin_block(&mut self) {
        self.tables.begin_block();
    }

    pub(crate) fn record(&mut self, out: &mut Vec<u8>, outgoing: &Outgoing<'_>) {
        let record = outgoing.record;
        let slot = self.series(out, Series::of(record));
        let at_ns = record.at.as_ns();
        let step = at_ns.wrapping_sub(self.tables.last_ns).cast_signed();
        self.tables.last_ns = at_ns;
        put_varint(out, zigzag(step));
        match &record.body {
            Body::Sample { value, .. } => self.value(out, slot, *value),
            Body::Event { .. } => self.fields(out, &outgoing.fields),
            Body::Gap(gap) => self.gap(out, gap),
        }
    }

    /// Writes which series it is; the place of its last value, if it has one.
    fn series(&mut self, out: &mut Vec<u8>, series: Series) -> Option<usize> {
        if let Some(id) = self.series.get(&series) {
            put_varint(out, *id);
            return usize::try_from(id - FIRST).ok();
        }
        let remember = self.tables.can_learn_series();
        put_varint(out, if remember { NEW } else { INLINE });
        out.push(kind_code(series.kind));
        for part in [&series.fact, &series.subject_kind] {
            self.word(out, part);
        }
        self.word(out, &series.subject);
        for part in [&series.sensor, &series.unit] {
            self.word(out, part);
        }
        if !remember {
            return None;
        }
        let slot = self.tables.series.len();
        let known = Arc::new(Known::new(series));
        self.tables.learn_series(Arc::clone(&known));
        self.series.insert(BySeries(known), FIRST + slot as u64);
        Some(slot)
    }

    fn word(&mut self, out: &mut Vec<u8>, word: &str) {
        if let Some(id) = self.words.get(word) {
            return put_varint(out, *id);
        }
        let remember = self.tables.can_learn_word(word);
        put_varint(out, if remember { NEW } else { INLINE });
        put_str(out, word);
        if remember {
            let word: Arc<str> = word.into();
            let id = FIRST + self.tables.words.len() as u64;
            self.words.insert(Arc::clone(&word), id);
            self.tables.learn_word(word);
        }
    }

    fn value(&mut self, out: &mut Vec<u8>, slot: Option<usize>, value: f64) {
        let whole = value as i64;
        let is_whole =
            whole.unsigned_abs() <= MAX_WHOLE && (whole as f64).to_bits() == value.to_bits();
        if !is_whole {
            put_varint(out, RAW);
            out.extend_from_slice(&value.to_bits().to_le_bytes());
            return;
        }
        let mut first = 0;
        let last = slot.map_or(&mut first, |slot| &mut self.tables.last[slot]);
        put_varint(out, zigzag(whole - *last) << 1);
        *last = whole;
    }

    fn fields(&mut self, out: &mut Vec<u8>, fields: &Fields) {
        put_varint(out, fields.len() as u64);
        for (name, value) in fields {
            self.word(out, name);
            self.field(out, value);
        }
    }

    fn field(&mut self, out: &mut Vec<u8>, value: &Value) {
        match value {
            Value::Text(text) => {
                out.push(TEXT);
                put_str(out, text);
            }
            Value::Count(count) => {
                out.push(COUNT);
                put_varint(out, *count);
            }
            Value::Real(real) => {
                out.push(REAL);
                out.extend_from_slice(&real.to_bits().to_le_bytes());
            }
            Value::Flag(flag) => out.push(if *flag { YES } else { NO }),
            Value::List(values) => {
                out.push(LIST);
                put_varint(out, values.len() as u64);
                for value in values {
                    self.field(out, value);
                }
            }
            Value::Group(fields) => {
                out.push(GROUP);
                self.fields(out, fields);
            }
        }
    }

    fn gap(&mut self, out: &mut Vec<u8>, gap: &Gap) {
        self.word(out, &gap.sensor);
        self.word(out, &gap.why.to_string());
        self.word(out, &gap.text);
        out.push(u8::from(gap.remedy.is_some()));
        if let Some(remedy) = &gap.remedy {
            self.word(out, remedy);
        }
    }
}

fn kind_code(kind: Kind) -> u8 {
    match kind {
        Kind::Sample => 0,
        Kind::Event => 1,
        Kind::Gap => 2,
    }
}

/// A record on its way into a log: what its event says is made into fields once.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    record: &'a Record,
    fields: Fields,
}

impl<'a> Outgoing<'a> {
    pub(crate) fn of(record: &'a Record) -> Self {
        let fields = match &record.body {
            Body::Event { payload, .. } => payload.fields(),
            _ => Fields::new(),
        };
        Self { record, fields }
    }

    /// No encoding of the record is longer.
    pub(crate) fn size_bound(&self) -> usize {
        const NUMBERS: usize = 128;
        let body = match &self.record.body {
            Body::Gap(gap) => {
                let remedy = gap.remedy.as_ref().map_or(0, String::len);
                64 + gap.sensor.len() + gap.text.len() + remedy
            }
            _ => fields_bound(&self.fields),
        };
        let record = self.record;
        let fact = record.fact().map_or(0, |fact| fact.name.len());
        NUMBERS + fact + record.sensor.len() + record.subject.name.len() + body
    }
}

fn fields_bound(fields: &Fields) -> usize {
    let bound = |(name, value): &(_, Value)| {
        let name: &std::borrow::Cow<'static, str> = name;
        20 + name.len() + value_bound(value)
    };
    fields.iter().map(bound).sum()
}

fn value_bound(value: &Value) -> usize {
    match value {
        Value::Text(text) => 11 + text.len(),
        Value::List(values) => 11 + values.iter().map(value_bound).sum::<usize>(),
        Value::Group(fields) => 11 + fields_bound(fields),
        Value::Flag(_) | Value::Count(_) | Value::Real(_) => 11,
    }
}
