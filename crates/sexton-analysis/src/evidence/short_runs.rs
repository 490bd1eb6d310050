//! Containers of one image that run for seconds, again and again.

pub(crate) mod backs_off;

use std::collections::BTreeSet;
use std::time::Duration;

use sexton_model::fact::Measure;
use sexton_model::moment::Moment;

use crate::case::Case;
use crate::evidence::container_runs::ContainerRun;
use crate::evidence::trend::goes_on;
use crate::rule::Threshold;
use backs_off::backs_off;

/// Lives of containers that fail or come again under one name make a loop after this.
pub(crate) const LOOP_SPAN: Duration = Duration::from_secs(15);

/// Lives that end well and have names of their own may be a batch; after this they are none.
const BATCH_SPAN: Duration = Duration::from_secs(120);

pub(crate) static LEAST_LIVES: Threshold = Threshold {
    rule: "CTR001",
    name: "least_lives",
    default: 3.0,
    range: (2.0, 1e6),
    unit: Measure::Count,
    why: "this number of short runs in the watch and the ten minutes before it; the slowest loop of the \
          founding incident has 24 in ten minutes",
};

pub(crate) static SHORT_SECONDS: Threshold = Threshold {
    rule: "CTR001",
    name: "short_seconds",
    default: 60.0,
    range: (0.1, 86_400.0),
    unit: Measure::Seconds,
    why: "a life is short below this; the agent of the founding incident lived 10 s",
};

/// Short lives of one image.
#[derive(Debug)]
pub(crate) struct Short<'a> {
    pub(crate) image: &'a str,
    pub(crate) lives: Vec<&'a ContainerRun<'a>>,
    pub(crate) n_failed: usize,
    pub(crate) has_one_name: bool,
    /// They are many, and they go on.
    pub(crate) has_many: bool,
    /// The last life of one that a kubelet or Docker has started many times before.
    pub(crate) backs_off: Option<&'a ContainerRun<'a>>,
}

/// Whether containers of an image are short-lived.
pub(crate) fn is_told(case: &Case<'_>, image: &str) -> bool {
    let lives = case.container_runs().get(image);
    lives.is_some_and(|lives| Short::of(case, image, lives).is_some())
}

/// Whether the short lives of one image are a loop, and not work that is done. One life in
/// five minutes is none.
pub(crate) fn is_loop<'a>(case: &Case<'_>, image: &'a str, lives: &'a [ContainerRun<'a>]) -> bool {
    let short = Short::of(case, image, lives);
    short.is_some_and(|short| short.has_many && short.is_loop(case))
}

impl<'a> Short<'a> {
    pub(crate) fn of(
        case: &Case<'_>,
        image: &'a str,
        lives: &'a [ContainerRun<'a>],
    ) -> Option<Self> {
        let limit = Duration::from_secs_f64(case.limit(&SHORT_SECONDS));
        let ended: Vec<&ContainerRun<'a>> =
            lives.iter().filter(|life| life.ended.is_some()).collect();
        let short: Vec<&'a ContainerRun<'a>> = lives
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
        let times: Vec<Moment> = lives.iter().map(ContainerRun::at).collect();
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
    pub(crate) fn is_loop(&self, case: &Case<'_>) -> bool {
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
}
