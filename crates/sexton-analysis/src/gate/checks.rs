//! The checks, one function each.

use std::collections::BTreeMap;

use sexton_model::fact::container::{CONTAINER_RUNNING, CONTAINER_STARTED, CONTAINER_YOUNG};
use sexton_model::fact::klog::{KLOG_EVENT, KLOG_LINES};
use sexton_model::fact::nic;
use sexton_model::gap::Why;
use sexton_model::gate::{Check, Live, Passed, UnitSurvey};
use sexton_model::moment::Moment;
use sexton_model::timeline::Timeline;

use super::{GatePolicy, Limit, Seen};

pub(super) static MEMORY_CGROUPS: Limit = Limit {
    name: "memory_cgroups",
    default: 1_000.0,
    range: (1.0, 1e9),
    title: "memory cgroups, live and dying",
    code: "MCG003",
    why: "the gate that the founding incident's engineers put into their pipeline",
};

pub(super) static PER_LIVE: Limit = Limit {
    name: "memory_cgroups_per_live",
    default: 4.0,
    range: (1.0, 1e6),
    title: "memory cgroups for each live one",
    code: "MCG001",
    why: "more than so many for each live one cannot be use; the founding incident had 286. \
          Fewer than 250 in all are too few to tell",
};

/// Fewer memory cgroups than this pass whatever their ratio: after a reboot or a deploy a
/// handful of live ones has as many dying beside it. A quarter of the limit on all.
const PER_LIVE_FLOOR: u64 = 250;

pub(super) static FAILED_UNITS: Limit = Limit {
    name: "failed_units",
    default: 0.0,
    range: (0.0, 1e6),
    title: "failed units",
    code: "UNIT003",
    why: "an image that boots with a failed unit carries something that does not belong there",
};

pub(super) static RESTARTS: Limit = Limit {
    name: "restarts_per_hour",
    default: 4.0,
    range: (0.0, 1e6),
    title: "automatic restarts of one unit in an hour",
    code: "UNIT001",
    why: "one each quarter of an hour leaves a hundred runs a day behind; the alert that most \
          fleets have wants 36 an hour",
};

pub(super) static YOUNG_CONTAINERS: Limit = Limit {
    name: "young_containers",
    default: 3.0,
    range: (0.0, 1e6),
    title: "starts of containers of one image in a minute",
    code: "CTR001",
    why: "an image that is started more often than every 20 seconds is in a loop or a deploy; \
          a deploy is over at the next look",
};

pub(super) static UNWANTED_UNITS: Limit = Limit {
    name: "unwanted_units",
    default: 0.0,
    range: (0.0, 1e6),
    title: "units that this shape of node has no use for",
    code: "UNIT004",
    why: "the founding incident began with one",
};

pub(super) static NIC_RESETS: Limit = Limit {
    name: "nic_resets",
    default: 0.0,
    range: (0.0, 1e6),
    title: "resets and timeouts of network devices since boot",
    code: "NIC001",
    why: "a device that works is never reset",
};

/// So long after the first line of a reset its other lines follow.
const ONE_RESET_NS: u64 = 10_000_000_000;

/// So long a container is young.
const YOUNG_NS: u64 = 60_000_000_000;

/// There is nothing that could fail.
const NO_SYSTEMD: &str = "systemd does not run this node";

/// Names shown in a sentence.
const MAX_NAMES: usize = 3;

/// A check in the making.
fn check(limit: &'static Limit, policy: &GatePolicy) -> Check {
    Check {
        name: limit.name,
        title: limit.title,
        code: limit.code,
        passed: Passed::Unknown,
        value: None,
        limit: policy.limit(limit),
        why: String::new(),
        subjects: Vec::new(),
        next: None,
    }
}

/// Fills in a check.
trait Fill {
    fn counted(self, value: f64, why: String) -> Check;
    fn at_least(self, value: f64, why: String) -> Check;
    fn unknown(self, why: impl Into<String>) -> Check;
    fn about(self, subjects: Vec<String>) -> Check;
}

impl Fill for Check {
    fn counted(mut self, value: f64, why: String) -> Check {
        self.passed = if value <= self.limit {
            Passed::Yes
        } else {
            Passed::No
        };
        self.value = Some(value);
        self.why = why;
        self
    }

    fn unknown(mut self, why: impl Into<String>) -> Check {
        self.why = why.into();
        self
    }

    fn about(mut self, subjects: Vec<String>) -> Check {
        self.subjects = subjects;
        self
    }

    /// What was counted is too little to pass, and enough to fail.
    fn at_least(self, value: f64, why: String) -> Check {
        let check = self.counted(value, why);
        match check.passed {
            Passed::Yes => Check {
                passed: Passed::Unknown,
                ..check
            },
            _ => check,
        }
    }
}

fn first_gap(seen: &Seen<'_>) -> String {
    let gap = seen.memory.gaps.first();
    gap.map_or("it was not counted".into(), |gap| gap.text.clone())
}

