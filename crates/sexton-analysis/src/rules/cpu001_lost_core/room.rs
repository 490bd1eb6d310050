//! Whether others had room on a core that ran the kernel: then it is busy, not lost.

use std::time::Duration;

use sexton_model::fact::core::{CORE_IRQ_RATIO, CORE_SOFTIRQ_RATIO};
use sexton_model::fact::napi::{NAPI_SERVED, NAPI_STARVED};
use sexton_model::fact::runq::{RUNQ_DELAY_MAX_NS, RUNQ_WAIT, RUNQ_WAITING};
use sexton_model::finding::Evidence;
use sexton_model::moment::Moment;
use sexton_model::subject::Subject;

use super::users::User;
use super::{LONG_STRETCH, Stretch, WAIT, mean_in};
use crate::case::Case;
use crate::evidence::kernel_log;
use crate::evidence::span::earlier;
use crate::words::figures::time;

/// Tasks cannot take the core from interrupts that have this part of it.
const IN_INTERRUPTS: f64 = 0.2;

/// A wait is told up to a poll after its end, and the kernel complains after some time.
const SLACK: Duration = Duration::from_secs(2);
const COMPLAINS_WITHIN: Duration = Duration::from_secs(30);

/// What the kernel writes of a core that does not come to other work.
const COMPLAINTS: [&str; 6] = [
    "soft_lockup",
    "hard_lockup",
    "rcu_stall",
    "workqueue_lockup",
    "workqueue_hog",
    "resched_late",
];

/// The longest wait for the core in these stretches, where all that is known says that tasks got
/// it when they wanted it. `None`: something waited, or it is not known.
pub(super) fn of(
    case: &Case<'_>,
    core: &Subject,
    long: &[&Stretch],
    users: &[User],
) -> Option<Duration> {
    let interrupts = [&CORE_IRQ_RATIO, &CORE_SOFTIRQ_RATIO];
    let interrupts: f64 = interrupts
        .iter()
        .map(|fact| mean_in(case, fact, core, long))
        .sum();
    let longest = longest_wait(case, core, long)?;
    let is_short = longest.as_secs_f64() < case.limit(&WAIT);
    let suffers = is_waited_for(case, core, long)
        || is_complained_of(case, core, long)
        || walks(case, core, long, users);
    (is_short && interrupts < IN_INTERRUPTS && !suffers).then_some(longest)
}

/// What the scheduler counted. A core that gives no task a turn for long may not be able to.
fn longest_wait(case: &Case<'_>, core: &Subject, long: &[&Stretch]) -> Option<Duration> {
    let told: Vec<(Moment, f64)> = case.samples(&RUNQ_DELAY_MAX_NS, core).collect();
    let most = Duration::from_secs_f64(case.limit(&LONG_STRETCH));
    let mut longest = 0.0_f64;
    for stretch in long {
        let mut last = stretch.from;
        let until = stretch.to.after(SLACK);
        for (at, ns) in told
            .iter()
            .filter(|(at, _)| stretch.from <= *at && *at <= until)
        {
            longest = longest.max(*ns);
            if at.since(last) >= most {
                return None;
            }
            last = *at;
        }
        if last == stretch.from || stretch.to.since(last) >= most {
            return None;
        }
    }
    Some(Duration::from_nanos(longest as u64))
}

/// Whether a task or network polling waited long enough for the core to be recorded.
fn is_waited_for(case: &Case<'_>, core: &Subject, long: &[&Stretch]) -> bool {
    let meets = |at: Moment, waited_ns: u64| {
        let from = earlier(at, Duration::from_nanos(waited_ns));
        let mut stretches = long.iter();
        stretches.any(|stretch| from <= stretch.to.after(SLACK) && stretch.from <= at)
    };
    let mut tasks = case.events(&RUNQ_WAIT).chain(case.events(&RUNQ_WAITING));
    let mut polls = case.events(&NAPI_STARVED).chain(case.events(&NAPI_SERVED));
    let waits = tasks.any(|event| event.subject == core && meets(event.at, event.says.waited_ns));
    waits
        || polls.any(|event| {
            event.subject == core && meets(event.at, event.says.waited_ns.unwrap_or(0))
        })
}

fn is_complained_of(case: &Case<'_>, core: &Subject, long: &[&Stretch]) -> bool {
    let lines = kernel_log::lines(case, &COMPLAINTS);
    let about = |at: Moment| {
        let mut stretches = long.iter();
        stretches.any(|one| one.from <= at && at <= one.to.after(COMPLAINS_WITHIN))
    };
    let mut lines = lines.iter();
    lines.any(|line| about(line.at()) && line.core().is_none_or(|one| one == *core))
}

/// Whether it was seen walking memory cgroups there: that is CPU002's, whatever waits.
fn walks(case: &Case<'_>, core: &Subject, long: &[&Stretch], users: &[User]) -> bool {
    let meets = |from: Moment, to: Moment| {
        let mut stretches = long.iter();
        stretches.any(|stretch| from <= stretch.to && stretch.from <= to)
    };
    let had_it = |process: &Subject| users.iter().any(|user| user.process == *process);
    case.sightings()
        .iter()
        .any(|one| meets(one.from, one.to) && (one.core == *core || had_it(&one.process)))
}

pub(super) fn evidence(longest: Duration) -> Evidence {
    let text = format!(
        "tasks that woke there ran soon: the longest wait for it was {}",
        time(longest)
    );
    Evidence::against("runq", text).value(longest.as_secs_f64())
}
