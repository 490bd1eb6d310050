//! CTR001: containers of one image are born and die within seconds
//!
//! Means: something runs the same container again and again. Each life costs a cgroup, a
//! mount, a network; what it leaves in the page cache keeps the dead cgroup (MCG001).
//! A kubelet waits ever longer between two lives (CrashLoopBackOff), up to five minutes, and
//! Docker up to one; then their own count of starts tells.
//! Not this: a batch of jobs that runs and is done; a build that runs many images once.
//! By hand: `docker ps -a --format '{{.Image}} {{.Status}}'`, twice: always one that is
//! seconds old.
//! Next: `docker logs` of the last one; who runs it is UNIT001 or UNIT002.

mod backs_off;
mod by_cgroup;

use std::collections::BTreeSet;
use std::time::Duration;

use sexton_model::fact::Unit;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::shell_word;

use crate::askers::Askers;
use crate::births::{Birth, Births};
use crate::case::Case;
use crate::figures;
use crate::lives::{self, Life};
use crate::origins;
use crate::rule::{Findings, Rule, Threshold};
use crate::trend::goes_on;
use backs_off::{backs_off, lived_of, n_starts, of_pod, remedies_of_pod, starter};
use by_cgroup::by_cgroup;

const CODE: &str = "CTR001";

/// Lives of containers that fail or come again under one name make a loop after this.
const LOOP_SPAN: Duration = Duration::from_secs(15);

/// Lives that end well and have names of their own may be a batch; after this they are none.
const BATCH_SPAN: Duration = Duration::from_secs(120);

pub(super) static RULE: Rule = Rule {
    code: CODE,
    title: "containers of one image are born and die within seconds",
    needs: &[],
    uses: &["containers", "cgroups", "exits"],
    is_essential: false,
    is_cause: true,
    thresholds: &[
        &LEAST_LIVES,
        &backs_off::LEAST_ATTEMPTS,
        &backs_off::LEAST_RESTARTS,
        &SHORT_SECONDS,
    ],
    source: include_str!("ctr001_short_lived.rs"),
    judge,
};

pub(super) static LEAST_LIVES: Threshold = Threshold {
    rule: CODE,
    name: "least_lives",
    default: 3.0,
    range: (2.0, 1e6),
    unit: Unit::Count,
    why: "so many short lives in the watch and the ten minutes before it; the slowest loop of the \
          founding incident has 24 in ten minutes",
};

pub(super) static SHORT_SECONDS: Threshold = Threshold {
    rule: CODE,
    name: "short_seconds",
    default: 60.0,
    range: (0.1, 86_400.0),
    unit: Unit::Seconds,
    why: "a life is short below this; the agent of the founding incident lived 10 s",
};

fn judge(case: &Case<'_>, out: &mut Findings) {
    if !case.heard("containers") && !case.heard("cgroups") {
        let because = format!(
            "{}; {}",
            case.why_silent("containers"),
            case.why_silent("cgroups")
        );
        return out.not_judged(CODE, because);
    }
    let by_image = lives::by_image(case);
    let origins = origins::all(case);
    let askers = Askers::new(case, &origins);
    let births = Births::of(case);
    for (image, lives) in &by_image {
        if let Some(short) = Short::of(case, image, lives) {
            out.found(short.finding(case, &askers, &births));
        }
    }
    if by_image.is_empty() {
        by_cgroup(case, &births, &askers, out);
    }
}

/// Short lives of one image.
struct Short<'a> {
    image: &'a str,
    lives: Vec<&'a Life<'a>>,
    n_failed: usize,
    has_one_name: bool,
    /// They are many, and they go on.
    has_many: bool,
    /// The last life of one that a kubelet or Docker has started many times before.
    backs_off: Option<&'a Life<'a>>,
}

/// Whether this rule tells of an image.
pub(super) fn is_told(case: &Case<'_>, image: &str) -> bool {
    let by_image = lives::by_image(case);
    let lives = by_image.get(image);
    lives.is_some_and(|lives| Short::of(case, image, lives).is_some())
}

/// Whether the short lives of one image are a loop, and not work that is done. One life in
/// five minutes is none.
pub(super) fn is_loop<'a>(case: &Case<'_>, image: &'a str, lives: &'a [Life<'a>]) -> bool {
    let short = Short::of(case, image, lives);
    short.is_some_and(|short| short.has_many && short.is_loop(case))
}

