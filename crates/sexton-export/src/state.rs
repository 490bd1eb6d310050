//! What `/metrics` answers: kept as records pass, bounded in series, bytes and memory.

use std::borrow::Cow;
use std::collections::HashMap;

use sexton_model::fact;
use sexton_model::fact::nic::NIC_GONE;
use sexton_model::gap::Why;
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record};
use sexton_model::subject::SubjectKind;

use crate::exposition::{Exposition, Format, Out};
use crate::family::{Ends, Family};
use crate::own::Own;
use crate::points::{AllPoints, Points};
use crate::room::share;

/// A node never has more series than this, whatever runs on it.
pub const MAX_SERIES: usize = 2_000;

/// Nor is an answer larger.
const MAX_BYTES: usize = 200_000;

/// More sensors than this are taken for one.
const MAX_SENSORS: usize = 256;

/// The series of a node.
#[derive(Debug)]
pub struct Metrics {
    began: Moment,
    families: Vec<Family>,
    by_fact: HashMap<&'static str, usize>,
    sensors: Vec<Cow<'static, str>>,
    gaps: Vec<Option<Moment>>,
    polls: Vec<Option<Moment>>,
}

impl Metrics {
    /// None yet. Events from before this moment are not counted.
    pub fn new(began: Moment) -> Self {
        let facts = fact::all().filter_map(|fact| Some((fact, fact.metric?)));
        let mut metrics = Self {
            began,
            families: Vec::new(),
            by_fact: HashMap::new(),
            sensors: Vec::new(),
            gaps: Vec::new(),
            polls: Vec::new(),
        };
        for (fact, metric) in facts {
            metrics.by_fact.insert(fact.name, metrics.families.len());
            metrics.families.push(Family::new(fact, metric));
        }
        metrics
    }

    /// Takes what a sensor said.
    pub fn take(&mut self, record: &Record) {
        let Some(fact) = record.fact() else {
            return self.take_gap(record);
        };
        if record.says(&NIC_GONE).is_some() {
            let device = &record.subject.name;
            self.families
                .iter_mut()
                .for_each(|family| family.forget_device(device));
        }
        let Some(&family) = self.by_fact.get(fact.name) else {
            return;
        };
        let sensor = self.sensor(record);
        if record.subject.kind == SubjectKind::Node && record.value().is_some() {
            self.polls[usize::from(sensor)] = Some(record.at);
        }
        self.families[family].take(record, sensor, self.began);
    }

    /// What a sensor told before it went blind holds no longer. One that lost events still
    /// sees.
    fn take_gap(&mut self, record: &Record) {
        let Body::Gap(gap) = &record.body else { return };
        let is_whole = matches!(record.subject.kind, SubjectKind::Node | SubjectKind::Sensor);
        if is_whole && !matches!(gap.why, Why::Lost(_)) {
            let sensor = self.sensor(record);
            self.gaps[usize::from(sensor)] = Some(record.at);
        }
    }

    fn sensor(&mut self, record: &Record) -> u16 {
        let known = self
            .sensors
            .iter()
            .position(|known| *known == record.sensor);
        let place = known.unwrap_or_else(|| {
            if self.sensors.len() < MAX_SENSORS {
                self.sensors.push(record.sensor.clone());
                self.gaps.push(None);
                self.polls.push(None);
            }
            self.sensors.len() - 1
        });
        u16::try_from(place).unwrap_or(0)
    }

    /// The answer to a scrape.
    pub fn render(&mut self, own: &Own, format: Format, now: Moment) -> String {
        self.end(now);
        let mut most = MAX_SERIES;
        loop {
            let mut out = Exposition::new(format);
            self.write(Some(own), &mut out, most);
            let text = out.finish();
            // Long names: fewer of them. Figures of the agent itself always fit.
            if text.len() <= MAX_BYTES || most < 100 {
                return text;
            }
            most = most * MAX_BYTES / text.len() * 9 / 10;
        }
    }

    /// The same as points for a receiver. Figures of the agent itself are those of now, so that a
    /// window of the past has none.
    pub fn points(&mut self, own: Option<&Own>, now: Moment) -> Vec<Points> {
        self.end(now);
        let mut out = AllPoints::default();
        self.write(own, &mut out, MAX_SERIES);
        out.metrics
    }

    fn end(&mut self, now: Moment) {
        let ends = Ends {
            now,
            gaps: &self.gaps,
            polls: &self.polls,
        };
        self.families
            .iter_mut()
            .for_each(|family| family.end(&ends));
    }

    fn write(&mut self, own: Option<&Own>, out: &mut impl Out, most: usize) {
        if let Some(own) = own {
            own.write(out);
        }
        let n_labelled = self.families.iter().filter(|it| it.is_labelled()).count();
        let n_plain = self.families.len() - n_labelled;
        // Of each metric with labels, one line says how many were folded; two more are totals.
        let taken = out.n_series() + n_plain + n_labelled + 2;
        let counts = self.families.iter().map(Family::n_labelled);
        let each = share(counts, most.saturating_sub(taken));
        let mut folded = Vec::new();
        for family in &mut self.families {
            let n_folded = family.write(each, out);
            if n_folded > 0 {
                folded.push((family.name(), n_folded));
            }
        }
        if !folded.is_empty() {
            let name = "sexton_series_folded";
            out.gauge(
                name,
                "series of a metric that are folded into its series other",
            );
            for (metric, n_folded) in folded {
                out.line(name, [("metric", metric)], n_folded as f64);
            }
        }
        out.gauge(
            "sexton_series_limit",
            "the most series that this node exports",
        );
        out.line("sexton_series_limit", [], MAX_SERIES as f64);
        out.gauge("sexton_series", "series that this node exports");
        let n_series = out.n_series() as f64 + 1.0;
        out.line("sexton_series", [], n_series);
    }
}

#[cfg(test)]
mod tests;
