//! CPU002: a process burns the kernel walking memory cgroups
//!
//! Means: a process has the kernel go through memory cgroups, or read and format their
//! statistics, so often or so slowly that a good part of a core goes into it. While the
//! kernel is at it, nothing ordinary runs on that core.
//! Not this: a reader that looks every few seconds and is done within a millisecond.
//! By hand: `sudo perf record -a -g sleep 10`, then `perf report --sort comm,sym`, and look for
//! memcg_numa_stat_show, memory_stat_show, mem_cgroup_iter and what calls them.
//! Next: ask the process to look less often; if MCG001 is its cause, `sexton zombies`.

use std::collections::{BTreeMap, BTreeSet};

use sexton_model::fact::Unit;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::figures::{percent, time, times};
use crate::readers::{Share, Sighting, sightings};
use crate::rule::{Findings, Rule, Threshold};
use crate::span;
use crate::unit_name::systemctl;
use crate::walks;

const CODE: &str = "CPU002";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    title: "a process burns the kernel walking memory cgroups",
    needs: &[],
    uses: &["stacks", "napi"],
    is_essential: false,
    is_cause: true,
    thresholds: &[&PART, &SLOW_TIMES, &SLOW_SECONDS, &QUICK_TIMES],
    source: include_str!("cpu002_reader.rs"),
    judge,
};

pub(crate) static PART: Threshold = Threshold {
    rule: CODE,
    name: "part",
    default: 0.2,
    range: (0.01, 1.0),
    unit: Unit::Ratio,
    why: "a reader with less of one core in the kernel is not looked at; reading all files of \
          222 cgroups takes 66 ms, so one that does so every 10 s has 0.007",
};

/// What a read costs decides whether dying cgroups are its cause.
pub(crate) static SLOW_TIMES: Threshold = Threshold {
    rule: CODE,
    name: "slow_times",
    default: 30.0,
    range: (2.0, 1e6),
    unit: Unit::Ratio,
    why: "a read above the dying ones is slow because of them when it takes so many times as \
          long as that of a leaf: measured on 5.4 with 222 live cgroups 25 times without dying \
          ones, 190 at 1,000 of them; on 5.10 to 6.18 at most 2 at 65,000",
};

pub(crate) static SLOW_SECONDS: Threshold = Threshold {
    rule: CODE,
    name: "slow_seconds",
    default: 0.001,
    range: (0.000_001, 3600.0),
    unit: Unit::Seconds,
    why: "no shorter read is slow: at the kernel's tick of 1 to 10 ms another task gets the core \
          before it is missed. Reads took 0.008 to 0.1 ms on 5.10 to 6.18 with 65,000 dying \
          ones, 7.6 ms on 5.4 with 1,000",
};

pub(crate) static QUICK_TIMES: Threshold = Threshold {
    rule: CODE,
    name: "quick_times",
    default: 5.0,
    range: (1.0, 1e6),
    unit: Unit::Ratio,
    why: "a read that takes at most so many times a leaf's is as quick as it gets: twice the 2 \
          that were measured at most where nothing walks, and room for a busy machine",
};

fn judge(case: &Case<'_>, out: &mut Findings) {
    let (stacks, napi) = (case.heard("stacks"), case.heard("napi"));
    let mut readers: BTreeMap<String, Vec<Sighting>> = BTreeMap::new();
    for sighting in sightings(case, case.limit(&PART)) {
        readers
            .entry(sighting.comm.clone())
            .or_default()
            .push(sighting);
    }
    if readers.is_empty() && !stacks {
        let because = case.why_silent("stacks");
        return out.not_judged(
            CODE,
            match napi {
                true => format!("only cores that starve network polling were looked at: {because}"),
                false => because,
            },
        );
    }
    for (comm, sightings) in readers {
        out.found(finding(case, &comm, &sightings));
    }
}