impl<'a> Short<'a> {
    fn of(case: &Case<'_>, image: &'a str, lives: &'a [Life<'a>]) -> Option<Self> {
        let limit = Duration::from_secs_f64(case.limit(&SHORT_SECONDS));
        let ended: Vec<&Life<'a>> = lives.iter().filter(|life| life.ended.is_some()).collect();
        let short: Vec<&'a Life<'a>> = lives
            .iter()
            .filter(|life| life.lived.is_some_and(|lived| lived <= limit))
            .collect();
        let n_failed = short
            .iter()
            .filter(|life| life.exit_code.is_some_and(|code| code != 0))
            .count();
        let names: BTreeSet<_> = short.iter().filter_map(|life| life.name).collect();
        let is_mostly = 2 * short.len() >= ended.len();
        let has_one_name = names.len() == 1;
        let times: Vec<Moment> = lives.iter().map(Life::at).collect();
        let is_loop = 2 * n_failed >= short.len() || has_one_name;
        let span = if is_loop { LOOP_SPAN } else { BATCH_SPAN };
        let has_many = short.len() as f64 >= case.limit(&LEAST_LIVES)
            && is_mostly
            && goes_on(&times, case.last_heard("containers"), span);
        let backs_off = backs_off(case, &short, lives);
        (has_many || backs_off.is_some()).then_some(Self {
            image,
            lives: short,
            n_failed,
            has_one_name,
            has_many,
            backs_off,
        })
    }

    /// They fail, or one comes back under its name more often than a timetable has it: cron
    /// knows minutes. Jobs that end well are work, however many there are.
    fn is_loop(&self, case: &Case<'_>) -> bool {
        let is_failing = 2 * self.n_failed >= self.lives.len();
        is_failing || self.backs_off.is_some() || (self.has_one_name && !self.is_scheduled(case))
    }

    fn is_scheduled(&self, case: &Case<'_>) -> bool {
        let times = || self.lives.iter().map(|life| life.at());
        let (Some(first), Some(last)) = (times().min(), times().max()) else {
            return false;
        };
        let gaps = self.lives.len().saturating_sub(1).max(1) as f64;
        let apart = last.since(first).as_secs_f64() / gaps;
        self.n_failed == 0 && apart >= 0.9 * case.limit(&SHORT_SECONDS)
    }

    fn finding(&self, case: &Case<'_>, askers: &Askers<'_>, births: &Births<'_>) -> Finding {
        let subject = Subject::new(SubjectKind::Image, self.image);
        let n = self.lives.len();
        let first = self.lives.first().map_or(case.now(), |life| life.at());
        let span = figures::time(case.now().since(first));
        let lived = median(self.lives.iter().filter_map(|life| life.lived).collect());
        let mut touched = vec![subject.clone()];
        if let Some((asker, _)) = askers.of_containers(Some(self.image), &self.lives) {
            touched.push(asker);
        }
        let ids: BTreeSet<&str> = self.lives.iter().map(|life| life.id).collect();
        touched.extend(patterns(births, &ids));
        touched.sort();
        touched.dedup();
        Finding {
            code: CODE,
            subject,
            severity: match self.is_loop(case) {
                true => Severity::Warning,
                false => Severity::Note,
            },
            confidence: Confidence::CERTAIN,
            title: self.title(&span, lived),
            figure: match self.backs_off {
                Some(last) => format!("{} starts, the last {}", n_starts(last), lived_of(last)),
                None => format!("{n} in {span}, {} each", figures::time(lived)),
            },
            since: Some(first),
            evidence: self.evidence(&span, lived),
            remedies: self.remedies(),
            touched,
            episodes: vec![Episode {
                from: first,
                to: case.now(),
                touched: Vec::new(),
            }],
        }
    }

    fn title(&self, span: &str, lived: Duration) -> String {
        let (n, image, lived) = (self.lives.len(), self.image, figures::time(lived));
        match (self.backs_off, self.restarted()) {
            (Some(last), _) => format!(
                "{}, a container of {image}, was started {} times by {} and lived {} the last \
                 time",
                of_pod(last),
                n_starts(last),
                starter(last).0,
                lived_of(last)
            ),
            (None, Some(name)) => format!(
                "{name}, a container of {image}, was started {n} times in the last {span} and \
                 lived {lived} each time"
            ),
            (None, None) => {
                format!("{n} containers of {image} lived {lived} each in the last {span}")
            }
        }
    }

    /// The runtime that told of them.
    fn runtime(&self) -> Option<&'a str> {
        self.lives.iter().find_map(|life| life.runtime)
    }

    /// The name of the one container that all lives are of: its runtime starts it again.
    fn restarted(&self) -> Option<&'a str> {
        let ids: BTreeSet<&str> = self.lives.iter().map(|life| life.id).collect();
        let name = self.lives.first().and_then(|life| life.name);
        let is_counted = self.backs_off.is_some_and(|last| last.pod.is_none());
        name.filter(|_| ids.len() == 1 && (self.lives.len() > 1 || is_counted))
    }

    /// Commands of the runtime that told of them.
    fn remedies(&self) -> Vec<Remedy> {
        let image = shell_word(self.image);
        let runtime = self.runtime().unwrap_or("docker");
        let look = match runtime {
            "containerd" | "cri-o" => "sudo crictl ps -a".to_owned(),
            _ => format!("{runtime} ps -a --filter ancestor={image}"),
        };
        let mut remedies = vec![Remedy::command(RemedyKind::Look, "see the last ones", look)];
        let of_pod = self.backs_off.or(self.lives.last().copied());
        remedies.extend(of_pod.map(remedies_of_pod).unwrap_or_default());
        let has_cli = matches!(runtime, "docker" | "podman");
        if let Some(name) = self.restarted().filter(|_| has_cli) {
            let whose = shell_word(&format!("{runtime}:{name}"));
            remedies.push(Remedy::command(
                RemedyKind::Stop,
                "end its restarts, and it; fix --undo takes it back",
                format!("sudo sexton fix --container {whose} --apply"),
            ));
            remedies.push(Remedy::command(
                RemedyKind::Look,
                "see why it ends",
                format!("{runtime} logs --tail 50 {}", shell_word(name)),
            ));
        }
        remedies
    }

    fn evidence(&self, span: &str, lived: Duration) -> Vec<Evidence> {
        let n = self.lives.len();
        let runtime = self.runtime().unwrap_or("runtime");
        let source = format!("containers: {runtime} events");
        let lived = figures::time(lived);
        let text = match n {
            1 => format!("one short life in {span}: {lived}"),
            _ => format!("{n} short lives in {span}, half of them shorter than {lived}"),
        };
        let mut evidence = vec![Evidence::speaks_for(source.clone(), text).value(n as f64)];
        let text = format!("{} of {n} ended with a status that is not 0", self.n_failed);
        evidence.push(match self.n_failed {
            0 => Evidence::against(source.clone(), text),
            _ => Evidence::speaks_for(source.clone(), text).value(self.n_failed as f64),
        });
        let name = self.lives.first().and_then(|life| life.name);
        let name = name.filter(|_| n > 1);
        let text = match (self.restarted(), name.filter(|_| self.has_one_name)) {
            (Some(name), _) => Some(format!(
                "it was one container each time, {name}: {runtime} starts it again, by its \
                 restart policy or because somebody asks"
            )),
            (None, Some(name)) => Some(format!("each was named {name}")),
            (None, None) => None,
        };
        evidence.extend(text.map(|text| Evidence::speaks_for(source.clone(), text)));
        evidence.extend(self.backs_off.map(|last| {
            let (n, (who, longest)) = (n_starts(last), starter(last));
            let text = format!(
                "{who} counts {n} starts of {}, and waits longer after each, up to {longest}",
                of_pod(last)
            );
            Evidence::speaks_for(source, text).value(n as f64)
        }));
        evidence
    }
}

