//! Dying memory cgroups as the recording's censuses told of them: the last one whole, of
//! those before how many there were.

use sexton_model::fact::Fact;
use sexton_model::fact::memcg::{
    MEMCG_DYING, MEMCG_DYING_BYTES, MEMCG_LEAKED, MEMCG_LIVE, MEMCG_ORIGIN, MEMCG_READS,
    MEMCG_STAT_READ_NS,
};
use sexton_model::record::Record;
use sexton_model::subject::SubjectKind;

/// Points of growth that are kept; then every second one goes.
const MAX_POINTS: usize = 2000;

/// Measurements of reads that are kept, newest.
const MAX_READS: usize = 200;

/// Origins of one census.
const MAX_ORIGINS: usize = 10_000;

/// How many there were at one census.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) at_ns: u64,
    pub(crate) dying: Option<f64>,
    pub(crate) live: Option<f64>,
}

/// What is known of dying memory cgroups.
#[derive(Debug, Default)]
pub(crate) struct Census {
    /// Of the last census: when, and each origin.
    pub(crate) origins_at_ns: Option<u64>,
    pub(crate) origins: Vec<Record>,
    pub(crate) points: Vec<Point>,
    pub(crate) reads: Vec<Record>,
    pub(crate) leaked: Option<f64>,
    pub(crate) bytes: Option<f64>,
    pub(crate) stat_read_ns: Option<f64>,
}

impl Census {
    pub(super) fn event(&mut self, record: &Record) {
        if record.says(&MEMCG_ORIGIN).is_some() {
            self.origin(record);
        } else if record.says(&MEMCG_READS).is_some() {
            let is_new = self.reads.last().is_none_or(|last| last.at < record.at);
            if is_new {
                self.reads.push(record.clone());
            }
            if self.reads.len() > MAX_READS {
                self.reads.remove(0);
            }
        }
    }

    fn origin(&mut self, record: &Record) {
        let at_ns = record.at.as_ns();
        if self.origins_at_ns.is_none_or(|known| known < at_ns) {
            self.origins_at_ns = Some(at_ns);
            self.origins.clear();
        }
        let is_current = self.origins_at_ns == Some(at_ns);
        let is_new = !self
            .origins
            .iter()
            .any(|known| known.subject == record.subject);
        if is_current && is_new && self.origins.len() < MAX_ORIGINS {
            self.origins.push(record.clone());
        }
    }

    pub(super) fn sample(&mut self, record: &Record, fact: &Fact, value: f64) {
        if record.subject.kind != SubjectKind::Node {
            return;
        }
        if *fact == MEMCG_DYING {
            if let Some(point) = self.point(record) {
                point.dying = Some(value);
            }
        } else if *fact == MEMCG_LIVE {
            if let Some(point) = self.point(record) {
                point.live = Some(value);
            }
        } else if *fact == MEMCG_LEAKED {
            self.leaked = Some(value);
        } else if *fact == MEMCG_DYING_BYTES {
            self.bytes = Some(value);
        } else if *fact == MEMCG_STAT_READ_NS {
            self.stat_read_ns = Some(value);
        }
    }

    /// The point of this moment; `None` when a later one is known.
    fn point(&mut self, record: &Record) -> Option<&mut Point> {
        let at_ns = record.at.as_ns();
        let last_ns = self.points.last().map(|last| last.at_ns);
        if last_ns.is_none_or(|last| last < at_ns) {
            if self.points.len() >= MAX_POINTS {
                let mut n = 0;
                self.points.retain(|_| {
                    n += 1;
                    n % 2 == 1
                });
            }
            self.points.push(Point {
                at_ns,
                dying: None,
                live: None,
            });
        }
        self.points.last_mut().filter(|last| last.at_ns == at_ns)
    }
}
