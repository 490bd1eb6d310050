//! MCG001: dying memory cgroups pile up
//!
//! Means: userspace removed these cgroups; the kernel holds them and their memory because
//! something in them is still in use: most often one page of a file that is cached.
//! Not this: a burst after a deploy that drains; the few that a boot leaves (16 were
//! measured); leaked directories, which are live (MCG002). On kernels that hand cached pages
//! to the parent (7.1 and later) few dying ones are normal and none pile up by page cache.
//! By hand: `grep dying /sys/fs/cgroup/cgroup.stat` on cgroup v2; on v1 the third column of
//! `memory` in `/proc/cgroups` less the directories. Twice, a minute apart.
//! Next: stop who makes them (UNIT001, UNIT002), then free what pins them: `sudo sexton zombies
//! --by file`. Page cache goes with reclaim of the parent; tmpfs files only when deleted.

mod forecast;
mod nameless;

use sexton_model::fact::Measure;
use sexton_model::fact::memcg as fact;
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::{Act, Offer};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::shell_word;

use crate::case::Case;
use crate::evidence::growth::{self, Course, FLOOR, GROWING_FLOOR, LEAST_PER_HOUR, is_pile};
use crate::evidence::origins::Origin;
use crate::evidence::requesters::Requested;
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures;

const CODE: &str = "MCG001";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::MemoryCgroupLeak,
    title: "dying memory cgroups pile up",
    sees: "dying memory cgroups",
    needs: &["memcg"],
    uses: &["cgroups", "containers", "exits"],
    is_essential: true,
    least: None,
    cause: Cause::Never,
    offer: Offer(&[Act::Purge]),
    thresholds: &[&FLOOR, &GROWING_FLOOR, &LEAST_PER_HOUR, &SERIOUS_BYTES],
    source: include_str!("mcg001_dying_pile_up.rs"),
    judge,
};

static SERIOUS_BYTES: Threshold = Threshold {
    rule: CODE,
    name: "serious_bytes",
    default: 1_073_741_824.0,
    range: (1e6, 1e15),
    unit: Measure::Bytes,
    why: "kernel memory of dying cgroups that hurts by itself: 1 GiB is 50,000 of them on two \
          CPUs, 3,500 on 96 CPUs and two nodes",
};

fn judge(case: &Case<'_>, out: &mut Findings) {
    let node = Subject::node();
    let Some(dying) = case.latest(&fact::MEMCG_DYING, &node) else {
        return out.not_judged(
            CODE,
            "the counts do not separate live from dying memory cgroups",
        );
    };
    let mut has_pile = false;
    for origin in case.origins() {
        let course = growth::course(origin);
        if !is_pile(case, origin, course) {
            continue;
        }
        has_pile = true;
        out.found(finding(case, origin, course, case.requested()));
        if let Some(trend) = growth::goes_on(case, origin, course) {
            out.forecast(forecast::of(case, origin, trend));
        }
    }
    // Pages tell the parents, and not which of several has the many.
    if !has_pile && let Some(finding) = nameless::finding(case, dying) {
        out.found(finding);
    }
}

/// In which time they were made, where ages say so: they reach further back than the watch, and
/// the rate is that of this longer time.
fn made_in(origin: &Origin<'_>, course: Course) -> String {
    match (course, origin.oldest_seconds) {
        (Course::HasGrown(_), Some(age)) => {
            format!(" in {}", figures::time(std::time::Duration::from_secs(age)))
        }
        _ => String::new(),
    }
}

