//! CPU002: a process spends a core on memory cgroup statistics
//!
//! Means: a process has the kernel go through memory cgroups, or read and format their
//! statistics, so often or so slowly that a good part of a core goes into it. While the
//! kernel is at it, nothing ordinary runs on that core.
//! Not this: a reader that looks every few seconds and is done within a millisecond.
//! By hand: `sudo perf record -a -g sleep 10`, then `perf report --sort comm,sym`, and look for
//! memcg_numa_stat_show, memory_stat_show, mem_cgroup_iter and what calls them.
//! Next: ask the process to look less often; if MCG001 is its cause, `sexton zombies`.

use std::collections::{BTreeMap, BTreeSet};

use sexton_model::fact::Measure;
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::kernel_walks;
use crate::evidence::read_cost::{QUICK_TIMES, SLOW_SECONDS, SLOW_TIMES};
use crate::evidence::readers::{Share, Sighting};
use crate::evidence::span;
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{percent, time, times};
use crate::words::process::pause;
use crate::words::unit_name::systemctl;

const CODE: &str = "CPU002";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::CoreLost,
    title: "a process spends a core on memory cgroup statistics",
    sees: "readers of cgroup statistics",
    needs: &[],
    uses: &["stacks", "napi"],
    is_essential: false,
    least: None,
    cause: Cause::WhenNamed,
    offer: Offer::NOTHING,
    thresholds: &[&PART, &SLOW_TIMES, &SLOW_SECONDS, &QUICK_TIMES],
    source: include_str!("cpu002_reader.rs"),
    judge,
};

pub(crate) static PART: Threshold = Threshold {
    rule: CODE,
    name: "part",
    default: 0.2,
    range: (0.01, 1.0),
    unit: Measure::Ratio,
    why: "a reader with less of one core in the kernel is not looked at; reading all files of \
          222 cgroups takes 66 ms, so one that does so every 10 s has 0.007",
};

/// What a read costs decides whether dying cgroups are its cause.
fn judge(case: &Case<'_>, out: &mut Findings) {
    let (stacks, napi) = (case.heard("stacks"), case.heard("napi"));
    let mut readers: BTreeMap<String, Vec<Sighting>> = BTreeMap::new();
    let part = case.limit(&PART);
    let is_much = |sighting: &&Sighting| sighting.part().is_none_or(|at_it| at_it >= part);
    for sighting in case.sightings().iter().filter(is_much) {
        readers
            .entry(sighting.comm.clone())
            .or_default()
            .push(sighting.clone());
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
    let (does, function) = gravest.map_or((kernel_walks::Does::Read, ""), |seen| {
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
        .filter_map(Sighting::part)
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
        title: format!("{who} spends {burns} {}", does.words()),
        figure: format!("{burns}, {function}"),
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
                "its hottest stack is in {function}, with {} of its kernel samples",
                percent(share)
            ),
            None => format!("its hottest stack is in {function}"),
        };
        let text = format!(
            "sampled {}: up to {} of core {} in the kernel; {stacks}",
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
            "occupied core {} {} while NAPI polling was delayed there, up to {}, in {}",
            longest.core.name,
            times(held.len()),
            time(longest.to.since(longest.from)),
            longest.seen.function,
        );
        all.push(Evidence::speaks_for("napi: stack on the core", text));
    }
    if !case.heard("stacks") {
        all.push(Evidence::missing("stacks", case.why_silent("stacks")));
    }
    all
}

/// Readers that must not be paused: a node without them is worse off than with a slow reader.
const NEEDED: [&str; 6] = [
    "kubelet",
    "containerd",
    "dockerd",
    "crio",
    "systemd",
    "sshd",
];

fn remedies(comm: &str, sightings: &[Sighting]) -> Vec<Remedy> {
    let unit = sightings
        .iter()
        .flat_map(|sighting| &sighting.owners)
        .find(|owner| owner.kind == SubjectKind::Unit);
    let mut remedies = Vec::new();
    if let Some(unit) = unit {
        remedies.push(Remedy::command(
            RemedyKind::Look,
            format!("Identify {}, the unit of {comm}", unit.name),
            systemctl("status", &unit.name),
        ));
    }
    if let Some(one) = sightings.first() {
        let pid = &one.process.name;
        // Without its kubelet, for one, a node becomes NotReady.
        let of_one = match NEEDED.contains(&comm) {
            true => Remedy::command(
                RemedyKind::Look,
                format!("Find the threads of {comm} that read"),
                format!("ps -L -o tid,psr,pcpu,comm -p {pid}"),
            ),
            false => Remedy::command(
                RemedyKind::Stop,
                format!("Pause {comm} (host PID; resume with -CONT)"),
                pause(pid),
            ),
        };
        remedies.push(of_one.of_process(pid));
    }
    remedies.push(Remedy::advice(
        RemedyKind::Prevent,
        format!("Configure {comm} to read memory statistics less often, or of fewer cgroups"),
    ));
    remedies
}

#[cfg(test)]
mod tests;
