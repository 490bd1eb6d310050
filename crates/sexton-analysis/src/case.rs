//! What rules see: records by fact, in an order that does not depend on how they came.

mod work;

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::time::Duration;

use sexton_model::fact::sexton::{SEXTON_POLL_NS, SEXTON_SENSORS};
use sexton_model::fact::{EventFact, Fact};
use sexton_model::gap::Gap;
use sexton_model::moment::Moment;
use sexton_model::payload::Payload;
use sexton_model::record::{Body, Event, Record};
use sexton_model::subject::Subject;
use sexton_model::timeline::Timeline;

use crate::evidence::container_runs::{self, ByImage};
use crate::evidence::creations::Creations;
use crate::evidence::nameless::Nameless;
use crate::evidence::nic_troubles::{self, Troubles};
use crate::evidence::origins::{self, Origin};
use crate::evidence::own_work::OwnWork;
use crate::evidence::readers::{self, Sighting};
use crate::evidence::requesters::{Requested, Requesters};
use crate::policy::Policy;
use crate::rule::{MOMENT, Threshold};
use work::Work;

/// The sensors of every sexton that did not say which it had.
const FIRST_SENSORS: [&str; 14] = [
    "cgroups",
    "containers",
    "cores",
    "exits",
    "host",
    "klog",
    "memcg",
    "napi",
    "nics",
    "pressure",
    "runq",
    "stacks",
    "unit_files",
    "units",
];

/// The records of a node, laid out for judging.
#[derive(Debug)]
pub struct Case<'a> {
    by_fact: HashMap<&'static str, Vec<&'a Record>>,
    gaps: Vec<(Moment, &'a Subject, &'a Gap)>,
    work: Work<'a>,
    window: Option<RangeInclusive<Moment>>,
    policy: &'a Policy,
    views: Views<'a>,
}

/// What several rules and links look at: worked out when it is first asked for, and once.
#[derive(Debug, Default)]
struct Views<'a> {
    origins: OnceCell<Vec<Origin<'a>>>,
    creations: OnceCell<Creations<'a>>,
    container_runs: OnceCell<ByImage<'a>>,
    requesters: OnceCell<Requesters<'a>>,
    requested: OnceCell<Vec<Requested<'a>>>,
    nic_troubles: OnceCell<Troubles<'a>>,
    sightings: OnceCell<Vec<Sighting>>,
    nameless: OnceCell<Option<Nameless<'a>>>,
    own_work: OnceCell<OwnWork<'a>>,
}

impl<'a> Case<'a> {
    /// What censuses say of cgroups that are alike.
    pub(crate) fn origins(&self) -> &[Origin<'a>] {
        self.views.origins.get_or_init(|| origins::all(self))
    }

