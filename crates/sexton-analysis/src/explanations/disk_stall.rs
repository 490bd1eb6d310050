//! Everything waits for a disk.

use sexton_model::diagnosis::Explanation;
use sexton_model::fact::core::CORE_IOWAIT_RATIO;
use sexton_model::fact::pressure::PRESSURE_IO_FULL_RATIO;
use sexton_model::finding::{Evidence, Finding};
use sexton_model::subject::Subject;

use super::{any_of, by_share, not_seen, plays_a_part};
use crate::case::Case;
use crate::evidence::kernel_log;
use crate::evidence::span;
use crate::words::figures::{percent, times};

const NAME: &str = "disk stall";

/// Less of the time than this in which all tasks wait for I/O stalls nothing.
///
/// Chosen: a tenth; what waits then is held up by a tenth, not for seconds.
const MUCH: f64 = 0.1;

pub(super) fn weigh(case: &Case<'_>, findings: &[Finding]) -> Option<Explanation> {
    if !any_of(
        findings,
        &["CPU001", "NET001", "NIC001", "JOB001", "KRN001"],
    ) {
        return None;
    }
    let hung = kernel_log::lines(case, &["hung_task"]);
    let window = case.window();
    let inside = |at| window.as_ref().is_some_and(|window| window.contains(&at));
    let n_hung = hung.iter().filter(|line| inside(line.at())).count();
    if n_hung > 0 {
        let text = format!(
            "a task hung in D state {}, usually on a disk or a mount",
            times(n_hung)
        );
        return plays_a_part(NAME, Evidence::speaks_for("klog", text));
    }
    let node = Subject::node();
    let mean = |values: Vec<f64>| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let pressure = case
        .samples(&PRESSURE_IO_FULL_RATIO, &node)
        .map(|(_, value)| value);
    let cores = case.by_subject(&CORE_IOWAIT_RATIO).into_values();
    let iowait = cores.filter_map(|records| {
        let samples = records.iter();
        let samples: Vec<_> = samples
            .filter_map(|record| Some((record.at, record.value()?)))
            .collect();
        span::mean(&samples, &[span::EVER])
    });
    let (ratio, source, what) = match (mean(pressure.collect()), mean(iowait.collect())) {
        (Some(ratio), _) => (ratio, "pressure: io full", "all tasks waited for I/O in"),
        (None, Some(ratio)) => (ratio, "cores: iowait", "cores waited for I/O in"),
        (None, None) => return not_seen(case, NAME, "pressure"),
    };
    let text = format!("{what} {} of the time", percent(ratio));
    by_share(NAME, source, (ratio, MUCH), text)
}