fn finding(
    case: &Case<'_>,
    origin: &Origin<'_>,
    course: Course,
    asked: &[Requested<'_>],
) -> Finding {
    let dying = figures::count(origin.dying);
    let grows =
        growth::goes_on(case, origin, course).map(|trend| figures::per_hour(trend.per_second));
    let made_in = made_in(origin, course);
    let title = match &grows {
        Some(rate) => format!("{dying} dying memory cgroups{made_in}, {rate}"),
        None => format!("{dying} dying memory cgroups, not growing now"),
    };
    let bytes = bytes_each(case).unwrap_or(0.0) * origin.dying as f64;
    let is_serious = bytes >= case.limit(&SERIOUS_BYTES);
    let mut touched = origin.touched();
    touched.extend(
        origin
            .image
            .map(|image| Subject::new(SubjectKind::Image, image)),
    );
    for one in asked.iter().filter(|one| one.has(&origin.pattern)) {
        touched.push(one.subject.clone());
        touched.extend(
            one.images
                .iter()
                .map(|image| Subject::new(SubjectKind::Image, *image)),
        );
    }
    let mut evidence = evidence(case, origin, course);
    nameless::add_held_below(case, origin, &mut touched, &mut evidence);
    touched.sort();
    touched.dedup();
    Finding {
        code: CODE,
        subject: origin.subject.clone(),
        severity: if is_serious {
            Severity::Serious
        } else {
            Severity::Warning
        },
        confidence: Confidence::CERTAIN,
        title,
        figure: match grows {
            Some(rate) => format!("{dying} dying{made_in}, {rate}"),
            None => format!("{dying} dying"),
        },
        since: growth::since(origin),
        evidence,
        remedies: remedies(origin),
        touched,
        episodes: Vec::new(),
    }
}

fn evidence(case: &Case<'_>, origin: &Origin<'_>, course: Course) -> Vec<Evidence> {
    let source = "memcg: census";
    let text = format!(
        "{} dying and {} live",
        figures::count(origin.dying),
        figures::count(origin.live)
    );
    let mut evidence = vec![
        Evidence::speaks_for(source, text)
            .value(origin.dying as f64)
            .at(origin.at),
    ];
    evidence.push(growth(origin, course));
    evidence.extend(pins(origin));
    if let Some(age) = origin.oldest_seconds {
        let age = figures::time(std::time::Duration::from_secs(age));
        evidence.push(Evidence::speaks_for(source, format!("oldest: {age}")));
    }
    if let Some(each) = bytes_each(case) {
        let held = each * origin.dying as f64;
        let text = format!(
            "at least {} of kernel memory in their structures",
            figures::bytes(held)
        );
        evidence.push(Evidence::speaks_for("memcg: type sizes", text).value(held));
    }
    evidence
}

fn growth(origin: &Origin<'_>, course: Course) -> Evidence {
    let rate = |per_second: f64, error: f64| {
        let error = figures::count((error * 3600.0).round() as u64);
        format!("{} (± {error}", figures::per_hour(per_second))
    };
    let n = origin.points.len();
    match course {
        Course::Grows(trend) => Evidence::speaks_for(
            "memcg: census",
            format!(
                "growing by {}, from {} counts)",
                rate(trend.per_second, trend.error),
                trend.n_points
            ),
        )
        .value(trend.per_second * 3600.0),
        Course::HasGrown(trend) => Evidence::speaks_for(
            "memcg: ages",
            format!(
                "growing by {}, from their ages)",
                rate(trend.per_second, trend.error)
            ),
        )
        .value(trend.per_second * 3600.0),
        Course::Stands if n < crate::evidence::trend::LEAST_POINTS => {
            let text = format!("whether it grows: {n} counts and no ages are too few");
            Evidence::missing("memcg: census", text)
        }
        Course::Stands | Course::Drains => {
            Evidence::against("memcg: census", format!("no growth in {n} counts"))
        }
    }
}

fn pins(origin: &Origin<'_>) -> Vec<Evidence> {
    let Some([file, shmem, anon, other]) = origin.pages else {
        let text = "what pins them: this census method does not show pages";
        return vec![Evidence::missing("memcg: census", text)];
    };
    let kinds = [
        ("page cache", file),
        ("tmpfs or shared memory", shmem),
        ("anonymous memory", anon),
        ("locked or swapped pages", other),
    ];
    let held: Vec<String> = kinds
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| format!("{} of {name}", figures::plural(*n, "page")))
        .collect();
    let mut evidence = Vec::new();
    if held.is_empty() {
        let text = format!(
            "{} of them have no page: about to be released, or pinned by a socket",
            figures::count(origin.without_pin)
        );
        evidence.push(Evidence::against("memcg: pages", text));
    } else {
        evidence.push(Evidence::speaks_for(
            "memcg: pages",
            format!("pinned by {}", held.join(", ")),
        ));
    }
    for pin in origin.pins {
        let text = format!(
            "{} ({}) pins {} of them",
            pin.path,
            pin.kind,
            figures::count(pin.zombies)
        );
        evidence.push(Evidence::speaks_for("memcg: pins", text).value(pin.zombies as f64));
    }
    evidence
}

/// What frees them depends on what pins them.
fn remedies(origin: &Origin<'_>) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    let tmpfs = origin.pins.iter().find(|pin| pin.kind.ends_with("shmem"));
    let is_tmpfs = origin.pages.is_some_and(|[file, shmem, ..]| shmem > file);
    if let Some(pin) = tmpfs.filter(|_| is_tmpfs) {
        let text = format!(
            "Delete {} when it is no longer needed: reclaim does not free tmpfs pages",
            pin.path
        );
        remedies.push(Remedy::advice(RemedyKind::CleanUp, text));
    } else {
        remedies.push(Remedy::command(
            RemedyKind::CleanUp,
            "Reclaim them once the source has stopped",
            format!(
                "sudo sexton fix --origin {} --apply",
                shell_word(&origin.subject.name)
            ),
        ));
    }
    remedies.push(Remedy::command(
        RemedyKind::Look,
        "List the files that pin them",
        "sudo sexton zombies --by file",
    ));
    remedies
}

/// Bytes of kernel memory of one dying cgroup.
fn bytes_each(case: &Case<'_>) -> Option<f64> {
    let node = Subject::node();
    let dying = case
        .latest(&fact::MEMCG_DYING, &node)
        .filter(|n| *n > 0.0)?;
    Some(case.latest(&fact::MEMCG_DYING_BYTES, &node)? / dying)
}

#[cfg(test)]
mod tests;
