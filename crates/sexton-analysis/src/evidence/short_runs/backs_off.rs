//! Containers that a kubelet starts again and again, and waits longer for each time
//! (CrashLoopBackOff), and those that Docker does so with by their restart policy: a watch sees
//! one of their lives at most, but whoever starts them counts.

use std::time::Duration;

use sexton_model::fact::Measure;

use super::{LEAST_LIVES, SHORT_SECONDS};
use crate::case::Case;
use crate::evidence::container_runs::ContainerRun;
use crate::rule::Threshold;
use crate::words::figures;

/// The longest that a kubelet waits between two lives, and some more.
const LONGEST_WAIT: Duration = Duration::from_secs(6 * 60);

/// Both count for as long as a container or its pod is there, and start one that has lived well
/// again at once: whoever waits longer than this has seen it fail several times of late.
const LEAST_WAIT: Duration = Duration::from_secs(8);

pub(crate) static LEAST_ATTEMPTS: Threshold = Threshold {
    rule: "CTR001",
    name: "least_attempts",
    default: 5.0,
    range: (2.0, 1e6),
    unit: Measure::Count,
    why: "a kubelet that has started a container so often again, and sees it end at once, has \
          tried for five minutes: it waits 10 s at first, then twice as long each time",
};

pub(crate) static LEAST_RESTARTS: Threshold = Threshold {
    rule: "CTR001",
    name: "least_restarts",
    default: 10.0,
    range: (2.0, 1e6),
    unit: Measure::Count,
    why: "Docker has then tried for over a minute and a half: it waits 0.1 s at first, then twice \
          as long each time, up to a minute; one that waits for a database is up by then",
};

/// The last life of a container that was started many times, if that goes on.
pub(crate) fn backs_off<'a>(
    case: &Case<'_>,
    short: &[&'a ContainerRun<'a>],
    lives: &[ContainerRun<'_>],
) -> Option<&'a ContainerRun<'a>> {
    let heard = case.last_heard("containers");
    let limit = Duration::from_secs_f64(case.limit(&SHORT_SECONDS));
    let is_one = |life: &ContainerRun<'_>| {
        let ended = life.ended.is_some_and(|at| heard.since(at) <= LONGEST_WAIT);
        let least = match life.pod {
            Some(_) => &LEAST_ATTEMPTS,
            None => &LEAST_RESTARTS,
        };
        ended && life.attempt.unwrap_or(0) as f64 >= case.limit(least)
    };
    let fails_of_late = |last: &ContainerRun<'_>| {
        let own = || lives.iter().filter(|life| of_pod(life) == of_pod(last));
        let next = own()
            .filter_map(|life| life.started)
            .filter(|at| Some(*at) > last.ended);
        let next = next.min().unwrap_or(heard);
        let n_short = short
            .iter()
            .filter(|life| of_pod(life) == of_pod(last))
            .count();
        last.ended
            .is_some_and(|ended| next.since(ended) >= LEAST_WAIT)
            || n_short as f64 >= case.limit(&LEAST_LIVES)
    };
    // It may have come to live since.
    let lives_now = |last: &ContainerRun<'_>| {
        lives.iter().any(|life| {
            of_pod(life) == of_pod(last)
                && life.ended.is_none()
                && life.started.is_some_and(|at| heard.since(at) > limit)
        })
    };
    let found = short.iter().copied().filter(|life| is_one(life));
    let found = found.filter(|life| fails_of_late(life) && !lives_now(life));
    found.max_by_key(|life| life.at())
}

/// How often it was started, the last time included.
pub(crate) fn n_starts(last: &ContainerRun<'_>) -> u64 {
    last.attempt.unwrap_or(0).saturating_add(1)
}

/// Who starts it, and how long that waits at last.
pub(crate) fn starter(last: &ContainerRun<'_>) -> (&'static str, &'static str) {
    match last.pod {
        Some(_) => ("the kubelet", "five minutes"),
        None => ("Docker", "a minute"),
    }
}

pub(crate) fn lived_of(last: &ContainerRun<'_>) -> String {
    figures::time(last.lived.unwrap_or_default())
}

/// A container by its name in its pod. To Docker, that is a part of its name.
pub(crate) fn in_pod<'a>(life: &ContainerRun<'a>) -> &'a str {
    let name = life.name.unwrap_or(life.id);
    let told = name.strip_prefix("k8s_");
    told.and_then(|rest| rest.split('_').next()).unwrap_or(name)
}

