//! NET001: NAPI polling starves on a core
//!
//! Means: work of the network waits on a core because something else holds that core: a
//! soft interrupt that was raised and not served, or a thread that polls and does not get
//! to run. Drivers reset their device when this lasts about 5 s, so it is reported at 0.5 s.
//! Not this: a slow network, or a full one; packets that wait inside the device; a wait for
//! work of sexton itself. A task that only had its turn on a shared core is not named.
//! By hand: `sudo bpftrace -e 'tracepoint:irq:softirq_raise /args->vec==3/ { @[cpu]=nsecs }'`,
//! or `/proc/net/softnet_stat` for what was dropped meanwhile.
//! Next: the process that holds the core, which the finding names; move the interrupt
//! (`/proc/irq/N/smp_affinity_list`) or that process elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sexton_model::fact::Measure;
use sexton_model::fact::core::RUNNABLE_TASKS;
use sexton_model::fact::napi::{NAPI_POLL_GAP_NS, NAPI_SERVED, NAPI_STARVED, NapiDelay};
use sexton_model::fact::nic::{NIC_INTERRUPT, NicInterrupt};
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::kernel_walks;
use crate::evidence::span::{self, earlier};
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{time, time_ns, times};

const CODE: &str = "NET001";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::NetworkStarved,
    title: "NAPI polling starves on a core",
    sees: "delayed NAPI polling",
    needs: &["napi"],
    uses: &["nics"],
    is_essential: true,
    least: None,
    cause: Cause::Never,
    offer: Offer::NOTHING,
    thresholds: &[&WAIT, &LONG_WAIT],
    source: include_str!("net001_starved_polling.rs"),
    judge,
};

static WAIT: Threshold = Threshold {
    rule: CODE,
    name: "wait",
    default: 0.5,
    range: (0.5, 60.0),
    unit: Measure::Seconds,
    why: "polling that waits so long is starved: a tenth of the 5 s after which drivers reset \
          their device, and far above what a busy core takes (20 ms); the sensor tells none \
          that is shorter",
};

static LONG_WAIT: Threshold = Threshold {
    rule: CODE,
    name: "long_wait",
    default: 3.0,
    range: (0.5, 60.0),
    unit: Measure::Seconds,
    why: "polling that waits so long is about to cost a reset: the transmit watchdog of ena and \
          of the network stack is 5 s, its keep-alive 6 s",
};

/// One wait of network polling.
#[derive(Debug, Clone)]
struct Wait {
    what: String,
    core: Subject,
    since: Moment,
    until: Moment,
    holder: Option<Holder>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Holder {
    pid: String,
    comm: String,
    place: Option<String>,
    /// It is the sexton that recorded this.
    is_own: bool,
    /// How long it had the core, of the wait; older recordings do not tell.
    had: Option<Duration>,
}

impl Wait {
    fn length(&self) -> Duration {
        self.until.since(self.since)
    }

    /// The device and the instance that a polling thread is named after:
    /// `napi/ens5-8193`.
    fn instance(&self) -> Option<(Subject, Subject)> {
        let (device, id) = self.what.strip_prefix("napi/")?.rsplit_once('-')?;
        let queue = Subject::new(SubjectKind::Queue, format!("{device}/napi-{id}"));
        Some((Subject::new(SubjectKind::Device, device), queue))
    }

