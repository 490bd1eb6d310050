//! Processes that the kernel killed for lack of memory. The kernel log, the exits and the
//! counter of victims tell of the same kills, so they are counted from one of them.

use std::time::Duration;

use sexton_model::fact::exit::{OOM_VICTIMS, PROCESS_FAILED, ProcessExit};
use sexton_model::moment::Moment;
use sexton_model::origin::Origin;
use sexton_model::record::Event;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;

use crate::case::Case;
use crate::evidence::kernel_log::{self, Line};
use crate::words::unit_name;

/// Whose memory ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// That of the node.
    Node,
    /// That of a cgroup with a limit.
    Cgroup,
}

/// One victim, or several of which nothing but the number is known.
#[derive(Debug, Clone)]
pub(crate) struct OomKill<'a> {
    pub(crate) at: Moment,
    pub(crate) n: u64,
    pub(crate) pid: Option<u32>,
    pub(crate) comm: Option<&'a str>,
    /// The memory cgroup of the victim.
    pub(crate) cgroup: Option<&'a str>,
    /// The cgroup whose limit was reached.
    pub(crate) limited: Option<&'a str>,
    /// That limit.
    pub(crate) limit_bytes: Option<f64>,
    pub(crate) scope: Option<Scope>,
    /// The line that tells of it.
    pub(crate) line: Option<Line<'a>>,
    /// The sensor that tells of it.
    pub(crate) source: &'static str,
}

/// How long the report of a kill may be before its line, and the exit after it. A victim that
/// hangs in the kernel exits late.
const NEAR: Duration = Duration::from_secs(30);

/// The kills that one source tells: the first that knows of any since then, else the first
/// that knows of any.
pub(crate) fn of<'a>(case: &Case<'a>, since: Moment) -> Vec<OomKill<'a>> {
    let exits = of_exits(case);
    let sources = [
        of_log(case, true),
        exits,
        of_counter(case),
        // A program can write anything into the log, but nothing else could have told.
        match case.heard("exits") {
            true => Vec::new(),
            false => of_log(case, false),
        },
    ];
    let is_recent = |kills: &&Vec<OomKill<'a>>| kills.iter().any(|kill| kill.at >= since);
    let recent = sources.iter().find(is_recent);
    let any = || sources.iter().find(|kills| !kills.is_empty());
    recent.or_else(any).cloned().unwrap_or_default()
}

/// Kills by lines of the kernel log: of the kernel, or of programs.
fn of_log<'a>(case: &Case<'a>, by_kernel: bool) -> Vec<OomKill<'a>> {
    let of_writer = |line: &Line<'a>| line.is_of_kernel() == by_kernel;
    let lines = |class: &str| {
        let lines = kernel_log::lines(case, &[class]).into_iter();
        lines.filter(of_writer).collect::<Vec<_>>()
    };
    let reports = lines("oom_report");
    let exits: Vec<_> = case.events(&PROCESS_FAILED).collect();
    let kills = lines("oom_kill").into_iter();
    kills.map(|line| of_line(line, &reports, &exits)).collect()
}

fn of_line<'a>(
    line: Line<'a>,
    reports: &[Line<'a>],
    exits: &[Event<'a, ProcessExit>],
) -> OomKill<'a> {
    let pid = line.says().pid;
    let near = |one: &&Line<'a>| one.at() <= line.at() && line.at().since(one.at()) <= NEAR;
    let report = reports.iter().rev().filter(near);
    let report = report.copied().find(|report| {
        report.text("constraint").is_some() && pid.is_some() && report.says().pid == pid
    });
    let exit = exits.iter().find(|exit| {
        let is_near = exit.at >= line.at() && exit.at.since(line.at()) <= NEAR;
        is_near && pid.is_some() && exit.says.tgid == pid
    });
    let scope = report
        .and_then(|report| scope_of_report(report))
        .or_else(|| scope_of_line(line));
    OomKill {
        at: line.at(),
        n: 1,
        pid,
        comm: line.says().comm.as_deref(),
        cgroup: report
            .and_then(|report| report.text("cgroup"))
            .or_else(|| exit.and_then(|exit| exit.says.cgroup.as_deref())),
        limited: report.and_then(|report| report.text("limited_cgroup")),
        limit_bytes: report
            .filter(|_| scope == Some(Scope::Cgroup))
            .and_then(|report| limit(report, reports)),
        scope,
        line: Some(line),
        source: "klog",
    }
}

