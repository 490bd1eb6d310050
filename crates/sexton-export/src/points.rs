//! Metrics as points, for a receiver that is sent them.

use crate::exposition::{Head, Out};

/// A metric and its series.
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    /// Its name, as `/metrics` has it.
    pub name: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Whether it only grows.
    pub is_counter: bool,
    /// Its series.
    pub points: Vec<Point>,
}

/// The value of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Names and values of its labels.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: f64,
}

/// Takes points.
#[derive(Debug, Default)]
pub(crate) struct AllPoints {
    pub(crate) metrics: Vec<Points>,
}

impl Out for AllPoints {
    fn head(&mut self, head: Head) {
        self.metrics.push(Points {
            name: head.name,
            help: head.help,
            is_counter: head.is_counter,
            points: Vec::new(),
        });
    }

    fn line<'l>(
        &mut self,
        _: &str,
        labels: impl IntoIterator<Item = (&'l str, &'l str)>,
        value: f64,
    ) {
        let labels = labels.into_iter();
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        if let Some(metric) = self.metrics.last_mut() {
            let labels = labels.collect();
            metric.points.push(Point { labels, value });
        }
    }

    fn n_series(&self) -> usize {
        self.metrics.iter().map(|metric| metric.points.len()).sum()
    }
}