    /// "NAPI polling of ens5", or by whom where the device is not known.
    fn polling(&self) -> String {
        match self.instance() {
            Some((device, _)) => format!("NAPI polling of {}", device.name),
            None if self.what.starts_with("ksoftirqd/") => format!("NAPI polling by {}", self.what),
            None => "NAPI polling".to_owned(),
        }
    }
}

fn judge(case: &Case<'_>, out: &mut Findings) {
    let least = Duration::from_secs_f64(case.limit(&WAIT));
    let own = case.own_work();
    let is_ours = |wait: &Wait| {
        let is_held = wait.holder.as_ref().is_some_and(|holder| holder.is_own);
        is_held || own.explains(case, &wait.core, wait.since, wait.until)
    };
    let mut by_core: BTreeMap<Subject, Vec<Wait>> = BTreeMap::new();
    for wait in waits(case)
        .into_iter()
        .filter(|wait| wait.length() >= least && !is_ours(wait))
    {
        by_core.entry(wait.core.clone()).or_default().push(wait);
    }
    for (core, waits) in by_core {
        out.found(finding(case, &core, &waits));
    }
}

/// Every wait once: what was told when it grew long and again when it had ended.
fn waits(case: &Case<'_>) -> Vec<Wait> {
    let mut waits: BTreeMap<(Subject, String, Moment), Wait> = BTreeMap::new();
    let told = case.events(&NAPI_STARVED).chain(case.events(&NAPI_SERVED));
    for event in told {
        let Some(wait) = wait_of(event) else {
            continue;
        };
        let key = (wait.core.clone(), wait.what.clone(), wait.since);
        let known = waits.entry(key).or_insert_with(|| wait.clone());
        known.until = known.until.max(wait.until);
        known.holder = preferred(known.holder.take(), wait.holder);
    }
    waits.into_values().map(Wait::without_turns).collect()
}

/// Of the one seen during the wait and the one at its end, the one that had the core longer. A
/// stack that only one of them has is kept.
fn preferred(during: Option<Holder>, at_end: Option<Holder>) -> Option<Holder> {
    let (Some(during), Some(at_end)) = (&during, &at_end) else {
        return during.or(at_end);
    };
    let is_longer = at_end.pid == during.pid || at_end.had > during.had;
    let first = if is_longer && at_end.had.is_some() {
        at_end
    } else {
        during
    };
    let same = [during, at_end]
        .into_iter()
        .filter(|one| one.pid == first.pid);
    let place = same.filter_map(|one| one.place.clone()).next();
    Some(Holder {
        place,
        ..first.clone()
    })
}

/// A task that had the core for this part of a wait is who polling waited for; less is a turn
/// among others.
const MOST: f64 = 0.5;

impl Wait {
    /// Without a holder that only had its turn.
    fn without_turns(mut self) -> Self {
        let least = self.length().mul_f64(MOST);
        self.holder = self
            .holder
            .filter(|holder| holder.had.is_none_or(|had| had >= least));
        self
    }
}

fn wait_of(event: Event<'_, NapiDelay>) -> Option<Wait> {
    let says = event.says;
    let waited = Duration::from_nanos(says.waited_ns?);
    let holder = says.holder_pid.filter(|pid| *pid != 0);
    Some(Wait {
        what: says.what.as_deref().unwrap_or("network polling").to_owned(),
        core: event.subject.clone(),
        since: earlier(event.at, waited),
        until: event.at,
        holder: holder.map(|pid| Holder {
            pid: pid.to_string(),
            comm: says
                .holder_comm
                .as_deref()
                .unwrap_or("a process")
                .to_owned(),
            place: kernel_walks::telling(&says.stack),
            is_own: says.holder_own == Some(true),
            had: says.holder_ns.map(Duration::from_nanos),
        }),
    })
}

fn finding(case: &Case<'_>, core: &Subject, waits: &[Wait]) -> Finding {
    let longest = waits.iter().max_by_key(|wait| (wait.length(), wait.since));
    let length = longest.map(Wait::length).unwrap_or_default();
    let what = longest.map_or("", |wait| &wait.what);
    let polling = longest.map_or_else(String::new, Wait::polling);
    let holder = main_holder(waits);
    let devices = devices(case, core, waits);
    let held = match holder {
        Some(holder) => format!(", which {} (pid {}) occupied", holder.comm, holder.pid),
        None => crowd(case, waits).map_or(String::new(), |crowd| format!("; {crowd}")),
    };
    let mut touched = vec![core.clone()];
    touched.extend(devices.iter().map(|(subject, _)| subject.clone()));
    let pids: BTreeSet<&str> = holders(waits).map(|holder| holder.pid.as_str()).collect();
    touched.extend(
        pids.iter()
            .map(|pid| Subject::new(SubjectKind::Process, *pid)),
    );
    let is_long = length.as_secs_f64() >= case.limit(&LONG_WAIT);
    Finding {
        code: CODE,
        subject: core.clone(),
        severity: match is_long || waits.len() >= 3 {
            true => Severity::Serious,
            false => Severity::Warning,
        },
        confidence: Confidence::CERTAIN,
        title: format!(
            "{polling} was delayed {} on core {}{held}",
            time(length),
            core.name
        ),
        figure: format!("{what} delayed {}", time(length)),
        since: waits.iter().map(|wait| wait.since).min(),
        evidence: evidence(case, waits, longest, &devices),
        remedies: remedies(core, holder),
        episodes: span::longest(waits.iter().map(|wait| episode(wait, &devices)).collect()),
        touched,
    }
}

/// How many tasks shared the cores while polling waited.
fn crowd(case: &Case<'_>, waits: &[Wait]) -> Option<String> {
    let node = Subject::node();
    let samples: Vec<_> = case.samples(&RUNNABLE_TASKS, &node).collect();
    let spans: Vec<_> = waits.iter().map(|wait| (wait.since, wait.until)).collect();
    let n = span::mean(&samples, &spans)?;
    Some(format!(
        "no one task had the core, {n:.0} tasks of the node could run"
    ))
}

fn holders(waits: &[Wait]) -> impl Iterator<Item = &Holder> {
    waits.iter().filter_map(|wait| wait.holder.as_ref())
}

/// The process that held the core for most of the time.
fn main_holder(waits: &[Wait]) -> Option<&Holder> {
    let mut held: BTreeMap<&str, Duration> = BTreeMap::new();
    for wait in waits {
        if let Some(holder) = &wait.holder {
            *held.entry(&holder.pid).or_default() += wait.length();
        }
    }
    let (pid, _) = held
        .into_iter()
        .max_by_key(|(pid, time)| (*time, std::cmp::Reverse(*pid)))?;
    holders(waits)
        .filter(|holder| holder.pid == pid)
        .max_by_key(|holder| holder.place.is_some())
}

fn episode(wait: &Wait, devices: &[(Subject, String)]) -> Episode {
    let mut touched = vec![wait.core.clone()];
    if let Some(holder) = &wait.holder {
        touched.push(Subject::new(SubjectKind::Process, holder.pid.as_str()));
    }
    match wait.instance() {
        Some((device, queue)) => touched.extend([device, queue]),
        None => touched.extend(devices.iter().map(|(subject, _)| subject.clone())),
    }
    Episode {
        from: wait.since,
        to: wait.until,
        touched,
    }
}

/// The devices and queues that are polled on this core, and how that is known.
fn devices(case: &Case<'_>, core: &Subject, waits: &[Wait]) -> Vec<(Subject, String)> {
    let mut known: BTreeMap<Subject, String> = BTreeMap::new();
    for (device, queue) in waits.iter().filter_map(Wait::instance) {
        let how = "its NAPI thread has its name";
        known.entry(device).or_insert_with(|| how.into());
        known.entry(queue).or_insert_with(|| how.into());
    }
    // A thread polls its own device; a soft interrupt those that interrupt the core.
    if waits.iter().any(|wait| wait.instance().is_none()) {
        for (device, queue, how) in interrupts_of(case, core) {
            known.entry(device).or_insert_with(|| how.clone());
            if let Some(queue) = queue {
                known.entry(queue).or_insert(how);
            }
        }
    }
    for record in case.of(&NAPI_POLL_GAP_NS) {
        let Some(gap_ns) = record.value().filter(|ns| *ns >= case.limit(&WAIT) * 1e9) else {
            continue;
        };
        let inside =
            |wait: &Wait| wait.since <= record.at && record.at <= wait.until.after(SAMPLED);
        let device = record.subject.name.split('/').next().unwrap_or_default();
        let is_ours = known.contains_key(&Subject::new(SubjectKind::Device, device))
            || record
                .subject
                .name
                .ends_with(&format!("/cpu-{}", core.name));
        if is_ours && waits.iter().any(inside) {
            let how = format!(
                "had packets pending and was not polled for {}",
                time_ns(gap_ns)
            );
            known.insert(record.subject.clone(), how);
        }
    }
    known.into_iter().collect()
}

/// Poll gaps are told once a second.
const SAMPLED: Duration = Duration::from_secs(2);

/// Devices whose interrupts go to this core, with the queue where the interrupt names it.
fn interrupts_of(case: &Case<'_>, core: &Subject) -> Vec<(Subject, Option<Subject>, String)> {
    let Ok(cpu) = core.name.parse::<u32>() else {
        return Vec::new();
    };
    let mut latest: BTreeMap<(&Subject, u32), &NicInterrupt> = BTreeMap::new();
    for event in case.events(&NIC_INTERRUPT) {
        latest.insert((event.subject, event.says.irq), event.says);
    }
    let goes_here = |interrupt: &NicInterrupt| {
        let cpus = interrupt.effective_cpus.as_ref();
        let cpus = cpus.or(interrupt.allowed_cpus.as_ref());
        cpus.is_some_and(|cpus| has_cpu(cpus, cpu))
    };
    let here = latest
        .into_iter()
        .filter(|(_, interrupt)| goes_here(interrupt));
    here.filter_map(|((device, irq), interrupt)| {
        let name = interrupt.name.clone().unwrap_or_else(|| irq.to_string());
        let queue = match queue_of(&name, device) {
            Interrupt::OfQueue(queue) => Some(queue),
            Interrupt::OfDevice => None,
            Interrupt::Other => return None,
        };
        let how = format!("its interrupt {name} is routed to that core");
        Some((device.clone(), queue, how))
    })
    .collect()
}

/// What an interrupt is for.
enum Interrupt {
    OfQueue(Subject),
    OfDevice,
    /// Control and management, which no packet waits for.
    Other,
}

/// Drivers name them `ens5-Tx-Rx-5`, `virtio2-output.0`, `mlx5_comp3@pci:0000:3b:00.0`; a
/// device with one interrupt has its own name there, and what ends in no number is for
/// control (`virtio2-config`, `ena-mgmnt@pci:...`).
fn queue_of(name: &str, device: &Subject) -> Interrupt {
    let name = name.split('@').next().unwrap_or(name);
    if *name == *device.name || name.parse::<u32>().is_ok() {
        return Interrupt::OfDevice;
    }
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match &name[stem.len()..] {
        "" => Interrupt::Other,
        queue => {
            let name = format!("{}/tx-{queue}", device.name);
            Interrupt::OfQueue(Subject::new(SubjectKind::Queue, name))
        }
    }
}

/// Whether a list such as `0-3,8` has this CPU.
fn has_cpu(list: &str, cpu: u32) -> bool {
    list.split(',').any(|part| {
        let (first, last) = part
            .trim()
            .split_once('-')
            .unwrap_or((part.trim(), part.trim()));
        let bounds = (first.parse::<u32>(), last.parse::<u32>());
        matches!(bounds, (Ok(first), Ok(last)) if (first..=last).contains(&cpu))
    })
}

fn evidence(
    case: &Case<'_>,
    waits: &[Wait],
    longest: Option<&Wait>,
    devices: &[(Subject, String)],
) -> Vec<Evidence> {
    let mut all = Vec::new();
    if let Some(wait) = longest {
        let text = format!(
            "{} was delayed {} on core {}; delayed over 500 ms {}",
            wait.what,
            time(wait.length()),
            wait.core.name,
            times(waits.len())
        );
        let longest = Evidence::speaks_for("napi: raise and wake against run", text);
        all.push(longest.value(wait.length().as_secs_f64()).at(wait.since));
    }
    all.push(match main_holder(waits) {
        Some(holder) => {
            let place =
                holder
                    .place
                    .as_ref()
                    .map_or(String::new(), |function| match function.as_str() {
                        "[user]" => ", in its own code".into(),
                        function => format!(", in {function}"),
                    });
            let text = format!(
                "{} (pid {}) ran on that core{place}",
                holder.comm, holder.pid
            );
            Evidence::speaks_for("napi: stack on the core", text)
        }
        None => match crowd(case, waits) {
            Some(crowd) => Evidence::speaks_for("cores: procs_running", crowd),
            None => Evidence::missing("napi", "which process occupied the core"),
        },
    });
    for (subject, how) in devices.iter().take(4) {
        all.push(Evidence::speaks_for(
            "napi, nics",
            format!("{subject}: {how}"),
        ));
    }
    if devices.is_empty() {
        let text = "which device is polled on that core";
        all.push(Evidence::missing("nics", text));
    }
    all
}

fn remedies(core: &Subject, holder: Option<&Holder>) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if let Some(holder) = holder {
        let look = Remedy::command(
            RemedyKind::Look,
            format!("Print the affinity and kernel stack of {}", holder.comm),
            format!("taskset -cp {0}; sudo cat /proc/{0}/stack", holder.pid),
        );
        remedies.push(look.of_process(&holder.pid));
    }
    remedies.push(Remedy::advice(
        RemedyKind::Prevent,
        format!(
            "Route the NIC interrupts of core {} to other cores (/proc/irq/N/smp_affinity_list)",
            core.name
        ),
    ));
    remedies
}

#[cfg(test)]
mod tests;
