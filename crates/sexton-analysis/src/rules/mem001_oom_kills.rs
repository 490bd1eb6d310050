//! MEM001: the kernel kills processes for lack of memory
//!
//! Means: a cgroup reached its memory limit, or the whole node ran out of memory, and the
//! kernel killed a process to get some back (OOM kill). The work of that process is lost; a
//! unit or container that restarts it is killed again at the same point.
//! Not this: a process that another process killed with SIGKILL (exit status 137 alone proves
//! nothing); an allocation that failed without a kill; kills long before the watch.
//! By hand: `journalctl -k -g 'oom-kill|Killed process'`, and `oom_kill` in `memory.events` of
//! the cgroup.
//! Next: compare the limit of the cgroup with what the victim had in use
//! (`anon-rss` of its line). `oom-kill:constraint=CONSTRAINT_NONE` means the node itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sexton_model::fact::Measure;
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::shell_word;

use crate::case::Case;
use crate::evidence::oom_kills::{self, OomKill, Scope};
use crate::evidence::span::{self, earlier};
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{before, bytes, count, plural, times};
use crate::words::unit_name;

const CODE: &str = "MEM001";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::MemoryShort,
    title: "the kernel kills processes for lack of memory",
    sees: "OOM kills",
    needs: &[],
    uses: &["klog", "exits", "containers"],
    is_essential: true,
    least: None,
    cause: Cause::WhenNamed,
    offer: Offer::NOTHING,
    thresholds: &[&BEFORE],
    source: include_str!("mem001_oom_kills.rs"),
    judge,
};

static BEFORE: Threshold = Threshold {
    rule: CODE,
    name: "before",
    default: 600.0,
    range: (0.0, 86_400.0),
    unit: Measure::Seconds,
    why: "kills so long before the watch still count: the kubelet waits up to 300 s before it \
          starts a container again, so two kills of one loop may be that far apart, and the log \
          itself goes back to the boot",
};

/// Victims that get a finding of their own; the rest is counted on the last of them.
const MAX_FINDINGS: usize = 16;

/// Lines that a finding shows.
const MAX_SHOWN: usize = 4;

fn judge(case: &Case<'_>, out: &mut Findings) {
    if !case.heard("klog") && !case.heard("exits") {
        return out.not_judged(CODE, case.why_silent("klog"));
    }
    let since = since(case);
    let mut by_place: BTreeMap<Subject, Vec<OomKill<'_>>> = BTreeMap::new();
    let kills = oom_kills::of(case, since).into_iter();
    for kill in kills.filter(|kill| kill.at >= since) {
        by_place.entry(kill.place()).or_default().push(kill);
    }
    let mut findings: Vec<Finding> = by_place
        .iter()
        .map(|(place, kills)| finding(case, place, kills))
        .collect();
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.id()));
    let n_left = findings.len().saturating_sub(MAX_FINDINGS);
    findings.truncate(MAX_FINDINGS);
    if let Some(last) = findings.last_mut().filter(|_| n_left > 0) {
        let text = format!(
            "OOM kills in {} too (units, containers or cgroups)",
            plural(n_left as u64, "more place")
        );
        last.evidence
            .push(Evidence::speaks_for("klog, exits", text));
    }
    findings.into_iter().for_each(|finding| out.found(finding));
}

/// From when on kills count.
fn since(case: &Case<'_>) -> Moment {
    let began = case.window().map_or(case.now(), |window| *window.start());
    earlier(began, Duration::from_secs_f64(case.limit(&BEFORE)))
}

fn finding(case: &Case<'_>, place: &Subject, kills: &[OomKill<'_>]) -> Finding {
    let n: u64 = kills.iter().map(|kill| kill.n).sum();
    let last = kills.iter().map(|kill| kill.at).max().unwrap_or_default();
    let is_certain = kills.iter().any(OomKill::is_certain);
    let often = times(usize::try_from(n).unwrap_or(usize::MAX));
    let why = why(kills).map_or(String::new(), |why| format!(" ({why})"));
    Finding {
        code: CODE,
        subject: place.clone(),
        severity: match is_certain {
            true => Severity::Serious,
            false => Severity::Warning,
        },
        confidence: match is_certain {
            true => Confidence::CERTAIN,
            false => Confidence::WEAK,
        },
        title: format!(
            "the kernel OOM-killed {} {often}{why}, last {}",
            victims(case, place, kills),
            before(case.now(), last)
        ),
        figure: plural(n, "OOM kill"),
        since: kills.iter().map(|kill| kill.at).min(),
        evidence: evidence(case, kills, n),
        remedies: remedies(place, kills),
        touched: touched(place, kills),
        episodes: span::longest(kills.iter().map(|kill| episode(place, kill)).collect()),
    }
}

/// `java in hungry.service`.
fn victims(case: &Case<'_>, place: &Subject, kills: &[OomKill<'_>]) -> String {
    let names: BTreeSet<&str> = kills.iter().filter_map(|kill| kill.comm).collect();
    let names: Vec<&str> = names.into_iter().take(3).collect();
    let names = match names.is_empty() {
        true => "processes".to_owned(),
        false => names.join(", "),
    };
    match place.kind {
        SubjectKind::Node | SubjectKind::Task => names,
        SubjectKind::Container => format!("{names} in {}", container(case, &place.name)),
        SubjectKind::Cgroup => format!("{names} in cgroup {}", place.name),
        _ => format!("{names} in {}", place.name),
    }
}