pub(crate) fn of_pod(life: &ContainerRun<'_>) -> String {
    match &life.pod {
        Some(pod) => format!("container {} of pod {pod}", in_pod(life)),
        None => in_pod(life).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use sexton_model::fact::container as fact;
    use sexton_model::finding::{Finding, Severity};
    use sexton_model::record::Sink;
    use sexton_model::subject::{Subject, SubjectKind};

    use crate::rules;
    use crate::testing;
    use crate::testing::{Watch, at};

    /// A pod's container that ended once in the last minutes, after this many starts and this
    /// long ago, with the next life begun so long ago.
    fn backs_off(attempt: u64, ended_ago: u64, begun_ago: Option<u64>) -> Vec<Finding> {
        let mut watch = Watch::new(2_000, 30);
        let mut out = Sink::new("containers", at(2_030));
        let details = |attempt: u64| {
            let known = [
                ("id", format!("{attempt:064x}")),
                ("name", format!("k8s_app_crasher_default_uid_{attempt}")),
                ("image", "crasher:1".to_owned()),
                ("runtime", "docker".to_owned()),
                ("pod", "crasher".to_owned()),
                ("pod_namespace", "default".to_owned()),
                ("attempt", attempt.to_string()),
            ];
            known.map(|(key, value)| (key.into(), value)).to_vec()
        };
        let subject =
            |attempt: u64| Subject::new(SubjectKind::Container, format!("{attempt:064x}"));
        let mut ended = details(attempt);
        ended.push(("exit_code".into(), "1".into()));
        ended.push(("lifetime_ms".into(), "2000".into()));
        let when = at(2_030 - ended_ago);
        out.event(
            when,
            &subject(attempt),
            &fact::CONTAINER_EXITED,
            testing::read(ended),
        );
        if let Some(ago) = begun_ago {
            let next = attempt + 1;
            out.event(
                at(2_030 - ago),
                &subject(next),
                &fact::CONTAINER_STARTED,
                testing::read(details(next)),
            );
        }
        watch.add(out);
        watch
            .judge(rules::by_code("CTR001").expect("a rule"))
            .findings
    }

    #[test]
    fn one_that_a_kubelet_backs_off_from_is_found_by_its_count() {
        let found = backs_off(37, 200, None);
        assert_eq!(
            found[0].title,
            "the kubelet started container app of pod default/crasher (crasher:1) 38 times so far; \
             the last run took 2.0 s"
        );
        assert_eq!(found[0].severity, Severity::Warning);
        let commands = found[0].remedies.iter();
        let mut commands = commands.filter_map(|remedy| remedy.command.as_deref());
        let logs = "kubectl -n default logs crasher -c app --previous";
        assert!(commands.any(|command| command == logs));
        // The next life has begun, and may end as the others did.
        assert_eq!(backs_off(37, 310, Some(9)).len(), 1);
    }

    #[test]
    fn one_that_a_kubelet_has_started_at_last_is_left_alone() {
        assert_eq!(backs_off(2, 20, None).len(), 0);
        assert_eq!(backs_off(37, 500, None).len(), 0);
        assert_eq!(backs_off(37, 300, Some(120)).len(), 0);
        // Started again at once: it had lived well before.
        assert_eq!(backs_off(37, 12, Some(11)).len(), 0);
    }

    /// A container of Docker whose last life it remembers, after so many restarts.
    fn restarted(n: u64, lived_ms: u64) -> Vec<Finding> {
        let mut watch = Watch::new(2_000, 30);
        let mut out = Sink::new("containers", at(2_030));
        let known = [
            ("id", "aa".to_owned()),
            ("name", "agent".to_owned()),
            ("image", "agent:1".to_owned()),
            ("runtime", "docker".to_owned()),
            ("attempt", n.to_string()),
            ("exit_code", "1".to_owned()),
            ("lifetime_ms", lived_ms.to_string()),
        ];
        let ended = known.map(|(key, value)| (key.into(), value)).to_vec();
        let subject = Subject::new(SubjectKind::Container, "aa");
        out.event(
            at(1_990),
            &subject,
            &fact::CONTAINER_EXITED,
            testing::read(ended),
        );
        watch.add(out);
        watch
            .judge(rules::by_code("CTR001").expect("a rule"))
            .findings
    }

    #[test]
    fn one_that_docker_waits_to_restart_is_found_by_its_count() {
        let found = restarted(11, 40);
        assert_eq!(
            found[0].title,
            "Docker started agent (agent:1) 12 times so far; the last run took 40 ms"
        );
        let commands = found[0].remedies.iter();
        let mut commands = commands.filter_map(|remedy| remedy.command.as_deref());
        let stop = "sudo sexton fix --container docker:agent --apply";
        assert!(commands.any(|command| command == stop));
    }

    #[test]
    fn one_that_comes_up_slowly_or_lived_long_is_left_alone() {
        assert_eq!(restarted(6, 40).len(), 0);
        assert_eq!(restarted(300, 7_200_000).len(), 0);
    }
}
