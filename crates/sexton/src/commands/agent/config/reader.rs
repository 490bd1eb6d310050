//! Reads values of TOML, and says where a wrong one stands.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::duration;
use crate::quantity;

/// What is wrong, and on which line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Counted from 1.
    pub line: usize,
    /// What, and what would be right.
    pub text: String,
}

/// A key and its value.
#[derive(Debug, Clone)]
pub struct Entry<'t> {
    name: String,
    at: usize,
    value: DeValue<'t>,
}

impl Entry<'_> {
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Reads one file.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'t> {
    pub text: &'t str,
}

impl<'t> Reader<'t> {
    /// The tables of the file.
    pub fn entries(&self) -> Result<Vec<Entry<'t>>, Wrong> {
        let table = DeTable::parse(self.text).map_err(|error| Wrong {
            line: self.line(error.span().map_or(0, |span| span.start)),
            text: error.message().to_owned(),
        })?;
        Ok(entries(table.get_ref()))
    }

    /// Hands over each key of a table.
    pub fn each(
        &self,
        entry: &Entry<'t>,
        mut take: impl FnMut(&Entry<'t>) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        match &entry.value {
            DeValue::Table(table) => entries(table).iter().try_for_each(&mut take),
            _ => Err(self.wrong(entry, format!("{} should be a table", entry.name))),
        }
    }

    /// Hands over the keys of each table of a list, such as `[[remedy.allow]]`.
    pub fn each_table(
        &self,
        entry: &Entry<'t>,
        mut take: impl FnMut(&[Entry<'t>], &Entry<'t>) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        let wrong = || self.wrong(entry, format!("{} should be a list of tables", entry.name));
        let DeValue::Array(array) = &entry.value else {
            return Err(wrong());
        };
        for item in array.iter() {
            let DeValue::Table(table) = item.get_ref() else {
                return Err(wrong());
            };
            let place = Entry {
                name: entry.name.clone(),
                at: item.span().start,
                value: item.get_ref().clone(),
            };
            take(&entries(table), &place)?;
        }
        Ok(())
    }

    pub fn text(&self, entry: &Entry<'_>) -> Result<String, Wrong> {
        match &entry.value {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.wrong(entry, format!("{} should be a text", entry.name))),
        }
    }

    pub fn truth(&self, entry: &Entry<'_>) -> Result<bool, Wrong> {
        match &entry.value {
            DeValue::Boolean(truth) => Ok(*truth),
            _ => Err(self.wrong(entry, format!("{} should be true or false", entry.name))),
        }
    }

    pub fn texts(&self, entry: &Entry<'_>) -> Result<Vec<String>, Wrong> {
        let wrong = || self.wrong(entry, format!("{} should be a list of texts", entry.name));
        let DeValue::Array(array) = &entry.value else {
            return Err(wrong());
        };
        let text = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => None,
        };
        let texts: Option<Vec<String>> = array.iter().map(text).collect();
        texts.ok_or_else(wrong)
    }

    pub fn path(&self, entry: &Entry<'_>) -> Result<PathBuf, Wrong> {
        self.text(entry).map(PathBuf::from)
    }

    /// One path, or a list of them.
    pub fn paths(&self, entry: &Entry<'_>) -> Result<Vec<PathBuf>, Wrong> {
        match &entry.value {
            DeValue::Array(_) => Ok(self.texts(entry)?.into_iter().map(PathBuf::from).collect()),
            _ => Ok(vec![self.path(entry)?]),
        }
    }

    pub fn size(&self, entry: &Entry<'_>, least: u64) -> Result<u64, Wrong> {
        let size = match &entry.value {
            DeValue::Integer(number) => number.as_str().parse().ok(),
            DeValue::String(text) => quantity::bytes(text).ok(),
            _ => None,
        };
        let name = &entry.name;
        let size = size.ok_or_else(|| {
            self.wrong(
                entry,
                format!("{name} should be a size, such as \"500MiB\""),
            )
        })?;
        match size >= least {
            true => Ok(size),
            false => Err(self.wrong(
                entry,
                format!("{name} is {size} bytes; the least is {least}"),
            )),
        }
    }

    pub fn time(&self, entry: &Entry<'_>, least: Duration) -> Result<Duration, Wrong> {
        let text = self.text(entry)?;
        let name = &entry.name;
        let time = duration(&text).map_err(|why| self.wrong(entry, format!("{name}: {why}")))?;
        match time >= least {
            true => Ok(time),
            false => Err(self.wrong(entry, format!("{name} is {text}; the least is {least:?}"))),
        }
    }

    pub fn count(&self, entry: &Entry<'_>, range: RangeInclusive<u64>) -> Result<u64, Wrong> {
        let least = *range.start() as f64;
        let number = self.number(entry, least..=(*range.end() as f64))?;
        match number.fract() == 0.0 {
            true => Ok(number as u64),
            false => Err(self.wrong(entry, format!("{} should be a whole number", entry.name))),
        }
    }

    pub fn number(&self, entry: &Entry<'_>, range: RangeInclusive<f64>) -> Result<f64, Wrong> {
        let name = &entry.name;
        let number: Option<f64> = match &entry.value {
            DeValue::Integer(number) => number.as_str().parse().ok(),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        let number =
            number.ok_or_else(|| self.wrong(entry, format!("{name} should be a number")))?;
        match range.contains(&number) {
            true => Ok(number),
            false => {
                let (least, most) = range.into_inner();
                let text = format!("{name} = {number} is out of range: {least} to {most}");
                Err(self.wrong(entry, text))
            }
        }
    }

    pub fn unknown(&self, entry: &Entry<'_>, known: &str) -> Wrong {
        let text = format!("there is no key {}; there are {known}", entry.name);
        self.wrong(entry, text)
    }

    pub fn wrong(&self, entry: &Entry<'_>, text: impl Into<String>) -> Wrong {
        Wrong {
            line: self.line(entry.at),
            text: text.into(),
        }
    }

    /// Wrong is a key that is somewhere in the file, or missing.
    pub fn wrong_at(&self, key: &str, text: impl Into<String>) -> Wrong {
        let at = self
            .text
            .lines()
            .position(|line| line.trim_start().starts_with(key));
        Wrong {
            line: at.map_or(1, |line| line + 1),
            text: text.into(),
        }
    }

    fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

fn entries<'t>(table: &DeTable<'t>) -> Vec<Entry<'t>> {
    let entries = table.iter().map(|(name, value)| Entry {
        name: name.get_ref().to_string(),
        at: name.span().start,
        value: value.get_ref().clone(),
    });
    entries.collect()
}
