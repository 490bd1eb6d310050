//! NIC001: a NIC reset or timed out
//!
//! Means: a network device was reset by its driver, or a transmit queue was stuck until the
//! kernel noticed. Packets under way are lost, and connections with them.
//! Not this: a link that went down and came back, which is the cable's or the switch's; a counter
//! that was above zero before the watch, which may be as old as the boot (a note).
//! By hand: `dmesg -T | grep -iE 'reset|timed out|paused|completion'`,
//! `ethtool -S DEV | grep -iE 'timeout|reset'`, `cat /sys/class/net/*/queues/tx-*/tx_timeout`.
//! Next: NET001 for the core that its polling waited on; the vendor only after that.

use std::time::Duration;

use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::kernel_log::{self, Line};
use crate::evidence::nic_troubles::{Growth, Trouble, queue_of, stuck_for};
use crate::evidence::span::{self, earlier};
use crate::rule::{Cause, Findings, Rule};
use crate::words::figures::{self, before, count};

const CODE: &str = "NIC001";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::NicReset,
    title: "a NIC reset or timed out",
    sees: "NIC resets",
    needs: &[],
    uses: &["klog", "nics"],
    is_essential: true,
    least: None,
    cause: Cause::Never,
    offer: Offer::NOTHING,
    thresholds: &[],
    source: include_str!("nic001_reset.rs"),
    judge,
};

/// Lines and counters that are shown; more of the same say nothing new.
const MAX_SHOWN: usize = 4;

fn judge(case: &Case<'_>, out: &mut Findings) {
    let troubles = case.nic_troubles();
    if !case.heard("klog") && troubles.is_empty() {
        // Several drivers tell of a reset in the log only.
        return out.not_judged(CODE, case.why_silent("klog"));
    }
    for (device, trouble) in troubles {
        out.found(finding(case, device, trouble));
    }
}

fn finding(case: &Case<'_>, device: &Subject, trouble: &Trouble<'_>) -> Finding {
    let name = match device.kind {
        SubjectKind::Node => "an unnamed device".to_owned(),
        _ => device.name.to_string(),
    };
    let moments = trouble.moments();
    let n_times = n_times(trouble);
    let is_reset = trouble
        .lines
        .iter()
        .any(|line| line.class().starts_with("nic_reset"))
        || trouble
            .growths
            .iter()
            .any(|growth| growth.fact.name.contains("reset"));
    let what = match is_reset {
        true => "reset",
        false => "transmit timeout",
    };
    let often = match n_times {
        0 => format!("{what}s since boot, times unknown"),
        n => figures::plural(n as u64, what),
    };
    let mut touched = vec![device.clone()];
    for subject in places(trouble) {
        if !touched.contains(&subject) {
            touched.push(subject);
        }
    }
    let confidence = confidence(trouble);
    Finding {
        code: CODE,
        subject: device.clone(),
        severity: match confidence >= Confidence::LIKELY {
            true => Severity::Serious,
            // What a program wrote before the watch is hearsay, and a counter since boot does
            // not say when it grew: it would stand there until the next boot.
            false if !is_recent(case, &moments) => Severity::Note,
            false => Severity::Warning,
        },
        confidence,
        title: match moments.last() {
            Some(last) => format!("NIC {name}: {often}, last {}", before(case.now(), *last)),
            None => format!("NIC {name}: {often}"),
        },
        figure: often,
        since: moments.first().copied(),
        evidence: evidence(case, trouble),
        remedies: vec![Remedy::command(
            RemedyKind::Look,
            "Print the driver's counters",
            match device.kind {
                SubjectKind::Device => format!("ethtool -S {name}"),
                _ => "dmesg -T".into(),
            },
        )],
        episodes: span::longest(episodes(device, trouble)),
        touched,
    }
}

fn is_recent(case: &Case<'_>, moments: &[Moment]) -> bool {
    let began = case.window().map(|window| *window.start());
    moments.last().copied() >= began
}

/// Lines of one trouble come in packs; so far apart they are two.
const APART: Duration = Duration::from_secs(20);

fn n_times(trouble: &Trouble<'_>) -> usize {
    let moments = trouble.moments();
    let apart = |pair: &&[Moment]| pair[1].since(pair[0]) >= APART;
    moments.windows(2).filter(apart).count() + usize::from(!moments.is_empty())
}

fn confidence(trouble: &Trouble<'_>) -> Confidence {
    let of_lines = (!trouble.lines.is_empty()).then(|| kernel_log::trust(&trouble.lines));
    let of_growths = (!trouble.growths.is_empty()).then_some(Confidence::CERTAIN);
    let of_standing = (!trouble.standing.is_empty()).then_some(Confidence::POSSIBLE);
    let all = [of_lines, of_growths, of_standing];
    all.into_iter().flatten().max().unwrap_or(Confidence::WEAK)
}

/// Queues and cores that lines and counters name.
fn places(trouble: &Trouble<'_>) -> Vec<Subject> {
    let lines = trouble.lines.iter();
    let lines = lines.flat_map(|line| [queue_of(*line), line.core()].into_iter().flatten());
    let queues = trouble.growths.iter().map(|growth| growth.subject.clone());
    lines.chain(queues).collect()
}

fn episodes(device: &Subject, trouble: &Trouble<'_>) -> Vec<Episode> {
    let of_line = |line: &Line<'_>| {
        let places = [queue_of(*line), line.core()];
        Episode {
            from: earlier(line.at(), stuck_for(*line)),
            to: line.at(),
            touched: [Some(device.clone())]
                .into_iter()
                .chain(places)
                .flatten()
                .collect(),
        }
    };
    let of_growth = |growth: &Growth<'_>| Episode {
        from: growth.from,
        to: growth.to,
        touched: vec![device.clone(), growth.subject.clone()],
    };
    let lines = trouble.lines.iter().map(of_line);
    lines.chain(trouble.growths.iter().map(of_growth)).collect()
}

fn evidence(case: &Case<'_>, trouble: &Trouble<'_>) -> Vec<Evidence> {
    let mut all: Vec<Evidence> = Vec::new();
    for line in trouble.lines.iter().rev() {
        let shown = line.evidence();
        if all.len() < MAX_SHOWN && !all.iter().any(|known| known.text == shown.text) {
            all.push(shown);
        }
    }
    if trouble.lines.len() > MAX_SHOWN {
        let n = count(trouble.lines.len() as u64);
        all.push(Evidence::speaks_for(
            "klog",
            format!("{n} such lines in all"),
        ));
    }
    for growth in trouble.growths.iter().take(MAX_SHOWN) {
        let text = format!("{} of {}: +{}", growth.fact.name, growth.subject, growth.by);
        all.push(
            Evidence::speaks_for("nics: ethtool, sysfs", text)
                .value(growth.by)
                .at(growth.to),
        );
    }
    for (fact, subject, value) in trouble.standing.iter().take(MAX_SHOWN) {
        let text = format!(
            "{} of {subject} was {value} before the watch began: since boot, time unknown",
            fact.name
        );
        all.push(Evidence::speaks_for("nics: ethtool, sysfs", text).value(*value));
    }
    if !trouble.lines.is_empty() && !trouble.lines.iter().any(|line| line.is_of_kernel()) {
        let text = "the kernel itself logged no such event";
        all.push(Evidence::against("klog", text));
    }
    if !case.heard("klog") {
        all.push(Evidence::missing("klog", case.why_silent("klog")));
    }
    all
}

#[cfg(test)]
mod tests;