pub(super) fn memory_cgroups(seen: &Seen<'_>, policy: &GatePolicy) -> Check {
    let check = check(&MEMORY_CGROUPS, policy);
    let next = Some("sudo sexton zombies".into());
    match seen.memory.total {
        Some(total) => Check { next, ..check }.counted(
            total as f64,
            format!("the kernel tracks {total} memory cgroups"),
        ),
        None => check.unknown(first_gap(seen)),
    }
}

/// How many live ones are enough to pass with so many in all.
pub(super) fn enough_live(total: u64, policy: &GatePolicy) -> u64 {
    match total < PER_LIVE_FLOOR {
        true => 0,
        false => (total as f64 / policy.limit(&PER_LIVE)).ceil() as u64,
    }
}

pub(super) fn memory_cgroups_per_live(seen: &Seen<'_>, policy: &GatePolicy) -> Check {
    let check = Check {
        next: Some("sudo sexton zombies".into()),
        ..check(&PER_LIVE, policy)
    };
    let Some(total) = seen.memory.total else {
        return check.unknown(first_gap(seen));
    };
    let ratio = |live: u64| total as f64 / live.max(1) as f64;
    if total < PER_LIVE_FLOOR {
        return Check {
            value: match seen.memory.live {
                Some(Live::Exactly(live)) => Some(ratio(live)),
                _ => None,
            },
            passed: Passed::Yes,
            why: format!("{total} in all: too few to be judged by their ratio"),
            ..check
        };
    }
    match seen.memory.live {
        Some(Live::Exactly(live)) => {
            check.counted(ratio(live), format!("{total} for {live} live ones"))
        }
        // More live ones only make the ratio smaller.
        Some(Live::AtLeast(live)) => {
            let check = check.counted(
                ratio(live),
                format!("{total} for at least {live} live ones"),
            );
            match check.passed {
                Passed::No => Check {
                    passed: Passed::Unknown,
                    why: format!("{}; counting was ended there", check.why),
                    ..check
                },
                _ => check,
            }
        }
        None => check.unknown(first_gap(seen)),
    }
}

