//! TASK002: defunct processes pile up
//!
//! Means: a process does not reap its children. A child that has exited stays as a defunct
//! process ("zombie") until its parent asks for its exit status. It uses no CPU time and next
//! to no memory, but it keeps its PID and counts against `pids.max` of its cgroup. When either
//! is used up, nothing can be started any more.
//! Not this: a few defunct processes; a burst that the parent reaps within seconds. The dying
//! memory cgroups of MCG001 and `sexton zombies` are not processes.
//! By hand: `ps -eo ppid,stat | awk '$2 ~ /^Z/' | sort | uniq -c | sort -rn`.
//! Next: restart the parent. A defunct process cannot be killed: it has already exited. When
//! the parent ends, init adopts its children and reaps them. In a container, run an init that
//! reaps (`docker run --init`), because PID 1 there adopts every orphan.

use sexton_model::fact::Measure;
use sexton_model::fact::process::{DEFUNCT_CHILDREN, DefunctChildren};
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures;
use crate::words::unit_name::{self, systemctl};

const CODE: &str = "TASK002";

/// Who says so.
const SOURCE: &str = "processes: /proc/PID/stat";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::Tasks,
    title: "defunct processes pile up",
    sees: "defunct processes",
    needs: &["processes"],
    uses: &[],
    is_essential: true,
    least: None,
    cause: Cause::WhenNamed,
    offer: Offer::NOTHING,
    thresholds: &[&LEAST, &SCARCE],
    source: include_str!("task002_defunct_children.rs"),
    judge,
};

static LEAST: Threshold = Threshold {
    rule: CODE,
    name: "least",
    default: 100.0,
    range: (1.0, 1e7),
    unit: Measure::Count,
    why: "fewer defunct children of one parent are left alone: a server that forks for each \
          request reaps them by the dozen, and 100 are 0.3 % of the smallest usual pid_max \
          (32,768). Only those count that were still defunct in a second scan",
};

static SCARCE: Threshold = Threshold {
    rule: CODE,
    name: "scarce",
    default: 0.5,
    range: (0.01, 1.0),
    unit: Measure::Ratio,
    why: "from this part of pid_max or pids.max on the defunct children alone make the finding \
          serious: as much again, and nothing can be started",
};

fn judge(case: &Case<'_>, out: &mut Findings) {
    let least = case.limit(&LEAST);
    for sightings in case.events_by_subject(&DEFUNCT_CHILDREN).into_values() {
        let Some(last) = sightings.last() else {
            continue;
        };
        if last.says.n_lasting as f64 >= least {
            out.found(finding(case, &sightings, last));
        }
    }
}

/// The parent, as a sentence begins with it: `worker (pid 812)`.
fn name(parent: &DefunctChildren) -> String {
    match &parent.comm {
        Some(comm) => format!("{comm} (pid {})", parent.pid),
        None => format!("process {}", parent.pid),
    }
}

/// The unit of the parent, with the manager of a user's own.
fn unit(parent: &DefunctChildren) -> Option<String> {
    let of_path = parent.cgroup.as_deref().and_then(unit_name::of_path);
    of_path.or_else(|| parent.unit.clone())
}

/// Where the parent belongs: its container, else its unit.
fn place(parent: &DefunctChildren) -> Option<String> {
    match &parent.container {
        Some(id) => Some(format!("container {}", id.get(..12).unwrap_or(id))),
        None => unit(parent),
    }
}