/// Patterns of the cgroups of these containers.
fn patterns(births: &Births<'_>, ids: &BTreeSet<&str>) -> BTreeSet<Subject> {
    let is_one = |birth: &&Birth<'_>| birth.container.is_some_and(|id| ids.contains(id));
    let patterns = births.births.iter().filter(is_one);
    patterns
        .map(|birth| Subject::new(SubjectKind::Cgroup, birth.pattern.as_str()))
        .collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use sexton_model::fact::container as fact;
    use sexton_model::fact::sexton::SEXTON_POLL_NS;
    use sexton_model::record::Sink;

    use super::*;
    use crate::testing::{Watch, at, lives};

    fn check(every: u64, n: u64, seconds: u64, code: &str, name: &str, expected: usize) {
        let mut watch = Watch::new(1_000, 30);
        watch.add(lives(
            1_030,
            every,
            n,
            seconds,
            "amazon/amazon-ecs-agent:latest",
            name,
            code,
        ));
        let findings = watch.judge(&RULE).findings;
        assert_eq!(findings.len(), expected, "{findings:#?}");
    }

    #[test]
    fn a_loop_is_found_slow_or_fast() {
        check(25, 24, 10, "1", "ecs-agent", 1);
        check(2, 12, 1, "1", "ecs-agent", 1);
    }

    /// Starts and ends of containers with these ids, two seconds apart.
    fn loop_of(ids: &[&str]) -> Finding {
        let mut watch = Watch::new(1_000, 30);
        let mut out = Sink::new("containers", at(1_030));
        for i in 0..12_u64 {
            let details = |more: (&'static str, &str)| {
                vec![
                    ("id".into(), ids[i as usize % ids.len()].to_owned()),
                    ("name".into(), "worker".to_owned()),
                    ("image".into(), "tiny:1".to_owned()),
                    ("runtime".into(), "docker".to_owned()),
                    (more.0.into(), more.1.to_owned()),
                ]
            };
            let subject = Subject::new(SubjectKind::Container, "worker");
            let start = 1_002 + 2 * i;
            let started = details(("pid", "7"));
            out.event(at(start), &subject, &fact::CONTAINER_STARTED, started);
            let ended = details(("exit_code", "1"));
            out.event(at(start + 1), &subject, &fact::CONTAINER_EXITED, ended);
        }
        watch.add(out);
        watch.judge(&RULE).findings.remove(0)
    }

    #[test]
    fn one_container_that_comes_back_is_told_from_many_of_one_name() {
        let one = loop_of(&["aa"]);
        assert!(
            one.evidence
                .iter()
                .any(|e| e.text.contains("one container each time"))
        );
        let stop = one
            .remedies
            .iter()
            .find(|remedy| remedy.kind == RemedyKind::Stop);
        assert_eq!(
            stop.and_then(|stop| stop.command.as_deref()),
            Some("sudo sexton fix --container docker:worker --apply")
        );
        assert_eq!(
            one.title,
            "worker, a container of tiny:1, was started 12 times in the last 28 s and lived 1.0 s \
             each time"
        );
        let many = loop_of(&["aa", "bb", "cc"]);
        assert!(
            many.evidence
                .iter()
                .any(|e| e.text == "each was named worker")
        );
        assert!(
            many.remedies
                .iter()
                .all(|remedy| remedy.kind != RemedyKind::Stop)
        );
    }

    /// Runtimes are asked every 5 s: a watch may end just before they are asked again.
    #[test]
    fn a_loop_is_found_though_its_runtime_was_asked_a_while_ago() {
        let mut watch = Watch::new(1_000, 24);
        watch
            .records
            .retain(|record| record.sensor != "containers" || record.at < at(1_024));
        let mut out = Sink::new("containers", at(1_018));
        let own = Subject::new(SubjectKind::Sensor, "containers");
        out.sample(&own, &SEXTON_POLL_NS, 1.0);
        watch.add(out);
        watch.add(lives(1_018, 1, 18, 1, "probe:2", "job-", "5"));
        assert_eq!(watch.judge(&RULE).findings.len(), 1);
    }

    #[test]
    fn a_batch_of_jobs_is_none() {
        check(1, 20, 1, "0", "job-", 0);
        check(25, 24, 3_000, "1", "web", 0);
        check(25, 2, 10, "1", "ecs-agent", 0);
    }

    #[test]
    fn what_nobody_tells_is_not_judged() {
        assert_eq!(
            Watch::blind("containers", "no")
                .judge(&RULE)
                .not_judged
                .len(),
            1
        );
    }
}