fn finding(case: &Case<'_>, comm: &str, sightings: &[Sighting]) -> Finding {
    let gravest = sightings.iter().map(|sighting| &sighting.seen).max();
    let (does, function) = gravest.map_or((walks::Does::Read, ""), |seen| {
        // Who calls it says more than a helper that many call.
        let function = seen.caller.as_ref().unwrap_or(&seen.function);
        (seen.does, function.as_str())
    });
    let distinct = |of: fn(&Sighting) -> &Subject| -> BTreeSet<&Subject> {
        sightings.iter().map(of).collect()
    };
    let processes = distinct(|sighting| &sighting.process);
    let cores = distinct(|sighting| &sighting.core);
    let worst = sightings
        .iter()
        .filter_map(|sighting| sighting.ratio)
        .max_by(f64::total_cmp);
    let who = match processes.first() {
        Some(process) if processes.len() == 1 => format!("{comm} (pid {})", process.name),
        _ => format!("{comm} ({} processes)", processes.len()),
    };
    let core = cores
        .iter()
        .map(|core| &*core.name)
        .collect::<Vec<_>>()
        .join(", ");
    let burns = match worst {
        Some(ratio) => format!("{} of core {core}", percent(ratio)),
        None => format!("core {core}"),
    };
    let subject = Subject::new(SubjectKind::Task, comm);
    let mut touched = vec![subject.clone()];
    touched.extend(processes.iter().chain(&cores).copied().cloned());
    let owners: BTreeSet<&Subject> = sightings
        .iter()
        .flat_map(|sighting| &sighting.owners)
        .collect();
    touched.extend(owners.into_iter().cloned());
    let holds = worst.is_none_or(|ratio| ratio >= 0.8);
    Finding {
        code: CODE,
        severity: if holds {
            Severity::Serious
        } else {
            Severity::Warning
        },
        confidence: match sightings.len() {
            3.. => Confidence::CERTAIN,
            _ => Confidence::LIKELY,
        },
        title: format!("{who} burns {burns} in {function}, {}", does.words()),
        figure: format!("{function}: {burns}"),
        since: sightings.iter().map(|sighting| sighting.from).min(),
        evidence: evidence(case, sightings),
        remedies: remedies(comm, sightings),
        episodes: span::longest(sightings.iter().map(episode).collect()),
        subject,
        touched,
    }
}

fn episode(sighting: &Sighting) -> Episode {
    Episode {
        from: sighting.from,
        to: sighting.to,
        touched: vec![sighting.core.clone(), sighting.process.clone()],
    }
}

fn evidence(case: &Case<'_>, sightings: &[Sighting]) -> Vec<Evidence> {
    let mut all = Vec::new();
    let (sampled, held): (Vec<&Sighting>, Vec<&Sighting>) = sightings
        .iter()
        .partition(|sighting| sighting.ratio.is_some());
    let worst = sampled.iter().max_by(|a, b| {
        let ratio = |sighting: &Sighting| sighting.ratio.unwrap_or(0.0);
        ratio(a)
            .total_cmp(&ratio(b))
            .then_with(|| b.from.cmp(&a.from))
    });
    if let Some(worst) = worst {
        let function = &worst.seen.function;
        let stacks = match worst.share {
            Some(Share::OfWork(share)) => {
                let below = worst.seen.caller.as_ref();
                let below = below.map_or(String::new(), |caller| format!(" below {caller}"));
                format!(
                    "{} of its kernel samples were {}, most in {function}{below}",
                    percent(share),
                    worst.seen.does.words()
                )
            }
            Some(Share::OfHottest(share)) => format!(
                "its hottest stack in {function}; {} of its kernel samples had that very stack",
                percent(share)
            ),
            None => format!("its hottest stack in {function}"),
        };
        let text = format!(
            "seen {}: {} of core {} at the most, {stacks}",
            times(sampled.len()),
            percent(worst.ratio.unwrap_or(0.0)),
            worst.core.name,
        );
        all.push(Evidence::speaks_for("stacks", text).value(worst.ratio.unwrap_or(0.0)));
    }
    let longest = held
        .iter()
        .max_by_key(|sighting| sighting.to.since(sighting.from));
    if let Some(longest) = longest {
        let text = format!(
            "it held core {} {} while network polling waited there, {} at the most, in {}",
            longest.core.name,
            times(held.len()),
            time(longest.to.since(longest.from)),
            longest.seen.function,
        );
        all.push(Evidence::speaks_for("napi: stack of the holder", text));
    }
    if !case.heard("stacks") {
        all.push(Evidence::missing("stacks", case.why_silent("stacks")));
    }
    all
}

fn remedies(comm: &str, sightings: &[Sighting]) -> Vec<Remedy> {
    let unit = sightings
        .iter()
        .flat_map(|sighting| &sighting.owners)
        .find(|owner| owner.kind == SubjectKind::Unit);
    let mut remedies = Vec::new();
    if let Some(unit) = unit {
        remedies.push(Remedy::command(
            RemedyKind::Look,
            format!("{comm} belongs to {}; see what it is for", unit.name),
            systemctl("status", &unit.name),
        ));
    }
    if let Some(one) = sightings.first() {
        remedies.push(Remedy::command(
            RemedyKind::Stop,
            format!("pause {comm}, by its number outside of containers; -CONT lets it go on"),
            format!("sudo kill -STOP {}", one.process.name),
        ));
    }
    remedies.push(Remedy::advice(
        RemedyKind::Prevent,
        format!("have {comm} read memory statistics less often, or of fewer cgroups"),
    ));
    remedies
}

#[cfg(test)]
mod tests;
