//! Containers that a kubelet starts again and again, and waits longer for each time
//! (CrashLoopBackOff): a watch sees one of their lives at most, but the kubelet counts.

use std::time::Duration;

use sexton_model::fact::Unit;
use sexton_model::finding::{Remedy, RemedyKind};
use sexton_model::text::shell_word;

use super::{CODE, SHORT_SECONDS};
use crate::case::Case;
use crate::figures;
use crate::lives::Life;
use crate::rule::Threshold;

/// The longest that a kubelet waits between two lives, and some more.
const LONGEST_WAIT: Duration = Duration::from_secs(6 * 60);

pub(super) static LEAST_ATTEMPTS: Threshold = Threshold {
    rule: CODE,
    name: "least_attempts",
    default: 5.0,
    range: (2.0, 1e6),
    unit: Unit::Count,
    why: "a kubelet that has started a container so often again, and sees it end at once, has \
          tried for five minutes: it waits 10 s at first, then twice as long each time",
};

/// The last life of a container that a kubelet has started many times, if that goes on.
pub(super) fn backs_off<'a>(
    case: &Case<'_>,
    short: &[&'a Life<'a>],
    lives: &[Life<'_>],
) -> Option<&'a Life<'a>> {
    let heard = case.last_heard("containers");
    let limit = Duration::from_secs_f64(case.limit(&SHORT_SECONDS));
    let is_one = |life: &Life<'_>| {
        let ended = life.ended.is_some_and(|at| heard.since(at) <= LONGEST_WAIT);
        let attempts = life.attempt.unwrap_or(0) as f64;
        ended && attempts >= case.limit(&LEAST_ATTEMPTS)
    };
    // It may have come to live since.
    let lives_now = |last: &Life<'_>| {
        lives.iter().any(|life| {
            of_pod(life) == of_pod(last)
                && life.ended.is_none()
                && life.started.is_some_and(|at| heard.since(at) > limit)
        })
    };
    let found = short.iter().copied().filter(|life| is_one(life));
    let found = found.filter(|life| !lives_now(life));
    found.max_by_key(|life| life.at())
}

/// How often it was started, the last time included.
pub(super) fn n_starts(last: &Life<'_>) -> u64 {
    last.attempt.unwrap_or(0).saturating_add(1)
}

pub(super) fn lived_of(last: &Life<'_>) -> String {
    figures::time(last.lived.unwrap_or_default())
}

/// A container by its name in its pod. To Docker, that is a part of its name.
fn in_pod<'a>(life: &Life<'a>) -> &'a str {
    let name = life.name.unwrap_or(life.id);
    let told = name.strip_prefix("k8s_");
    told.and_then(|rest| rest.split('_').next()).unwrap_or(name)
}

pub(super) fn of_pod(life: &Life<'_>) -> String {
    match &life.pod {
        Some(pod) => format!("{} of pod {pod}", in_pod(life)),
        None => in_pod(life).to_owned(),
    }
}

pub(super) fn logs_of_pod(last: &Life<'_>) -> Option<Remedy> {
    let (namespace, pod) = last.pod.as_deref()?.split_once('/')?;
    let [namespace, pod, name] = [namespace, pod, in_pod(last)].map(shell_word);
    Some(Remedy::command(
        RemedyKind::Look,
        "see why it ends",
        format!("kubectl -n {namespace} logs {pod} -c {name} --previous"),
    ))
}

#[cfg(test)]
mod tests {
    use sexton_model::fact::container as fact;
    use sexton_model::finding::{Finding, Severity};
    use sexton_model::record::Sink;
    use sexton_model::subject::{Subject, SubjectKind};

    use super::super::RULE;
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
        out.event(when, &subject(attempt), &fact::CONTAINER_EXITED, ended);
        if let Some(ago) = begun_ago {
            let next = attempt + 1;
            out.event(
                at(2_030 - ago),
                &subject(next),
                &fact::CONTAINER_STARTED,
                details(next),
            );
        }
        watch.add(out);
        watch.judge(&RULE).findings
    }

    #[test]
    fn one_that_a_kubelet_backs_off_from_is_found_by_its_count() {
        let found = backs_off(37, 200, None);
        assert_eq!(
            found[0].title,
            "app of pod default/crasher, a container of crasher:1, was started 38 times by its \
             kubelet and lived 2.0 s the last time"
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
    }
}