fn finding(
    case: &Case<'_>,
    sightings: &[Event<'_, DefunctChildren>],
    last: &Event<'_, DefunctChildren>,
) -> Finding {
    let parent = last.says;
    let n = figures::count(parent.n);
    let place = place(parent).map_or(String::new(), |place| format!(" in {place}"));
    let share = shares(parent).into_iter().map(|share| share.ratio());
    let is_scarce = share.fold(0.0, f64::max) >= case.limit(&SCARCE);
    Finding {
        code: CODE,
        subject: last.subject.clone(),
        severity: match is_scarce {
            true => Severity::Serious,
            false => Severity::Warning,
        },
        confidence: Confidence::CERTAIN,
        title: format!(
            "{}{place} does not reap its children: {n} defunct processes",
            name(parent)
        ),
        figure: format!("{n} defunct"),
        since: Some(Moment::from_ns(parent.oldest_ns)),
        evidence: evidence(case, sightings, last),
        remedies: remedies(parent),
        touched: touched(last),
        episodes: Vec::new(),
    }
}

/// What the defunct children take from a limit.
struct Share {
    n: u64,
    limit: u64,
    text: String,
}

impl Share {
    fn ratio(&self) -> f64 {
        self.n as f64 / self.limit.max(1) as f64
    }
}

fn shares(parent: &DefunctChildren) -> Vec<Share> {
    let n = parent.n;
    let of_node = parent.pid_max.map(|limit| Share {
        n,
        limit,
        text: format!(
            "they keep {} of the node's PIDs (kernel.pid_max is {})",
            figures::percent(n as f64 / limit.max(1) as f64),
            figures::count(limit)
        ),
    });
    let of_cgroup = parent.cgroup_tasks.zip(parent.cgroup_tasks_max);
    let of_cgroup = of_cgroup.map(|(tasks, limit)| Share {
        n,
        limit,
        text: format!(
            "their cgroup has {} tasks of the {} that pids.max allows",
            figures::count(tasks),
            figures::count(limit)
        ),
    });
    of_node.into_iter().chain(of_cgroup).collect()
}

fn evidence(
    case: &Case<'_>,
    sightings: &[Event<'_, DefunctChildren>],
    last: &Event<'_, DefunctChildren>,
) -> Vec<Evidence> {
    let parent = last.says;
    let since = Moment::from_ns(parent.oldest_ns);
    let lasting = format!(
        "{} of its children are defunct; {} of them were so in an earlier scan too, the oldest \
         {}",
        figures::count(parent.n),
        figures::count(parent.n_lasting),
        figures::before(case.now(), since)
    );
    let mut all = vec![
        Evidence::speaks_for(SOURCE, lasting)
            .value(parent.n as f64)
            .at(last.at),
    ];
    all.extend(growth(sightings, last));
    let shares = shares(parent).into_iter();
    all.extend(shares.map(|share| {
        let ratio = share.ratio();
        Evidence::speaks_for("processes: limits of PIDs", share.text).value(ratio)
    }));
    all
}

/// Whether there were ever more.
fn growth(
    sightings: &[Event<'_, DefunctChildren>],
    last: &Event<'_, DefunctChildren>,
) -> Option<Evidence> {
    let first = sightings.first()?;
    let seconds = last.at.since(first.at).as_secs_f64();
    if seconds < 1.0 || last.says.n == first.says.n {
        return None;
    }
    let (from, to) = (figures::count(first.says.n), figures::count(last.says.n));
    let text = format!(
        "from {from} to {to} within {}",
        figures::time(last.at.since(first.at))
    );
    Some(match last.says.n > first.says.n {
        true => Evidence::speaks_for(SOURCE, format!("they grow {text}")),
        false => Evidence::against(SOURCE, format!("they become fewer {text}")),
    })
}

fn remedies(parent: &DefunctChildren) -> Vec<Remedy> {
    let stop = match (&parent.container, unit(parent)) {
        (Some(id), _) => Remedy::advice(
            RemedyKind::Stop,
            format!(
                "Restart container {id}: when {} ends, its defunct children go",
                name(parent)
            ),
        ),
        (None, Some(unit)) if unit.ends_with(".service") => Remedy::command(
            RemedyKind::Stop,
            "Restart the parent: when it ends, init reaps its defunct children",
            systemctl("restart", &unit),
        ),
        _ => Remedy::command(
            RemedyKind::Stop,
            "End the parent: init then reaps its defunct children",
            format!("sudo kill {}", parent.pid),
        )
        .of_process(parent.pid),
    };
    let prevent = match &parent.container {
        Some(_) => {
            "Run the container with an init that reaps, such as docker run --init, or mend the \
             program"
        }
        None => "Mend the program: call waitpid() on SIGCHLD, or ignore SIGCHLD",
    };
    vec![
        stop,
        Remedy::advice(
            RemedyKind::Stop,
            "Do not kill the defunct processes: they have already exited",
        ),
        Remedy::advice(RemedyKind::Prevent, prevent),
        Remedy::command(
            RemedyKind::Look,
            "List the defunct children",
            format!("ps -o pid,stat,lstart,comm --ppid {}", parent.pid),
        )
        .of_process(parent.pid),
    ]
}

fn touched(last: &Event<'_, DefunctChildren>) -> Vec<Subject> {
    let parent = last.says;
    let mut touched = vec![last.subject.clone()];
    let named = [
        (SubjectKind::Unit, unit(parent)),
        (SubjectKind::Container, parent.container.clone()),
        (SubjectKind::Cgroup, parent.cgroup.clone()),
        (SubjectKind::Cgroup, parent.limited_cgroup.clone()),
    ];
    let named = named.into_iter();
    touched.extend(named.filter_map(|(kind, name)| Some(Subject::new(kind, name?))));
    touched.dedup();
    touched
}

#[cfg(test)]
mod tests {
    use sexton_model::record::Sink;

    use super::*;
    use crate::testing::{Watch, at};

    fn parent(n: u64, n_lasting: u64) -> DefunctChildren {
        DefunctChildren {
            pid: 812,
            comm: Some("worker".into()),
            n,
            n_lasting,
            oldest_ns: 100_000_000_000,
            cgroup: Some("/system.slice/jobs.service".into()),
            unit: Some("jobs.service".into()),
            pid_max: Some(32_768),
            ..DefunctChildren::default()
        }
    }

    /// What is found after these sightings, five seconds apart.
    fn judge(sightings: &[DefunctChildren]) -> Vec<Finding> {
        let mut watch = Watch::new(100, 60);
        let subject = Subject::new(SubjectKind::Process, "812");
        for (i, says) in sightings.iter().enumerate() {
            let moment = at(100 + 5 * i as u64);
            let mut out = Sink::new("processes", moment);
            out.event(moment, &subject, &DEFUNCT_CHILDREN, says.clone());
            watch.add(out);
        }
        watch.judge(&RULE).findings
    }

    #[test]
    fn the_parent_is_named_and_what_to_type() {
        let found = judge(&[parent(300, 0), parent(320, 300)]);
        let [found] = &found[..] else {
            panic!("one finding, not {found:#?}")
        };
        assert_eq!(
            found.title,
            "worker (pid 812) in jobs.service does not reap its children: 320 defunct processes"
        );
        assert_eq!(found.severity, Severity::Warning);
        let command = found.remedies[0].command.as_deref();
        assert_eq!(command, Some("sudo systemctl restart jobs.service"));
        assert!(found.touches(&Subject::new(SubjectKind::Unit, "jobs.service")));
        assert!(
            found
                .evidence
                .iter()
                .any(|seen| seen.text.contains("they grow from 300 to 320"))
        );
    }

    #[test]
    fn a_limit_that_is_half_full_of_them_makes_it_serious() {
        let near = DefunctChildren {
            cgroup_tasks: Some(390),
            cgroup_tasks_max: Some(500),
            ..parent(320, 300)
        };
        assert_eq!(judge(&[near])[0].severity, Severity::Serious);
    }

    #[test]
    fn outside_of_units_the_parent_is_ended_and_in_containers_restarted() {
        let by_hand = DefunctChildren {
            cgroup: Some("/".into()),
            unit: None,
            ..parent(320, 300)
        };
        let command = judge(&[by_hand])[0].remedies[0].command.clone();
        assert_eq!(command.as_deref(), Some("sudo kill 812"));
        let inside = DefunctChildren {
            container: Some("0123456789abcdef".into()),
            ..parent(320, 300)
        };
        let found = judge(&[inside]);
        assert!(
            found[0].title.contains("in container 0123456789ab "),
            "{}",
            found[0].title
        );
        assert_eq!(found[0].remedies[0].command, None);
    }

    #[test]
    fn a_few_or_a_burst_are_innocent() {
        assert!(judge(&[parent(12, 12)]).is_empty());
        assert!(judge(&[parent(99, 99)]).is_empty());
        assert!(judge(&[parent(5_000, 0)]).is_empty());
        assert!(judge(&[parent(5_000, 0), parent(0, 0)]).is_empty());
        assert!(judge(&[parent(400, 300), parent(0, 0)]).is_empty());
    }

    #[test]
    fn without_the_sensor_it_is_not_judged() {
        let blind = Watch::blind("processes", "no procfs").judge(&RULE);
        assert_eq!(blind.not_judged.len(), 1);
    }
}
