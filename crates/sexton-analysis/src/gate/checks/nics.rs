//! Resets of network devices.

use std::collections::{BTreeMap, BTreeSet};

use sexton_model::fact::klog::{KLOG_EVENT, KLOG_LINES};
use sexton_model::fact::nic;
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::timeline::Timeline;

use super::Counting;
use crate::gate::Seen;
use crate::gate::count::Count;
use crate::gate::policy::{GatePolicy, Limit};

pub(super) static NIC_RESETS: Counting = Counting {
    limit: Limit {
        name: "nic_resets",
        default: 0.0,
        range: (0.0, 1e6),
        title: "resets and timeouts of network devices since boot",
        code: "NIC001",
        why: "a device that works is never reset",
    },
    count: nic_resets,
};

/// So long after the first line of a reset its other lines follow.
const ONE_RESET_NS: u64 = 10_000_000_000;

fn nic_resets(seen: &Seen<'_>, _: &GatePolicy) -> Count {
    let mut devices = resets_in_log(seen.records);
    let mut has_counters = false;
    for fact in [&nic::NIC_RESETS, &nic::NIC_TX_TIMEOUTS] {
        for record in seen.records.of(fact) {
            has_counters = true;
            let name = device_of(&record.subject.name);
            let n = devices.entry(name.to_owned()).or_default();
            *n = n.max(record.value().unwrap_or(0.0));
        }
    }
    devices.retain(|_, n| *n > 0.0);
    let total = devices.values().fold(0.0, |sum, n| sum + n);
    let mut devices: Vec<(String, f64)> = devices.into_iter().collect();
    devices.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let why = match devices.first() {
        Some((device, n)) => format!("{device} was reset or timed out ({n})"),
        None => "no reset seen".into(),
    };
    let count = match (
        log(seen.records),
        has_counters,
        without_counter(seen.records),
    ) {
        (Log::Whole, ..) => Count::of(total, why),
        // What scrolled out of a log that was read is still in the counters since boot.
        (Log::Cut(gap), true, None) => Count::of(total, format!("{why}; {gap}")),
        (Log::Cut(gap), true, Some(device)) => {
            let why = format!("{why}, but {gap}, and {device} has no counter of resets");
            Count::at_least(total, why)
        }
        (Log::Cut(gap) | Log::Unread(gap), ..) => {
            Count::at_least(total, format!("{why}, but {gap}"))
        }
    };
    count
        .next("sudo sexton diagnose".to_owned())
        .about(devices.into_iter().map(|(device, _)| device).collect())
}

/// A device that was found and has no counter: the one of another device says nothing of it.
fn without_counter(records: &dyn Timeline) -> Option<String> {
    let counters = [&nic::NIC_RESETS, &nic::NIC_TX_TIMEOUTS].into_iter();
    let counted = counters.flat_map(|fact| records.of(fact));
    let counted: BTreeSet<&str> = counted
        .map(|record| device_of(&record.subject.name))
        .collect();
    let mut found = records.of(&nic::NIC_IDENTITY);
    let found = found.find(|record| !counted.contains(&*record.subject.name));
    found.map(|record| record.subject.name.to_string())
}

/// `eth0/tx-3` is a queue of `eth0`.
fn device_of(subject: &str) -> &str {
    subject.split('/').next().unwrap_or(subject)
}

/// Resets by device; the lines of one reset count once. What a program wrote into the log is
/// no reset.
fn resets_in_log(records: &dyn Timeline) -> BTreeMap<String, f64> {
    let mut devices: BTreeMap<String, (f64, Option<Moment>)> = BTreeMap::new();
    for record in records.of(&KLOG_EVENT) {
        let Some(line) = record.says(&KLOG_EVENT) else {
            continue;
        };
        let class = line.class.as_deref().unwrap_or_default();
        let is_one = matches!(class, "nic_reset" | "nic_tx_timeout" | "nic_reset_failed");
        if !is_one || line.written_by.as_deref() == Some("userspace") {
            continue;
        }
        let name = line.device.as_deref().or(line.bus.as_deref());
        let name = name.unwrap_or("a network device").to_owned();
        let (n, last) = devices.entry(name).or_default();
        let is_new = last.is_none_or(|last| record.at.since(last).as_nanos() > ONE_RESET_NS.into());
        *n += f64::from(u8::from(is_new));
        *last = Some(record.at);
    }
    devices
        .into_iter()
        .map(|(name, (n, _))| (name, n))
        .collect()
}

/// How much of the kernel's log was read.
pub(super) enum Log {
    /// All of it since boot.
    Whole,
    /// Its first lines had been overwritten, or some were lost: why.
    Cut(String),
    /// None, or not all that was there: why. Many drivers report a reset nowhere else, so
    /// their counters do not stand in for it.
    Unread(String),
}

/// Why what happened after a moment may be missing from a log whose first lines were overwritten:
/// in a storm of lines these are minutes old. `None` where a line of before that moment is there.
pub(super) fn cut_after(records: &dyn Timeline, moment: Moment) -> Option<String> {
    let Log::Cut(gap) = log(records) else {
        return None;
    };
    let gaps = records.gaps().filter(|(_, _, gap)| gap.sensor == "klog");
    // More than the first lines are missing.
    let has_hole = gaps.count() > 1;
    let reaches_back = records.of(&KLOG_EVENT).any(|line| line.at <= moment);
    (has_hole || !reaches_back).then_some(gap)
}

pub(super) fn log(records: &dyn Timeline) -> Log {
    let gaps = records.gaps().filter(|(_, _, gap)| gap.sensor == "klog");
    let gaps: Vec<&Gap> = gaps.map(|(_, _, gap)| gap).collect();
    let was_read = records.of(&KLOG_LINES).next().is_some();
    let is_lost = |gap: &&Gap| matches!(gap.why, Why::Lost(_));
    match gaps.iter().find(|gap| !is_lost(gap)) {
        Some(gap) => Log::Unread(gap.text.clone()),
        None if !was_read => Log::Unread("the kernel's log was not read in time".into()),
        None => match gaps.first() {
            Some(gap) => Log::Cut(gap.text.clone()),
            None => Log::Whole,
        },
    }
}
