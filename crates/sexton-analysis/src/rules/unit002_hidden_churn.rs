//! UNIT002: an active unit churns containers or cgroups
//!
//! Means: systemd shows the unit active and counts no restarts, while something in it, or a
//! daemon on its behalf, keeps creating cgroups or containers, and the kernel keeps
//! what they leave. In the founding incident a supervisor inside `ecs.service` did that.
//! Where no unit is behind it, the process or the cgroup is named.
//! Not this: a burst of work that drains; a unit that systemd itself restarts (UNIT001); a
//! daemon such as dockerd that does what a client asked, when the client can be named.
//! By hand: `bpftrace -e 'tracepoint:cgroup:cgroup_mkdir { printf("%s %s\n", comm, str(args.path)) }'`,
//! and follow the parents; for containers compare image and name with `systemctl list-units`,
//! and `journalctl -f -o short-monotonic` with `docker events`.
//! Who creates them is known, strongest evidence first, by the path of the cgroup; the process in
//! a scope; the template or socket of instances; the maker's ancestry; the client that ended with the container; a signature of
//! image and name; the pod; a client that was at work when they were made; a like name; starts
//! of a unit in step with them; what a unit writes to the journal in step with them. Each is
//! said with its strength.
//! Next: stop it, then clear what it left (MCG001).

mod suspect;

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::fact::Measure;
use sexton_model::family::Family;
use sexton_model::fix::{Act, Offer};
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::container_runs;
use crate::evidence::creations::Creations;
use crate::evidence::growth;
use crate::evidence::known;
use crate::evidence::origins::Origin;
use crate::evidence::requesters::{Requesters, is_start_of_unit};
use crate::evidence::{restart_loops, short_runs};
use crate::rule::{Cause, Findings, Rule, Threshold};
use suspect::Suspect;

const CODE: &str = "UNIT002";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::UnitLoop,
    title: "an active unit churns containers or cgroups",
    sees: "hidden churn",
    needs: &[],
    uses: &[
        "cgroups",
        "containers",
        "exits",
        "journal",
        "memcg",
        "units",
    ],
    is_essential: true,
    least: Some(&LEAST_SECONDS),
    cause: Cause::WhenNamed,
    offer: Offer(&[Act::Stop, Act::Mask, Act::Purge]),
    thresholds: &[
        &LEAST_BIRTHS,
        &LEAST_SECONDS,
        &LEAST_LEFT,
        &LEAST_LEFT_RATIO,
    ],
    source: include_str!("unit002_hidden_churn.rs"),
    judge,
};

static LEAST_BIRTHS: Threshold = Threshold {
    rule: CODE,
    name: "least_births",
    default: 5.0,
    range: (2.0, 1e9),
    unit: Measure::Count,
    why: "this number of creations in the window by one creator is churn: more than a pod has \
          whose container kubelet restarts with its delays (10 s, 20 s: three containers and a \
          sandbox in half a minute). Slower loops are found by what they left before",
};

static LEAST_SECONDS: Threshold = Threshold {
    rule: CODE,
    name: "least_seconds",
    default: 10.0,
    range: (1.0, 86_400.0),
    unit: Measure::Seconds,
    why: "births within less time than this are one burst of work; systemd counts starts over \
          as long (DefaultStartLimitIntervalSec=10s)",
};

static LEAST_LEFT: Threshold = Threshold {
    rule: CODE,
    name: "least_left",
    default: 6.0,
    range: (1.0, 1e9),
    unit: Measure::Count,
    why: "this number of removed cgroups must still be held by the kernel for churn to be harmful: on a \
          kernel where nothing pins them (7.2) 0 to 5 were measured on their way at any moment",
};

static LEAST_LEFT_RATIO: Threshold = Threshold {
    rule: CODE,
    name: "least_left_ratio",
    default: 0.15,
    range: (0.0, 1.0),
    unit: Measure::Ratio,
    why: "of the removed this part must still be held; containers that touch nothing on the host \
          left 0.00 to 0.13 each when measured, one that appends 4 kB to a log 1.0, 200 bytes 0.2",
};

fn judge(case: &Case<'_>, out: &mut Findings) {
    let heard: Vec<&&str> = ["cgroups", "containers", "memcg"]
        .iter()
        .filter(|s| case.heard(s))
        .collect();
    if heard.is_empty() {
        let because = format!(
            "{}; {}",
            case.why_silent("cgroups"),
            case.why_silent("memcg")
        );
        return out.not_judged(CODE, because);
    }
    let (origins, creations) = (case.origins(), case.creations());
    let requesters = case.requesters();
    let mut suspects: BTreeMap<Subject, Suspect<'_>> = BTreeMap::new();
    add_creations(case, &mut suspects);
    add_lives(case, requesters, &mut suspects);
    add_backlog(case, origins, (requesters, creations), &mut suspects);
    for suspect in suspects.into_values() {
        let is_told = match suspect.subject.kind {
            // Nobody is behind it but itself.
            SubjectKind::Image => short_runs::is_told(case, &suspect.subject.name),
            _ => restart_loops::is_loop(case, &suspect.subject),
        };
        if !is_told && suspect.is_guilty(case) {
            out.found(suspect.finding(case));
        }
    }
}

