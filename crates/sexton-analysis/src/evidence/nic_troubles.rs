//! What went wrong with network devices, from the kernel's log and from counters.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::fact::Fact;
use sexton_model::fact::nic::{
    NIC_DRIVER_TX_TIMEOUTS, NIC_KEEP_ALIVE_TIMEOUTS, NIC_RECOVERIES, NIC_RESETS, NIC_RESETS_ADMIN,
    NIC_RESETS_COMPLETION, NIC_RESETS_DEVICE, NIC_RESETS_FAILED, NIC_RESETS_INTERRUPT,
    NIC_RESETS_STARVED, NIC_RESETS_WATCHDOG, NIC_TX_TIMEOUTS,
};
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::kernel_log::{self, Line};

/// Classes of lines that mean that a device was reset or got stuck. A link that goes down
/// and comes back is none of them.
pub(crate) const CLASSES: &[&str] = &[
    "nic_reset",
    "nic_reset_failed",
    "nic_tx_timeout",
    "nic_completion_lost",
    "napi_starved",
    "nic_keep_alive",
    "nic_interrupt_lost",
];

/// Counters that mean the same.
pub(crate) static COUNTERS: [&Fact; 12] = [
    &NIC_RESETS,
    &NIC_RESETS_FAILED,
    &NIC_RESETS_STARVED,
    &NIC_RESETS_COMPLETION,
    &NIC_RESETS_INTERRUPT,
    &NIC_RESETS_WATCHDOG,
    &NIC_RESETS_DEVICE,
    &NIC_RESETS_ADMIN,
    &NIC_DRIVER_TX_TIMEOUTS,
    &NIC_KEEP_ALIVE_TIMEOUTS,
    &NIC_TX_TIMEOUTS,
    &NIC_RECOVERIES,
];

/// A driver's patience, where its line does not say: the transmit watchdog of ena and of
/// the kernel's network stack.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(5);

/// All that went wrong with one device.
#[derive(Debug, Default)]
pub(crate) struct Trouble<'a> {
    /// Lines of the log, in the order of time.
    pub(crate) lines: Vec<Line<'a>>,
    /// Counters that grew while we looked.
    pub(crate) growths: Vec<Growth<'a>>,
    /// Counters that were not zero when we came.
    pub(crate) standing: Vec<(&'static Fact, &'a Subject, f64)>,
}

/// A counter that grew.
#[derive(Debug)]
pub(crate) struct Growth<'a> {
    pub(crate) fact: &'static Fact,
    /// The device or its queue.
    pub(crate) subject: &'a Subject,
    /// The last look before.
    pub(crate) from: Moment,
    /// The look that found more.
    pub(crate) to: Moment,
    /// By how much.
    pub(crate) by: f64,
}

impl Trouble<'_> {
    /// When something happened to the device, as far as moments are known.
    pub(crate) fn moments(&self) -> Vec<Moment> {
        let lines = self.lines.iter().map(|line| line.at());
        let mut all: Vec<Moment> = lines
            .chain(self.growths.iter().map(|growth| growth.to))
            .collect();
        all.sort_unstable();
        all
    }
}

/// Troubles by device.
pub(crate) type Troubles<'a> = BTreeMap<Subject, Trouble<'a>>;

/// What went wrong, by device. What no device is named for is the node's.
pub(crate) fn troubles<'a>(case: &Case<'a>) -> Troubles<'a> {
    let mut troubles: BTreeMap<Subject, Trouble<'a>> = BTreeMap::new();
    for line in kernel_log::lines(case, CLASSES) {
        let device = match line.subject().kind {
            SubjectKind::Device => line.subject().clone(),
            _ => match &line.says().bus {
                Some(bus) => Subject::new(SubjectKind::Device, bus.as_str()),
                None => Subject::node(),
            },
        };
        troubles.entry(device).or_default().lines.push(line);
    }
    for fact in COUNTERS {
        for (subject, records) in case.by_subject(fact) {
            let values: Vec<(Moment, f64)> = records
                .iter()
                .filter_map(|record| Some((record.at, record.value()?)))
                .collect();
            let Some((_, first)) = values.first() else {
                continue;
            };
            let growths = values.windows(2).filter(|pair| pair[1].1 > pair[0].1);
            let growths: Vec<Growth<'a>> = growths
                .map(|pair| Growth {
                    fact,
                    subject,
                    from: pair[0].0,
                    to: pair[1].0,
                    by: pair[1].1 - pair[0].1,
                })
                .collect();
            if *first <= 0.0 && growths.is_empty() {
                continue;
            }
            let trouble = troubles.entry(device_of(subject)).or_default();
            trouble.growths.extend(growths);
            if *first > 0.0 {
                trouble.standing.push((fact, subject, *first));
            }
        }
    }
    troubles
}

/// The device of a queue, or itself.
fn device_of(subject: &Subject) -> Subject {
    match subject.kind {
        SubjectKind::Queue => {
            let device = subject.name.split('/').next().unwrap_or_default();
            Subject::new(SubjectKind::Device, device)
        }
        _ => subject.clone(),
    }
}

/// The queue that a line names.
pub(crate) fn queue_of(line: Line<'_>) -> Option<Subject> {
    let device = line.says().device.as_ref()?;
    let queue = line.says().queue?;
    Some(Subject::new(
        SubjectKind::Queue,
        format!("{device}/tx-{queue}"),
    ))
}

/// How long the device had been stuck when the line was written, as far as it says.
pub(crate) fn stuck_for(line: Line<'_>) -> Duration {
    let us = line.says().since_napi_us.or(line.says().threshold_us);
    let ms = [
        "since_napi_ms",
        "stuck_ms",
        "timeout_ms",
        "since_interrupt_ms",
    ];
    let ms = ms.into_iter().find_map(|key| line.captured(key));
    let said = us
        .map(Duration::from_micros)
        .or(ms.map(Duration::from_millis));
    said.unwrap_or(WATCHDOG).max(WATCHDOG)
}
