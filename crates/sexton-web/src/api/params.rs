//! Parameters of a question. What makes no sense is refused by name.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use regex::{Regex, RegexBuilder};

use super::MAX_US;
use crate::http::{Problem, Query};
use crate::source::Source;

/// What an expression may take when it is compiled.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// A window of a source, in nanoseconds of its clock. The end is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

/// The parameters of a question.
pub(super) struct Params<'a> {
    query: &'a Query,
}

impl<'a> Params<'a> {
    pub(super) fn new(query: &'a Query) -> Self {
        Self { query }
    }

    /// The one value of a name.
    fn one(&self, name: &'a str) -> Result<Option<&'a str>, Problem> {
        let mut values = self.query.all(name);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(Problem::new(400, format!("{name}: give it once"))),
        }
    }

    /// A whole number in bounds.
    pub(super) fn number<T>(
        &self,
        name: &'a str,
        bounds: RangeInclusive<T>,
    ) -> Result<Option<T>, Problem>
    where
        T: FromStr + PartialOrd + Display,
    {
        let Some(text) = self.one(name)? else {
            return Ok(None);
        };
        number(name, text, &bounds).map(Some)
    }

    /// Several whole numbers in bounds.
    pub(super) fn numbers<T>(
        &self,
        name: &'a str,
        most: usize,
        bounds: RangeInclusive<T>,
    ) -> Result<Vec<T>, Problem>
    where
        T: FromStr + PartialOrd + Display,
    {
        let texts = self.texts(name, most, 20)?;
        let numbers = texts.into_iter().map(|text| number(name, text, &bounds));
        numbers.collect()
    }

    /// A text that is not empty.
    pub(super) fn text(&self, name: &'a str, most: usize) -> Result<Option<&'a str>, Problem> {
        let Some(text) = self.one(name)? else {
            return Ok(None);
        };
        check_length(name, text, most).map(Some)
    }

    /// Several texts.
    pub(super) fn texts(
        &self,
        name: &'a str,
        most: usize,
        most_chars: usize,
    ) -> Result<Vec<&'a str>, Problem> {
        let texts: Vec<&str> = self.query.all(name).collect();
        if texts.len() > most {
            return Err(Problem::new(400, format!("{name}: at most {most}")));
        }
        let checked = texts
            .into_iter()
            .map(|text| check_length(name, text, most_chars));
        checked.collect()
    }

    /// One of some words.
    pub(super) fn choice<T: Copy>(
        &self,
        name: &'a str,
        words: &[(&str, T)],
        default: T,
    ) -> Result<T, Problem> {
        let Some(text) = self.one(name)? else {
            return Ok(default);
        };
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, meant)| *meant).ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            Problem::new(400, format!("{name}: one of {}", words.join(", ")))
        })
    }

    /// A moment.
    pub(super) fn time(&self, name: &'a str) -> Result<Option<u64>, Problem> {
        self.number(name, 0..=MAX_US)
    }

    /// The window that is asked about.
    pub(super) fn window(&self, source: &Source) -> Result<Window, Problem> {
        let (from, to) = (self.time("from")?, self.time("to")?);
        let state = source.state();
        let (start_ns, end_ns) = state.span_ns();
        let window = Window {
            from_ns: from.map_or(start_ns, |us| state.clock.ns(us)),
            to_ns: to.map_or(end_ns, |us| state.clock.ns(us)),
        };
        window.checked("from", "to")
    }

    /// The window to compare with.
    pub(super) fn base(&self, source: &Source) -> Result<Option<Window>, Problem> {
        let clock = source.state().clock;
        match (self.time("base_from")?, self.time("base_to")?) {
            (None, None) => Ok(None),
            (Some(from), Some(to)) => {
                let window = Window {
                    from_ns: clock.ns(from),
                    to_ns: clock.ns(to),
                };
                window.checked("base_from", "base_to").map(Some)
            }
            _ => Err(Problem::new(422, "base_from, base_to: give both, or none")),
        }
    }
}

impl Window {
    fn checked(self, from: &str, to: &str) -> Result<Self, Problem> {
        if self.from_ns < self.to_ns {
            return Ok(self);
        }
        let detail = format!("{from}, {to}: the window is empty, or before the boot");
        Err(Problem::new(422, detail))
    }
}

fn number<T>(name: &str, text: &str, bounds: &RangeInclusive<T>) -> Result<T, Problem>
where
    T: FromStr + PartialOrd + Display,
{
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_plain);
    let number = number.filter(|number| bounds.contains(number));
    number.ok_or_else(|| {
        let detail = format!(
            "{name}: a whole number from {} to {}",
            bounds.start(),
            bounds.end()
        );
        Problem::new(400, detail)
    })
}

fn check_length<'a>(name: &str, text: &'a str, most: usize) -> Result<&'a str, Problem> {
    if text.is_empty() || text.chars().count() > most {
        let detail = format!("{name}: from 1 to {most} characters");
        return Err(Problem::new(400, detail));
    }
    Ok(text)
}

/// An expression for names of functions.
pub(super) fn expression(name: &str, text: &str) -> Result<Regex, Problem> {
    let mut builder = RegexBuilder::new(text);
    let compiled = builder.size_limit(MAX_REGEX_BYTES).build();
    compiled.map_err(|error| {
        let why = error.to_string();
        let last = why.lines().last().unwrap_or_default();
        Problem::new(422, format!("{name}: {last}"))
    })
}
