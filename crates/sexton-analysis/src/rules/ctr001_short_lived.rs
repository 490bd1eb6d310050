//! CTR001: containers of one image exit within seconds of their start
//!
//! Means: the same container is started over and over. Each start costs a cgroup, a
//! mount, a network; what it leaves in the page cache keeps the dead cgroup (MCG001).
//! A kubelet waits ever longer between two lives (CrashLoopBackOff), up to five minutes, and
//! Docker up to one; then their own count of starts tells.
//! Not this: a batch of jobs that runs and is done; a build that runs many images once.
//! By hand: `docker ps -a --format '{{.Image}} {{.Status}}'`, twice: always one that is
//! seconds old.
//! Next: `docker logs` of the last one; who runs it is UNIT001 or UNIT002.

mod by_cgroup;

use std::collections::BTreeSet;
use std::time::Duration;

use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::shell_word;

use crate::case::Case;
use crate::evidence::container_runs::ContainerRun;
use crate::evidence::creations::{Creation, Creations};
use crate::evidence::requesters::Requesters;
use crate::evidence::short_runs::backs_off::{self, in_pod, lived_of, n_starts, of_pod, starter};
use crate::evidence::short_runs::{LEAST_LIVES, SHORT_SECONDS, Short};
use crate::rule::{Cause, Findings, Rule};
use crate::words::figures;
use by_cgroup::by_cgroup;

const CODE: &str = "CTR001";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::ContainerChurn,
    title: "containers of one image exit within seconds of their start",
    sees: "short-lived containers",
    needs: &[],
    uses: &["containers", "cgroups", "exits"],
    is_essential: false,
    least: None,
    cause: Cause::WhenNamed,
    offer: Offer::NOTHING,
    thresholds: &[
        &LEAST_LIVES,
        &backs_off::LEAST_ATTEMPTS,
        &backs_off::LEAST_RESTARTS,
        &SHORT_SECONDS,
    ],
    source: include_str!("ctr001_short_lived.rs"),
    judge,
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
    let by_image = case.container_runs();
    let (requesters, creations) = (case.requesters(), case.creations());
    for (image, lives) in by_image {
        if let Some(short) = Short::of(case, image, lives) {
            out.found(short.finding(case, requesters, creations));
        }
    }
    if by_image.is_empty() {
        by_cgroup(case, out);
    }
}

impl<'a> Short<'a> {
    fn finding(
        &self,
        case: &Case<'_>,
        requesters: &Requesters<'_>,
        creations: &Creations<'_>,
    ) -> Finding {
        let subject = Subject::new(SubjectKind::Image, self.image);
        let n = self.lives.len();
        let first = self.lives.first().map_or(case.now(), |life| life.at());
        let span = figures::time(case.now().since(first));
        let lived = median(self.lives.iter().filter_map(|life| life.lived).collect());
        let mut touched = vec![subject.clone()];
        if let Some((asker, _)) = requesters.of_containers(Some(self.image), &self.lives) {
            touched.push(asker);
        }
        let ids: BTreeSet<&str> = self.lives.iter().map(|life| life.id).collect();
        touched.extend(patterns(creations, &ids));
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
                Some(last) => format!("{} starts, the last ran {}", n_starts(last), lived_of(last)),
                None => format!(
                    "{} in {span}, {} each",
                    figures::plural(n as u64, "start"),
                    figures::time(lived)
                ),
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
                "{} started {} ({image}) {} times so far; the last run took {}",
                starter(last).0,
                of_pod(last),
                n_starts(last),
                lived_of(last)
            ),
            (None, Some(name)) => format!(
                "container {name} ({image}) started {n} times in {span}, each run took {lived}"
            ),
            (None, None) => {
                format!("{n} containers of {image} started in {span}, each ran {lived}")
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
        let mut remedies = Vec::new();
        let of_pod = self.backs_off.or(self.lives.last().copied());
        remedies.extend(of_pod.map(remedies_of_pod).unwrap_or_default());
        let has_cli = matches!(runtime, "docker" | "podman");
        if let Some(name) = self.restarted().filter(|_| has_cli) {
            let whose = shell_word(&format!("{runtime}:{name}"));
            remedies.push(Remedy::command(
                RemedyKind::Stop,
                "Stop it and its restarts (sexton fix --undo reverts it)",
                format!("sudo sexton fix --container {whose} --apply"),
            ));
            remedies.push(Remedy::command(
                RemedyKind::Look,
                "Read why it exits",
                format!("{runtime} logs --tail 50 {}", shell_word(name)),
            ));
        }
        // Why it exits comes first.
        remedies.push(Remedy::command(
            RemedyKind::Look,
            "List the last ones",
            look,
        ));
        remedies
    }

