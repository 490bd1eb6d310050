//! Bytes to rows. Any bytes at all give rows or `Broken`, never a panic.

use std::borrow::Cow;
use std::sync::Arc;

use sexton_model::fact;
use sexton_model::gap::Gap;
use sexton_model::payload::{Fields, Value};

use super::bytes::{Broken, Bytes, unzigzag};
use super::encode::{COUNT, FIRST, GROUP, INLINE, LIST, NEW, NO, RAW, REAL, TEXT, YES};
use super::tables::Tables;
use crate::row::{Kind, Known, Row, Said, Series, parse_why};

/// Lists and groups within each other: payloads have two levels.
const MAX_DEPTH: u8 = 8;

/// Reads the batches of an open segment, in their order.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    tables: Tables,
    /// A second reading of a block: the tables know already what it teaches.
    again: bool,
    words_seen: usize,
    series_seen: usize,
}

impl Decoder {
    /// What the segment has taught so far.
    pub(crate) fn into_tables(self) -> Tables {
        self.tables
    }

    pub(crate) fn begin_block(&mut self) {
        self.tables.begin_block();
    }

    /// How many words and series are known; with it a block can be read again.
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.tables.words.len(), self.tables.series.len())
    }

    /// Makes ready to read, again, the block that began at this mark.
    pub(crate) fn rewind(&mut self, mark: (usize, usize)) {
        self.again = true;
        (self.words_seen, self.series_seen) = mark;
        self.begin_block();
    }

    /// Forgets what a broken batch has taught.
    pub(crate) fn forget(&mut self, mark: (usize, usize)) {
        self.tables.truncate(mark);
        (self.words_seen, self.series_seen) = mark;
    }

    /// The rows of one batch, whose fields are all text or have types.
    pub(crate) fn batch(
        &mut self,
        payload: &[u8],
        is_typed: bool,
        rows: &mut Vec<Row>,
    ) -> Result<(), Broken> {
        let mut bytes = Bytes(payload);
        while !bytes.0.is_empty() {
            rows.push(self.row(&mut bytes, is_typed)?);
        }
        Ok(())
    }

    fn row(&mut self, bytes: &mut Bytes<'_>, is_typed: bool) -> Result<Row, Broken> {
        let (known, slot) = self.series(bytes)?;
        let step = unzigzag(bytes.varint()?).cast_unsigned();
        let at_ns = self.tables.last_ns.wrapping_add(step);
        self.tables.last_ns = at_ns;
        let said = match known.series.kind {
            Kind::Sample => Said::Value(self.value(bytes, slot)?),
            Kind::Event if is_typed => Said::Fields(self.fields(bytes, MAX_DEPTH)?),
            Kind::Event => Said::Fields(self.texts(bytes)?),
            Kind::Gap => Said::Gap(Box::new(self.gap(bytes)?)),
        };
        Ok(Row { at_ns, known, said })
    }

    fn series(&mut self, bytes: &mut Bytes<'_>) -> Result<(Arc<Known>, Option<usize>), Broken> {
        let code = bytes.varint()?;
        if code >= FIRST {
            let slot = usize::try_from(code - FIRST).map_err(|_| Broken)?;
            let known = self.tables.series.get(slot).ok_or(Broken)?;
            return Ok((Arc::clone(known), Some(slot)));
        }
        let kind = Kind::ALL.get(usize::from(bytes.byte()?)).ok_or(Broken)?;
        let name = self.word(bytes)?;
        let fact = fact::by_name(&name);
        let series = Series {
            kind: *kind,
            fact: fact.map_or_else(|| Cow::Owned(name.to_string()), |fact| fact.name.into()),
            subject_kind: self.word(bytes)?.to_string().into(),
            subject: self.word(bytes)?,
            sensor: self.word(bytes)?.to_string().into(),
            unit: self.word(bytes)?.to_string().into(),
        };
        if code == INLINE {
            return Ok((Arc::new(Known::new(series)), None));
        }
        self.learn_series(series)
    }

    fn learn_series(&mut self, series: Series) -> Result<(Arc<Known>, Option<usize>), Broken> {
        let slot = self.series_seen;
        self.series_seen += 1;
        if self.again {
            let known = self.tables.series.get(slot).ok_or(Broken)?;
            return Ok((Arc::clone(known), Some(slot)));
        }
        if !self.tables.can_learn_series() {
            return Err(Broken);
        }
        let known = Arc::new(Known::new(series));
        self.tables.learn_series(Arc::clone(&known));
        Ok((known, Some(slot)))
    }

    fn word(&mut self, bytes: &mut Bytes<'_>) -> Result<Arc<str>, Broken> {
        match bytes.varint()? {
            INLINE => Ok(bytes.str()?.into()),
            NEW => {
                let word = bytes.str()?;
                let slot = self.words_seen;
                self.words_seen += 1;
                if self.again {
                    return self.tables.words.get(slot).cloned().ok_or(Broken);
                }
                if !self.tables.can_learn_word(word) {
                    return Err(Broken);
                }
                let word: Arc<str> = word.into();
                self.tables.learn_word(Arc::clone(&word));
                Ok(word)
            }
            code => {
                let slot = usize::try_from(code - FIRST).map_err(|_| Broken)?;
                self.tables.words.get(slot).cloned().ok_or(Broken)
            }
        }
    }

    fn value(&mut self, bytes: &mut Bytes<'_>, slot: Option<usize>) -> Result<f64, Broken> {
        let code = bytes.varint()?;
        if code == RAW {
            return Ok(f64::from_bits(u64::from_le_bytes(bytes.array()?)));
        }
        if code & 1 == 1 {
            return Err(Broken);
        }
        let step = unzigzag(code >> 1);
        let mut first = 0;
        let last = slot.map_or(&mut first, |slot| &mut self.tables.last[slot]);
        *last = last.wrapping_add(step);
        Ok(*last as f64)
    }

    /// Fields of a log from before they had types.
    fn texts(&mut self, bytes: &mut Bytes<'_>) -> Result<Fields, Broken> {
        let n = bytes.varint()?;
        let mut fields = Fields::new();
        for _ in 0..n {
            let name = self.word(bytes)?.to_string();
            fields.push((Cow::Owned(name), Value::Text(bytes.str()?.to_owned())));
        }
        Ok(fields)
    }

    fn fields(&mut self, bytes: &mut Bytes<'_>, depth: u8) -> Result<Fields, Broken> {
        let n = bytes.varint()?;
        let mut fields = Fields::new();
        for _ in 0..n {
            let name = self.word(bytes)?.to_string();
            fields.push((Cow::Owned(name), self.field(bytes, depth)?));
        }
        Ok(fields)
    }

    fn field(&mut self, bytes: &mut Bytes<'_>, depth: u8) -> Result<Value, Broken> {
        let deeper = depth.checked_sub(1).ok_or(Broken);
        Ok(match bytes.byte()? {
            TEXT => Value::Text(bytes.str()?.to_owned()),
            COUNT => Value::Count(bytes.varint()?),
            REAL => Value::Real(f64::from_bits(u64::from_le_bytes(bytes.array()?))),
            NO => Value::Flag(false),
            YES => Value::Flag(true),
            LIST => {
                let n = bytes.varint()?;
                let mut values = Vec::new();
                for _ in 0..n {
                    values.push(self.field(bytes, deeper?)?);
                }
                Value::List(values)
            }
            GROUP => Value::Group(self.fields(bytes, deeper?)?),
            _ => return Err(Broken),
        })
    }

    fn gap(&mut self, bytes: &mut Bytes<'_>) -> Result<Gap, Broken> {
        let sensor = self.word(bytes)?.to_string();
        let why = parse_why(&self.word(bytes)?);
        let text = self.word(bytes)?.to_string();
        let remedy = match bytes.byte()? {
            0 => None,
            1 => Some(self.word(bytes)?.to_string()),
            _ => return Err(Broken),
        };
        Ok(Gap {
            sensor: sensor.into(),
            why,
            text,
            remedy,
        })
    }
}