/// A container by its name, where its runtime told it.
fn container(case: &Case<'_>, id: &str) -> String {
    let runs = case.container_runs().values().flatten();
    let run = runs.filter(|run| run.id == id).find_map(|run| {
        let name = run.pod.as_deref().or(run.name)?;
        Some(format!("container {name} ({})", run.image))
    });
    run.unwrap_or_else(|| format!("container {}", id.get(..12).unwrap_or(id)))
}

/// Whose memory ran out, by the last kill that tells.
fn why(kills: &[OomKill<'_>]) -> Option<String> {
    let told = kills.iter().rev().find(|kill| kill.scope.is_some())?;
    let limit = kills.iter().rev().find_map(|kill| kill.limit_bytes);
    Some(match (told.scope?, limit) {
        (Scope::Node, _) => "the node is out of memory".into(),
        (Scope::Cgroup, Some(limit)) => format!("cgroup limit {}", bytes(limit)),
        (Scope::Cgroup, None) => "cgroup limit reached".into(),
    })
}

fn evidence(case: &Case<'_>, kills: &[OomKill<'_>], n: u64) -> Vec<Evidence> {
    let source = kills.first().map_or("klog", |kill| kill.source);
    let text = match n {
        1 => "1 process was OOM-killed".to_owned(),
        n => format!("{} processes were OOM-killed", count(n)),
    };
    let mut evidence = vec![Evidence::speaks_for(source, text).value(n as f64)];
    let limited = kills.iter().rev().find_map(|kill| kill.limited);
    evidence.extend(limited.map(|path| {
        let limit = kills.iter().rev().find_map(|kill| kill.limit_bytes);
        let limit = limit.map_or(String::new(), |limit| format!(", {},", bytes(limit)));
        Evidence::speaks_for(
            "klog: kernel",
            format!("the memory limit of cgroup {path}{limit} was reached"),
        )
    }));
    let lines = kills.iter().rev().filter_map(|kill| kill.line);
    evidence.extend(lines.take(MAX_SHOWN).map(|line| line.evidence()));
    if kills.iter().all(|kill| kill.comm.is_none()) {
        let text = "the names of the killed processes: neither the log nor an exit names one";
        evidence.push(Evidence::missing("klog", text));
    }
    if !case.heard("klog") {
        evidence.push(Evidence::missing("klog", case.why_silent("klog")));
    }
    evidence
}

fn remedies(place: &Subject, kills: &[OomKill<'_>]) -> Vec<Remedy> {
    let look = |text: &str, command: String| Remedy::command(RemedyKind::Look, text, command);
    let is_node = kills.iter().any(|kill| kill.scope == Some(Scope::Node));
    let prevent = match (is_node, place.kind) {
        (true, _) => "Find what uses the node's memory, and set a limit for it".to_owned(),
        (false, SubjectKind::Unit) => {
            format!(
                "Raise MemoryMax= of {}, or reduce its memory use",
                place.name
            )
        }
        (false, SubjectKind::Container) => {
            "Raise the memory limit of the container, or reduce its memory use".to_owned()
        }
        (false, _) => "Raise the memory limit of the cgroup, or reduce its memory use".to_owned(),
    };
    let mut remedies = vec![Remedy::advice(RemedyKind::Prevent, prevent)];
    if place.kind == SubjectKind::Unit && !unit_name::is_of_user(&place.name) {
        let unit = shell_word(&place.name);
        remedies.push(look(
            "Compare its memory limit with its use",
            format!("systemctl show -p MemoryMax,MemoryHigh,MemoryCurrent {unit}"),
        ));
    }
    if is_node {
        remedies.push(look(
            "List processes by memory use",
            "ps -eo pid,rss,comm,cgroup --sort=-rss | head -n 20".into(),
        ));
    }
    remedies.push(look(
        "Read the kernel's report of each kill",
        "journalctl -k -g 'oom-kill|Killed process'".into(),
    ));
    remedies
}

fn process(kill: &OomKill<'_>) -> Option<Subject> {
    let pid = kill.pid?;
    Some(Subject::new(SubjectKind::Process, pid.to_string()))
}

fn touched(place: &Subject, kills: &[OomKill<'_>]) -> Vec<Subject> {
    let mut touched = vec![place.clone()];
    let cgroup = |kill: &OomKill<'_>| Some(Subject::new(SubjectKind::Cgroup, kill.cgroup?));
    let processes = kills.iter().rev().take(span::MAX_EPISODES);
    let all = kills.iter().filter_map(cgroup);
    for subject in all.chain(processes.filter_map(process)) {
        if touched.len() < 2 * span::MAX_EPISODES && !touched.contains(&subject) {
            touched.push(subject);
        }
    }
    touched
}

fn episode(place: &Subject, kill: &OomKill<'_>) -> Episode {
    Episode {
        from: kill.at,
        to: kill.at,
        touched: [Some(place.clone()), process(kill)]
            .into_iter()
            .flatten()
            .collect(),
    }
}

#[cfg(test)]
mod tests;