    fn evidence(&self, span: &str, lived: Duration) -> Vec<Evidence> {
        let n = self.lives.len();
        let runtime = self.runtime().unwrap_or("runtime");
        let source = format!("containers: {runtime} events");
        let lived = figures::time(lived);
        let text = match n {
            1 => format!("1 short run in {span}: {lived}"),
            _ => format!("{n} short runs in {span}, median {lived}"),
        };
        let mut evidence = vec![Evidence::speaks_for(source.clone(), text).value(n as f64)];
        let text = format!("{} of {n} exited with a non-zero status", self.n_failed);
        evidence.push(match self.n_failed {
            0 => Evidence::against(source.clone(), text),
            _ => Evidence::speaks_for(source.clone(), text).value(self.n_failed as f64),
        });
        let name = self.lives.first().and_then(|life| life.name);
        let name = name.filter(|_| n > 1);
        let text = match (self.restarted(), name.filter(|_| self.has_one_name)) {
            (Some(name), _) => Some(format!(
                "the same container each time, {name}: {runtime} restarts it, by its restart \
                 policy or for a client"
            )),
            (None, Some(name)) => Some(format!("each had the name {name}")),
            (None, None) => None,
        };
        evidence.extend(text.map(|text| Evidence::speaks_for(source.clone(), text)));
        evidence.extend(self.backs_off.map(|last| {
            let (n, (who, longest)) = (n_starts(last), starter(last));
            let text = format!(
                "{who} counts {n} starts of {}, with a back-off of up to {longest}",
                of_pod(last)
            );
            Evidence::speaks_for(source, text).value(n as f64)
        }));
        evidence
    }
}

/// What to do about a pod, and where it says why.
fn remedies_of_pod(life: &ContainerRun<'_>) -> Vec<Remedy> {
    let Some((namespace, pod)) = life.pod.as_deref().and_then(|pod| pod.split_once('/')) else {
        return Vec::new();
    };
    let [namespace, pod, name] = [namespace, pod, in_pod(life)].map(shell_word);
    vec![
        Remedy::advice(
            RemedyKind::Stop,
            format!("Repair {}, or remove the owner of the pod", of_pod(life)),
        ),
        Remedy::command(
            RemedyKind::Look,
            "Read why it exits",
            format!("kubectl -n {namespace} logs {pod} -c {name} --previous"),
        ),
        Remedy::command(
            RemedyKind::Look,
            "Find the owner of the pod",
            format!("kubectl -n {namespace} describe pod {pod}"),
        ),
    ]
}

/// Patterns of the cgroups of these containers.
fn patterns(creations: &Creations<'_>, ids: &BTreeSet<&str>) -> BTreeSet<Subject> {
    let is_one = |creation: &&Creation<'_>| creation.container.is_some_and(|id| ids.contains(id));
    let patterns = creations.creations.iter().filter(is_one);
    patterns
        .map(|creation| Subject::new(SubjectKind::Cgroup, creation.pattern.as_str()))
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
    use crate::testing;
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
            out.event(
                at(start),
                &subject,
                &fact::CONTAINER_STARTED,
                testing::read(started),
            );
            let ended = details(("exit_code", "1"));
            out.event(
                at(start + 1),
                &subject,
                &fact::CONTAINER_EXITED,
                testing::read(ended),
            );
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
                .any(|e| e.text.contains("the same container each time"))
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
            "container worker (tiny:1) started 12 times in 28 s, each run took 1.0 s"
        );
        let many = loop_of(&["aa", "bb", "cc"]);
        assert!(
            many.evidence
                .iter()
                .any(|e| e.text == "each had the name worker")
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
