//! The hypervisor gave the cores to others.

use sexton_model::diagnosis::Explanation;
use sexton_model::fact::core::CORE_STEAL_RATIO;
use sexton_model::finding::Finding;

use super::{any_of, by_share, not_seen};
use crate::case::Case;
use crate::evidence::span;
use crate::words::figures::percent;

const NAME: &str = "steal";

/// Less of a core's time than this starves nothing.
///
/// Chosen: a tenth. It stretches a second of work by as much, and a wait of polling no more.
const MUCH: f64 = 0.1;

pub(super) fn weigh(case: &Case<'_>, findings: &[Finding]) -> Option<Explanation> {
    if !any_of(
        findings,
        &["CPU001", "CPU002", "NET001", "NIC001", "KRN001"],
    ) {
        return None;
    }
    let cores = case.by_subject(&CORE_STEAL_RATIO).into_iter();
    let worst = cores
        .filter_map(|(core, records)| {
            let samples = records.iter();
            let samples: Vec<_> = samples
                .filter_map(|record| Some((record.at, record.value()?)))
                .collect();
            Some((span::mean(&samples, &[span::EVER])?, core))
        })
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)));
    let Some((ratio, core)) = worst else {
        return not_seen(case, NAME, "cores");
    };
    let text = format!(
        "steal time was {} of core {}, the worst one",
        percent(ratio),
        core.name
    );
    by_share(NAME, "cores: /proc/stat", (ratio, MUCH), text)
}
