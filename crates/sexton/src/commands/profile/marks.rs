//! What happened, to be drawn on heat maps.

use std::path::PathBuf;

use anyhow::Result;
use sexton_analysis::evidence::recognized::recognize;
use sexton_model::fact::Fact;
use sexton_model::fact::klog::KLOG_EVENT;
use sexton_model::fact::unit::{StartedBy, UNIT_FAILED, UNIT_STARTED};
use sexton_model::record::Record;
use sexton_profile::filter::TimePoint;
use sexton_profile::heatmap::Mark;
use sexton_signatures::Signatures;
use sexton_store::Bundle;

use super::input::is_bundle;

/// Events that people look for on a heat map.
const FACTS: [&Fact; 3] = [&KLOG_EVENT.fact, &UNIT_STARTED.fact, &UNIT_FAILED.fact];

/// More are not drawn: they would cover the picture.
const MAX_MARKS: usize = 1000;

/// Those that were asked for, and those of a bundle. `origin_ns` is where offsets count from.
pub fn collect(
    asked: &[(TimePoint, String)],
    files: &[PathBuf],
    origin_ns: u64,
) -> Result<Vec<Mark>> {
    let asked = asked.iter().map(|(point, text)| Mark {
        at_ns: match point {
            TimePoint::Offset(ns) => origin_ns.saturating_add(*ns),
            TimePoint::Clock(ns) => *ns,
        },
        text: text.clone(),
    });
    let mut marks: Vec<Mark> = asked.collect();
    if let [folder] = files
        && is_bundle(folder)
    {
        let bundle = Bundle::open(folder)?;
        let records = bundle.stream(None, Some(&FACTS));
        let signatures = Signatures::built_in();
        let events = records.filter_map(|record| {
            let known = recognize(&record, &signatures);
            mark(&known.unwrap_or(record))
        });
        marks.extend(events.take(MAX_MARKS));
    }
    Ok(marks)
}

/// A known line of the kernel's log, a restart or a failure of a unit.
fn mark(record: &Record) -> Option<Mark> {
    let name = &record.subject.name;
    let what = if let Some(line) = record.says(&KLOG_EVENT) {
        let device = line.device.as_deref().unwrap_or_default();
        format!("{} {device}", line.class.as_ref()?)
    } else if record.says(&UNIT_FAILED).is_some() {
        format!("{name} failed")
    } else if record.says(&UNIT_STARTED)?.by == Some(StartedBy::Restart) {
        format!("{name} restarted")
    } else {
        return None;
    };
    Some(Mark {
        at_ns: record.at.as_ns(),
        text: what.trim_end().to_owned(),
    })
}
