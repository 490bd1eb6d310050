//! Loads what is judged of a bundle, within a bound of memory. A recording of hours holds millions of samples,
//! nearly all of a few facts that are measured many times a second. Where they do not fit,
//! those are loaded for the last part of the recording and around what the kernel's log
//! complains of; all else is loaded as it is. A gap says what is left out.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use sexton_model::fact::FactKind;
use sexton_model::fact::klog::{KLOG_EVENT, KernelLine};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record, Sink};
use sexton_model::subject::Subject;
use sexton_model::timeline::Records;

use crate::bundle::Bundle;

/// Records that are held at once: about 200 MB.
const MAX_RECORDS: u64 = 1_000_000;

/// A fact with fewer records than this is never thinned.
const FEW: u64 = 20_000;

/// How much is kept before and after a line of the kernel's log.
const AROUND: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(5));

/// Lines of the log that are kept around, newest first.
const MAX_LINES: usize = 64;

impl Bundle {
    /// The records that are judged: all of them, or as many as fit in memory and a gap that
    /// names the rest. Every judge of a bundle loads it by this.
    pub fn load_to_judge(&self) -> Records {
        load_at_most(self, MAX_RECORDS)
    }
}

fn load_at_most(bundle: &Bundle, most: u64) -> Records {
    let counted = Counted::of(bundle);
    let Some(plan) = counted.plan(most) else {
        return bundle.load(None, None);
    };
    let mut records: Vec<Record> = bundle
        .stream(None, None)
        .filter(|record| plan.keeps(record))
        .collect();
    records.push(plan.gap());
    Records::new(records)
}

/// What a bundle holds.
#[derive(Default)]
struct Counted {
    samples: BTreeMap<&'static str, u64>,
    others: u64,
    span: Option<(Moment, Moment)>,
    lines: Vec<Moment>,
}

/// Whether samples around a line are worth keeping: it is an error, or of a network device, or
/// an older recording says that a signature knows it.
fn is_telling(line: &KernelLine) -> bool {
    let is_grave = matches!(
        line.level.as_deref(),
        Some("emerg" | "alert" | "crit" | "err")
    );
    is_grave || line.device.is_some() || line.class.is_some()
}

impl Counted {
    fn of(bundle: &Bundle) -> Self {
        let mut counted = Self::default();
        for record in bundle.stream(None, None) {
            counted.add(&record);
        }
        counted
    }

    fn add(&mut self, record: &Record) {
        match &record.body {
            Body::Sample { fact, .. } if fact.kind != FactKind::Event => {
                *self.samples.entry(fact.name).or_default() += 1;
                // Samples hold now, so they tell when the watch was.
                let (from, _) = self.span.unwrap_or((record.at, record.at));
                self.span = Some((from, record.at));
            }
            Body::Event { fact, .. } if **fact == KLOG_EVENT.fact => {
                self.others += 1;
                if record.says(&KLOG_EVENT).is_some_and(is_telling) {
                    self.lines.push(record.at);
                }
            }
            _ => self.others += 1,
        }
    }

    /// How to make it fit; `None` when it does.
    fn plan(&self, most: u64) -> Option<Plan> {
        let total = self.others + self.samples.values().sum::<u64>();
        if total <= most {
            return None;
        }
        let many = self.samples.iter().filter(|(_, n)| **n > FEW);
        let many: BTreeMap<&'static str, u64> = many.map(|(name, n)| (*name, *n)).collect();
        let n_many: u64 = many.values().sum();
        let room = most.saturating_sub(total - n_many);
        let (from, to) = self.span?;
        let part = room as f64 / n_many.max(1) as f64;
        let tail = to.since(from).mul_f64(part.clamp(0.0, 1.0));
        let before = |moment: Moment, time: Duration| {
            let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            Moment::from_ns(moment.as_ns().saturating_sub(ns))
        };
        let around = self.lines.iter().rev().take(MAX_LINES);
        Some(Plan {
            many: many.into_keys().collect(),
            tail: before(to, tail),
            around: around
                .map(|at| before(*at, AROUND.0)..=at.after(AROUND.1))
                .collect(),
            n_all: total,
            end: to,
        })
    }
}

/// What is kept.
struct Plan {
    many: Vec<&'static str>,
    tail: Moment,
    around: Vec<RangeInclusive<Moment>>,
    n_all: u64,
    end: Moment,
}

impl Plan {
    fn keeps(&self, record: &Record) -> bool {
        let Body::Sample { fact, .. } = &record.body else {
            return true;
        };
        record.at >= self.tail
            || !self.many.contains(&fact.name)
            || self.around.iter().any(|range| range.contains(&record.at))
    }

    fn gap(&self) -> Record {
        let text = format!(
            "the bundle holds {} records, more than are judged at once: {} are judged for the \
             last {} s and around lines of the kernel's log only",
            self.n_all,
            self.many.join(", "),
            self.end.since(self.tail).as_secs()
        );
        let mut out = Sink::new("judge", self.end);
        out.gap(&Subject::node(), Gap::new("judge", Why::Overrun, text));
        out.into_records().remove(0)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sexton_model::fact::core::CORE_SYSTEM_RATIO;
    use sexton_model::fact::memcg::MEMCG_DYING;
    use sexton_model::timeline::Timeline;

    use super::*;
    use crate::{BundleWriter, Limits, Node};

    const N: u64 = 60_000;

    /// Ten samples a second of a core, one census a minute, one line of the log in between.
    fn bundle(folder: &Path) -> Bundle {
        let limits = Limits::ring(64 << 20, Duration::from_secs(86_400));
        let node = Node {
            name: "node".into(),
            kernel: "6.1".into(),
            boot_id: "boot".into(),
        };
        let at = |i: u64| Moment::from_ns(1_000_000_000_000 + i * 100_000_000);
        let mut writer = BundleWriter::create(folder, limits, node, at(0)).expect("a bundle");
        let mut records = Vec::new();
        for i in 0..N {
            let mut out = Sink::new("cores", at(i));
            out.sample(&Subject::cpu(0), &CORE_SYSTEM_RATIO, 0.5);
            if i % 600 == 0 {
                out.sample(&Subject::node(), &MEMCG_DYING, i as f64);
            }
            if i == 10_000 {
                let line = KernelLine {
                    level: Some("err".to_owned()),
                    ..KernelLine::default()
                };
                out.event(at(i), &Subject::node(), &KLOG_EVENT, line);
            }
            records.extend(out.into_records());
        }
        writer.append(&records).expect("room");
        writer.finish(at(N)).expect("sealed");
        Bundle::open(folder).expect("a bundle")
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let bundle = bundle(folder.path());
        let all = load_at_most(&bundle, N * 2);
        assert_eq!(all.of(&CORE_SYSTEM_RATIO).count() as u64, N);
        assert_eq!(all.gaps().count(), 0);
        let some = load_at_most(&bundle, 5_000);
        let n = some.of(&CORE_SYSTEM_RATIO).count();
        assert!((4_500..6_000).contains(&n), "{n}");
        assert_eq!(
            some.of(&MEMCG_DYING).count() as u64,
            N / 600,
            "all of the rare"
        );
        assert_eq!(some.of(&KLOG_EVENT).count(), 1);
        let line = some.of(&KLOG_EVENT).next().expect("a line").at;
        let near = some.of(&CORE_SYSTEM_RATIO);
        let near = near.filter(|record| {
            record.at <= line.after(AROUND.1) && line.since(record.at) <= AROUND.0
        });
        assert_eq!(near.count(), 351, "30 s before it and 5 s after it");
        assert_eq!(some.gaps().count(), 1);
    }
}