    /// Cgroups that were created.
    pub(crate) fn creations(&self) -> &Creations<'a> {
        self.views.creations.get_or_init(|| Creations::of(self))
    }

    /// Runs of containers, by image.
    pub(crate) fn container_runs(&self) -> &ByImage<'a> {
        let runs = &self.views.container_runs;
        runs.get_or_init(|| container_runs::by_image(self))
    }

    /// Who may be behind cgroups and containers.
    pub(crate) fn requesters(&self) -> &Requesters<'a> {
        self.views.requesters.get_or_init(|| Requesters::new(self))
    }

    /// The cgroups that were created, by who is behind them.
    pub(crate) fn requested(&self) -> &[Requested<'a>] {
        let requested = &self.views.requested;
        requested.get_or_init(|| self.requesters().of_creations(self.creations()))
    }

    /// What went wrong with network devices.
    pub(crate) fn nic_troubles(&self) -> &Troubles<'a> {
        let troubles = &self.views.nic_troubles;
        troubles.get_or_init(|| nic_troubles::troubles(self))
    }

    /// Every time that a process was seen having the kernel work on memory cgroups.
    pub(crate) fn sightings(&self) -> &[Sighting] {
        self.views
            .sightings
            .get_or_init(|| readers::sightings(self))
    }

    /// The dying cgroups, where they could be counted and not named.
    pub(crate) fn nameless(&self) -> Option<&Nameless<'a>> {
        let nameless = self.views.nameless.get_or_init(|| Nameless::of(self));
        nameless.as_ref()
    }

    /// What the recording sexton did itself.
    pub(crate) fn own_work(&self) -> &OwnWork<'a> {
        self.views.own_work.get_or_init(|| OwnWork::new(self))
    }

    /// Lays out a recording.
    pub fn new(timeline: &'a dyn Timeline, policy: &'a Policy) -> Self {
        let mut by_fact: HashMap<&'static str, Vec<&'a Record>> = HashMap::new();
        for record in timeline.all() {
            if let Some(fact) = record.fact() {
                by_fact.entry(fact.name).or_default().push(record);
            }
        }
        for records in by_fact.values_mut() {
            records.sort_by(|a, b| order(a, b));
        }
        let mut gaps: Vec<_> = timeline.gaps().collect();
        gaps.sort_by(|a, b| (a.0, a.1, &a.2.text).cmp(&(b.0, b.1, &b.2.text)));
        Self {
            by_fact,
            gaps,
            work: Work::of(timeline.all()),
            window: timeline.watched(),
            policy,
            views: Views::default(),
        }
    }

    /// The time of the watch. Records of what happened before it (the kernel's log, times
    /// of units) are older.
    pub fn window(&self) -> Option<RangeInclusive<Moment>> {
        self.window.clone()
    }

    /// The last moment of the window: what rules call now.
    pub fn now(&self) -> Moment {
        self.window
            .as_ref()
            .map_or(Moment::default(), |window| *window.end())
    }

    /// The records of a fact, in the order of time.
    pub fn of(&self, fact: &'static Fact) -> &[&'a Record] {
        self.by_fact.get(fact.name).map_or(&[], Vec::as_slice)
    }

    /// The events of a fact, in the order of time.
    pub fn events<T: Payload>(
        &self,
        fact: &'static EventFact<T>,
    ) -> impl DoubleEndedIterator<Item = Event<'a, T>> + Clone + use<'_, 'a, T> {
        let records = self.of(fact).iter();
        records.filter_map(move |record| Event::of(record, fact))
    }

    /// The events of a fact by what they are about, each in the order of time.
    pub fn events_by_subject<T: Payload>(
        &self,
        fact: &'static EventFact<T>,
    ) -> BTreeMap<&'a Subject, Vec<Event<'a, T>>> {
        let mut sorted: BTreeMap<&'a Subject, Vec<Event<'a, T>>> = BTreeMap::new();
        for event in self.events(fact) {
            sorted.entry(event.subject).or_default().push(event);
        }
        sorted
    }

    /// The records of a fact by what they are about, each in the order of time.
    pub fn by_subject(&self, fact: &'static Fact) -> BTreeMap<&'a Subject, Vec<&'a Record>> {
        let mut sorted: BTreeMap<&'a Subject, Vec<&'a Record>> = BTreeMap::new();
        for record in self.of(fact) {
            sorted.entry(&record.subject).or_default().push(record);
        }
        sorted
    }

    /// The samples of a fact about one thing, in the order of time.
    pub fn samples<'b>(
        &'b self,
        fact: &'static Fact,
        subject: &'b Subject,
    ) -> impl DoubleEndedIterator<Item = (Moment, f64)> + 'b {
        self.of(fact)
            .iter()
            .filter(move |record| record.subject == *subject)
            .filter_map(|record| Some((record.at, record.value()?)))
    }

    /// The last value of a fact about one thing.
    pub fn latest(&self, fact: &'static Fact, subject: &Subject) -> Option<f64> {
        self.samples(fact, subject)
            .next_back()
            .map(|(_, value)| value)
    }

    /// What could not be seen, in the order of time.
    pub fn gaps(&self) -> &[(Moment, &'a Subject, &'a Gap)] {
        &self.gaps
    }

    /// Whether a sensor was at work at all. One that saw nothing happen was; one that could only
    /// say why it cannot see was not.
    pub fn heard(&self, sensor: &str) -> bool {
        self.work.has_answered(sensor, &self.gaps)
    }

    /// How long the watch was.
    pub fn length(&self) -> Duration {
        let window = self.window.as_ref();
        window.map_or(Duration::ZERO, |window| window.end().since(*window.start()))
    }

    /// How long what a rule looks for must last. Of a watch that is hardly longer than that, the
    /// first and the last look miss a moment.
    pub fn lasting(&self, least: &'static Threshold) -> Duration {
        let limit = Duration::from_secs_f64(self.limit(least));
        let seen = self.length().saturating_sub(MOMENT);
        match self.length() + MOMENT < limit {
            // Too short to tell at all.
            true => limit,
            false => limit.min(seen),
        }
    }

    /// For how long of the watch a sensor was at work.
    pub fn watched(&self, sensor: &str) -> Duration {
        let Some((first, last)) = self.work.span(sensor) else {
            return Duration::ZERO;
        };
        let began = self.window.as_ref().map_or(first, |window| *window.start());
        let ended = match self.went_silent(sensor) {
            Some(_) => last,
            None => self.now(),
        };
        ended.since(began.max(first))
    }

    /// Why a sensor that was at work fell silent, or sees nothing any more.
    pub fn went_silent(&self, sensor: &str) -> Option<&'a Gap> {
        self.work.went_silent(sensor, &self.gaps, self.now())
    }

    /// Whether the sexton that recorded had such a sensor. One that is older than the sensor
    /// could not look; one that had it and was not heard failed to, or was told not to.
    pub fn had(&self, sensor: &str) -> bool {
        let listed = self.events(&SEXTON_SENSORS).next_back();
        let is_listed = match listed {
            Some(event) => event.says.sensors.iter().any(|known| known == sensor),
            None => FIRST_SENSORS.contains(&sensor),
        };
        let has_gap = || self.gaps.iter().any(|(_, _, gap)| gap.sensor == sensor);
        is_listed || self.heard(sensor) || has_gap()
    }

    /// When a sensor was last asked: what happened afterwards it had no chance to tell.
    pub fn last_heard(&self, sensor: &str) -> Moment {
        let polls = self.of(&SEXTON_POLL_NS).iter();
        let own = polls.filter(|record| *record.subject.name == *sensor);
        own.map(|record| record.at).max().unwrap_or(self.now())
    }

    /// Why a sensor was not at work: its own words, or that it was not asked.
    pub fn why_silent(&self, sensor: &str) -> String {
        let said = self.gaps.iter().find(|(_, _, gap)| gap.sensor == sensor);
        match said {
            Some((_, _, gap)) => gap.text.clone(),
            None if !self.had(sensor) => {
                format!("the sexton that recorded this had no sensor {sensor}")
            }
            None => format!("the sensor {sensor} was not recorded"),
        }
    }

    /// The value of a threshold on this node.
    pub fn limit(&self, threshold: &'static Threshold) -> f64 {
        self.policy.limit(threshold)
    }
}

/// Total, so that no record's place depends on the order they came in.
fn order(a: &Record, b: &Record) -> std::cmp::Ordering {
    (a.at, &a.subject, &a.sensor)
        .cmp(&(b.at, &b.subject, &b.sensor))
        .then_with(|| match (&a.body, &b.body) {
            (Body::Sample { value: a, .. }, Body::Sample { value: b, .. }) => a.total_cmp(b),
            (Body::Event { payload: a, .. }, Body::Event { payload: b, .. }) => {
                a.fields().cmp(&b.fields())
            }
            // One fact is either measured or happens; both cannot meet here.
            _ => std::cmp::Ordering::Equal,
        })
}