fn scope_of_report(report: Line<'_>) -> Option<Scope> {
    match report.text("constraint")? {
        "CONSTRAINT_MEMCG" => Some(Scope::Cgroup),
        "CONSTRAINT_NONE" => Some(Scope::Node),
        // A cpuset or a memory policy: neither the node nor a limit.
        _ => None,
    }
}

fn scope_of_line(line: Line<'_>) -> Option<Scope> {
    let text = line.says().line.as_deref()?;
    match text {
        text if text.starts_with("Memory cgroup out of memory") => Some(Scope::Cgroup),
        text if text.starts_with("Out of memory") => Some(Scope::Node),
        _ => None,
    }
}

/// The limit that was reached: the kernel prints it just before it names the victim. One OOM
/// kill at a time is worked on, so lines of two do not mix.
fn limit(report: Line<'_>, reports: &[Line<'_>]) -> Option<f64> {
    const JUST_BEFORE: Duration = Duration::from_secs(2);
    let before =
        |one: &&Line<'_>| one.at() <= report.at() && report.at().since(one.at()) <= JUST_BEFORE;
    let mut before = reports.iter().rev().filter(before);
    let kb = before.find_map(|line| line.captured("limit_kb"))?;
    Some(kb as f64 * 1024.0)
}

fn of_exits<'a>(case: &Case<'a>) -> Vec<OomKill<'a>> {
    let exits = case.events(&PROCESS_FAILED);
    let victims = exits.filter(|exit| exit.says.oom == Some(true));
    let kill = |exit: Event<'a, ProcessExit>| OomKill {
        at: exit.at,
        n: 1,
        pid: exit.says.tgid,
        comm: exit.says.comm.as_deref(),
        cgroup: exit.says.cgroup.as_deref(),
        limited: None,
        limit_bytes: None,
        scope: None,
        line: None,
        source: "exits",
    };
    victims.map(kill).collect()
}

fn of_counter<'a>(case: &Case<'a>) -> Vec<OomKill<'a>> {
    let counted: Vec<(Moment, f64)> = case.samples(&OOM_VICTIMS, &Subject::node()).collect();
    let grown = counted.windows(2).filter(|pair| pair[1].1 > pair[0].1);
    let kill = |pair: &[(Moment, f64)]| OomKill {
        at: pair[1].0,
        n: (pair[1].1 - pair[0].1) as u64,
        pid: None,
        comm: None,
        cgroup: None,
        limited: None,
        limit_bytes: None,
        scope: None,
        line: None,
        source: "exits",
    };
    grown.map(kill).collect()
}

impl OomKill<'_> {
    /// The container, unit or cgroup that the victim belonged to; its own name where that is
    /// not known, the node where nothing is.
    pub(crate) fn place(&self) -> Subject {
        let own = || match self.comm {
            Some(comm) => Subject::new(SubjectKind::Task, comm),
            None => Subject::node(),
        };
        let Some(path) = self.cgroup.filter(|path| !matches!(*path, "" | "/")) else {
            return own();
        };
        let container = Origin::of(path.as_bytes()).container().map(|one| one.id);
        match (container, unit_name::of_path(path)) {
            (Some(id), _) => Subject::new(SubjectKind::Container, escape(id.as_bytes())),
            (None, Some(unit)) => Subject::new(SubjectKind::Unit, unit),
            (None, None) => Subject::new(SubjectKind::Cgroup, path),
        }
    }

    /// Whether the kernel or its exit shows it, not only what a program wrote.
    pub(crate) fn is_certain(&self) -> bool {
        self.line.is_none_or(Line::is_of_kernel)
    }
}