/// Some names, and how many more.
fn names(all: &[String]) -> String {
    let shown = all.iter().take(MAX_NAMES).map(String::as_str);
    let shown: Vec<&str> = shown.collect();
    match all.len().saturating_sub(MAX_NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn wanted<'a>(policy: &GatePolicy, all: impl Iterator<Item = &'a String>) -> Vec<String> {
    all.filter(|name| !policy.ignores_unit(name))
        .cloned()
        .collect()
}

pub(super) fn failed_units(seen: &Seen<'_>, policy: &GatePolicy) -> Check {
    let check = check(&FAILED_UNITS, policy);
    let units = match seen.units {
        Ok(units) => units,
        Err(gap) => return check.unknown(&gap.text),
    };
    let failed = wanted(policy, units.failed.iter());
    let why = match failed.len() {
        0 if units.n_units == 0 => NO_SYSTEMD.to_owned(),
        0 => format!("none of {} units has failed", units.n_units),
        _ => format!("failed: {}", names(&failed)),
    };
    let next = failed
        .first()
        .map(|unit| format!("systemctl status {unit}"));
    Check {
        next,
        ..check.counted(failed.len() as f64, why)
    }
    .about(failed)
}

pub(super) fn restarts_per_hour(seen: &Seen<'_>, policy: &GatePolicy) -> Check {
    let check = check(&RESTARTS, policy);
    let units = match seen.units {
        Ok(units) => units,
        Err(gap) => return check.unknown(&gap.text),
    };
    let mut restarted: Vec<&(String, u64)> = units
        .restarts
        .iter()
        .filter(|(unit, n)| *n > 0 && !policy.ignores_unit(unit))
        .collect();
    restarted.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    let most = restarted.first().map_or(0, |(_, n)| *n);
    // A node that is up for minutes has no hour yet: what it did counts as one.
    let hours = units.uptime_seconds.max(3600) as f64 / 3600.0;
    let value = most as f64 / hours;
    let why = match restarted.first() {
        None if units.n_units == 0 => NO_SYSTEMD.to_owned(),
        None => "systemd has restarted no service".to_owned(),
        Some((unit, n)) => format!(
            "systemd has restarted {unit} {n} times in {hours:.0} h, or in less since it was \
             started by hand"
        ),
    };
    let subjects = restarted.iter().map(|(unit, _)| unit.clone()).collect();
    let next = restarted.first();
    let check = Check {
        next: next.map(|(unit, _)| format!("systemctl status {unit}")),
        ..check
    };
    unless_unasked(check, units, value, why).about(subjects)
}

fn unless_unasked(check: Check, units: &UnitSurvey, value: f64, why: String) -> Check {
    match units.n_unasked {
        0 => check.counted(value, why),
        n => check.at_least(
            value,
            format!("{why}; {n} services could not be asked in time"),
        ),
    }
}

/// Why a sensor said nothing of this.
fn silence(seen: &Seen<'_>, sensor: &str) -> String {
    let mut gaps = seen.records.gaps();
    let said = gaps.find(|(_, _, gap)| gap.sensor == sensor);
    said.map_or_else(
        || format!("the sensor {sensor} did not answer in time"),
        |(_, _, gap)| gap.text.clone(),
    )
}

pub(super) fn young_containers(seen: &Seen<'_>, policy: &GatePolicy) -> Check {
    let check = check(&YOUNG_CONTAINERS, policy);
    if seen.records.of(&CONTAINER_RUNNING).next().is_none() {
        let nobody = seen
            .records
            .gaps()
            .any(|(_, _, gap)| gap.sensor == "containers" && gap.why == Why::Unsupported);
        return match (nobody, seen.other_runtimes) {
            (true, []) => check.counted(0.0, "no container runtime runs here".into()),
            (true, others) => {
                check.unknown(format!("{} is here and is not asked", others.join(", ")))
            }
            (false, _) => check.unknown(silence(seen, "containers")),
        };
    }
    let mut images: BTreeMap<String, f64> = BTreeMap::new();
    for record in seen.records.of(&CONTAINER_YOUNG) {
        let young = images.entry(record.subject.name.to_string()).or_default();
        *young = young.max(record.value().unwrap_or(0.0));
    }
    for (image, n) in starts_within_a_minute(seen) {
        let young = images.entry(image).or_default();
        *young = young.max(n);
    }
    let mut images: Vec<(String, f64)> = images.into_iter().filter(|(_, n)| *n > 0.0).collect();
    images.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let (most, why) = match images.first() {
        Some((image, n)) => (*n, format!("{image} was started {n} times in a minute")),
        None => (0.0, "no container was started in the last minute".into()),
    };
    check
        .counted(most, why)
        .about(images.into_iter().map(|(image, _)| image).collect())
}

fn starts_within_a_minute(seen: &Seen<'_>) -> BTreeMap<String, f64> {
    let now = seen.records.span().map(|span| span.end().as_ns());
    let since = Moment::from_ns(now.unwrap_or(0).saturating_sub(YOUNG_NS));
    let mut images = BTreeMap::new();
    for record in seen.records.of(&CONTAINER_STARTED) {
        if record.at >= since {
            let image = record.detail("image").unwrap_or("an unknown image");
            *images.entry(image.to_owned()).or_insert(0.0) += 1.0;
        }
    }
    images
}

pub(super) fn unwanted_units(seen: &Seen<'_>, policy: &GatePolicy) -> Option<Check> {
    let check = check(&UNWANTED_UNITS, policy);
    let units = match seen.unwanted? {
        Ok(units) => wanted(policy, units.iter()),
        Err(gap) => return Some(check.unknown(&gap.text)),
    };
    let why = match units.len() {
        0 => "every enabled unit has a use here, or may have".to_owned(),
        _ => format!("of no use here: {}", names(&units)),
    };
    let next = units.first().map(|_| "sexton image audit /".to_owned());
    let check = check.counted(units.len() as f64, why);
    Some(Check { next, ..check }.about(units))
}

pub(super) fn nic_resets(seen: &Seen<'_>, policy: &GatePolicy) -> Check {
    let check = Check {
        next: Some("sudo sexton diagnose".into()),
        ..check(&NIC_RESETS, policy)
    };
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
    let log_is_whole = log_is_whole(seen.records);
    devices.retain(|_, n| *n > 0.0);
    let total = devices.values().fold(0.0, |sum, n| sum + n);
    let mut devices: Vec<(String, f64)> = devices.into_iter().collect();
    devices.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let why = match devices.first() {
        Some((device, n)) => format!("{device} was reset or timed out ({n})"),
        None => "no reset in the kernel's log or the counters of drivers".into(),
    };
    let check = match (log_is_whole, has_counters) {
        (Ok(()), _) => check.counted(total, why),
        (Err(_), true) => check.counted(total, format!("{why}; the log is not whole")),
        (Err(gap), false) => check.at_least(total, format!("{why}, but {gap}")),
    };
    check.about(devices.into_iter().map(|(device, _)| device).collect())
}

/// `eth0/tx-3` is a queue of `eth0`.
fn device_of(subject: &str) -> &str {
    subject.split('/').next().unwrap_or(subject)
}

/// Resets by device; the lines of one reset count once.
fn resets_in_log(records: &dyn Timeline) -> BTreeMap<String, f64> {
    let mut devices: BTreeMap<String, (f64, Option<Moment>)> = BTreeMap::new();
    for record in records.of(&KLOG_EVENT) {
        let class = record.detail("class").unwrap_or_default();
        if !matches!(class, "nic_reset" | "nic_tx_timeout" | "nic_reset_failed") {
            continue;
        }
        let name = record.detail("device").or(record.detail("bus"));
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

/// Whether the log was read from its first line on; else why not.
fn log_is_whole(records: &dyn Timeline) -> Result<(), String> {
    let mut gaps = records.gaps().filter(|(_, _, gap)| gap.sensor == "klog");
    match gaps.next() {
        Some((_, _, gap)) => Err(gap.text.clone()),
        None if records.of(&KLOG_LINES).next().is_none() => {
            Err("the kernel's log was not read in time".into())
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