/// Those that births lead to.
fn add_creations<'a>(case: &Case<'a>, suspects: &mut BTreeMap<Subject, Suspect<'a>>) {
    let creations = case.creations();
    for asked in case.requested() {
        let suspect = Suspect::entry(suspects, &asked.subject);
        suspect.signs.extend(asked.signs.iter().cloned());
        suspect.n_creations += asked.n();
        suspect
            .times
            .extend(asked.creations.iter().map(|creation| creation.at));
        suspect.images.extend(asked.images.iter().copied());
        for (pattern, n) in asked.patterns() {
            let fate = creations.fate(pattern);
            let share = n as f64 / creations.n_of(pattern).max(1) as f64;
            suspect.n_removed += scaled(fate.n_removed, share);
            suspect.n_left += scaled(fate.n_left, share);
            suspect.patterns.insert(pattern.to_owned(), share);
        }
        suspect.containers |= asked
            .creations
            .iter()
            .any(|creation| creation.container.is_some());
    }
}

fn scaled(n: u64, share: f64) -> u64 {
    (n as f64 * share).round() as u64
}

/// Those that loops of containers lead to.
fn add_lives<'a>(
    case: &Case<'a>,
    requesters: &Requesters<'a>,
    suspects: &mut BTreeMap<Subject, Suspect<'a>>,
) {
    for (image, lives) in case.container_runs() {
        let all: Vec<&container_runs::ContainerRun<'a>> = lives.iter().collect();
        let Some((subject, signs)) = requesters.of_containers(Some(image), &all) else {
            continue;
        };
        if !short_runs::is_loop(case, image, lives) {
            continue;
        }
        let suspect = Suspect::entry(suspects, &subject);
        suspect.signs.extend(signs);
        suspect.images.insert(image);
        suspect.containers = true;
        suspect.n_lives += lives.len() as u64;
        suspect
            .life_times
            .extend(lives.iter().map(container_runs::ContainerRun::at));
    }
}

/// What the census has of each, and those that only a backlog leads to.
fn add_backlog<'a>(
    case: &Case<'a>,
    origins: &[Origin<'a>],
    (requesters, creations): (&Requesters<'a>, &Creations<'a>),
    suspects: &mut BTreeMap<Subject, Suspect<'a>>,
) {
    for origin in origins {
        let course = growth::course(origin);
        let is_pile = growth::is_pile(case, origin, course);
        let claims: Vec<(Subject, f64)> = suspects
            .values()
            .filter_map(|suspect| Some((suspect.subject.clone(), claim(case, suspect, origin)?)))
            .collect();
        // What one is seen to make is not put down to another who once made one like it.
        let is_active = |(subject, _): &&(Subject, f64)| suspects[subject].is_active(case);
        let active: Vec<_> = claims.iter().filter(is_active).cloned().collect();
        let claims = if active.is_empty() { claims } else { active };
        let is_claimed = !claims.is_empty();
        for (subject, share) in claims {
            Suspect::entry(suspects, &subject).take(origin, is_pile, share);
        }
        if is_claimed || !is_pile {
            continue;
        }
        let found = by_path(origin)
            .or_else(|| requesters.of_instances(&origin.pattern))
            .or_else(|| requesters.of_containers(Some(origin.image?), &[]));
        if let Some((subject, signs)) = found {
            let suspect = Suspect::entry(suspects, &subject);
            suspect.signs.extend(signs);
            suspect.patterns.insert(origin.pattern.clone(), 1.0);
            suspect.images.extend(origin.image);
            suspect.take(origin, is_pile, 1.0);
            add_starts(creations, origin, suspect);
        }
    }
}

/// The cgroups of the unit itself, made anew whenever a timer or somebody else starts it.
fn add_starts<'a>(creations: &Creations<'a>, origin: &Origin<'a>, suspect: &mut Suspect<'a>) {
    let own = creations.creations.iter().filter(|creation| {
        creation.pattern == origin.pattern
            && is_start_of_unit(creation)
            && creation.unit.as_deref() == Some(&*suspect.subject.name)
    });
    for creation in own {
        suspect.n_creations += creation.n;
        suspect.times.push(creation.at);
    }
    if suspect.n_creations > 0 {
        let fate = creations.fate(&origin.pattern);
        suspect.n_removed += fate.n_removed;
        suspect.n_left += fate.n_left;
    }
}

/// The part of a pile that is a suspect's. Containers of all sorts have cgroups of one
/// pattern: there one birth proves nothing, unless it is of many or of the same image.
fn claim(case: &Case<'_>, suspect: &Suspect<'_>, origin: &Origin<'_>) -> Option<f64> {
    if origin
        .image
        .is_some_and(|image| suspect.images.contains(image))
    {
        return Some(1.0);
    }
    let share = suspect.patterns.get(&origin.pattern).copied();
    let is_container = matches!(origin.kind, "container" | "Kubernetes pod");
    match share {
        Some(share) if !is_container || suspect.churns(case) => Some(share),
        // A loop of containers that was told by the runtime, and not seen as cgroups.
        _ if is_container && suspect.n_lives > 0 => Some(share.unwrap_or(1.0)),
        _ => None,
    }
}

/// The unit that the path of an origin tells, unless it stands for many or for others.
fn by_path(origin: &Origin<'_>) -> Option<(Subject, Vec<crate::evidence::requesters::Sign>)> {
    let unit = origin
        .unit
        .as_deref()
        .filter(|unit| !unit.contains('<') && !known::is_between(unit))?;
    let sign = crate::evidence::requesters::Sign::path(unit);
    Some((Subject::new(SubjectKind::Unit, unit), vec![sign]))
}

/// The time that births must be spread over.
fn least_span(case: &Case<'_>) -> Duration {
    case.lasting(&LEAST_SECONDS)
}

#[cfg(test)]
mod tests;
