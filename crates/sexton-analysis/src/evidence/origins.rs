//! What the censuses say of cgroups that are alike.

use std::collections::HashSet;

use sexton_model::fact::memcg::{self as fact, MemcgOrigin, Pin};
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::creations::pattern_of;
use crate::words::unit_name;

/// How a census without names calls what was removed: by the directory it was in.
const GONE: &str = "/<gone>";

/// Cgroups that are alike, as the last census that names them saw them.
#[derive(Debug, Clone)]
pub(crate) struct Origin<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) at: Moment,
    /// The pattern that births of the same have.
    pub(crate) pattern: String,
    pub(crate) kind: &'a str,
    pub(crate) unit: Option<String>,
    pub(crate) image: Option<&'a str>,
    pub(crate) live: u64,
    pub(crate) dying: u64,
    pub(crate) leaked: u64,
    /// Live, empty and made within the last hour.
    pub(crate) young_empty: u64,
    /// Pages by kind: file, shmem, anon, other. `None` where they were not seen.
    pub(crate) pages: Option<[u64; 4]>,
    pub(crate) without_pin: u64,
    pub(crate) oldest_seconds: Option<u64>,
    /// Seconds: the youngest, nine deciles, the oldest.
    pub(crate) ages: &'a [u64],
    pub(crate) pins: &'a [Pin],
    /// Dying ones at each census.
    pub(crate) points: Vec<(Moment, f64)>,
}

impl<'a> Origin<'a> {
    /// The directory that they were in, where that is all that is known of them.
    pub(crate) fn parent(&self) -> Option<&'a str> {
        let parent = self.subject.name.strip_suffix(GONE)?;
        Some(if parent.is_empty() { "/" } else { parent })
    }

    /// What a finding about it touches: itself, its cgroups, its unit.
    pub(crate) fn touched(&self) -> Vec<Subject> {
        let cgroup = Subject::new(SubjectKind::Cgroup, self.pattern.as_str());
        let unit = self.unit.as_deref();
        let unit = unit.map(|unit| Subject::new(SubjectKind::Unit, unit));
        let both = [self.subject.clone(), cgroup];
        both.into_iter().chain(unit).collect()
    }
}

/// All of them, those with most dying first.
pub(crate) fn all<'a>(case: &Case<'a>) -> Vec<Origin<'a>> {
    let mut origins: Vec<Origin<'a>> = Vec::new();
    let counts: Vec<(Moment, f64)> = case.samples(&fact::MEMCG_DYING, &Subject::node()).collect();
    let told: HashSet<Moment> = case
        .events(&fact::MEMCG_ORIGIN)
        .map(|event| event.at)
        .collect();
    // Parents are looked for in some censuses only: the others count, and say nothing of them.
    let tells_parents = |(at, dying): &&(Moment, f64)| *dying == 0.0 || told.contains(at);
    let (last, last_of_parents) = (counts.last(), counts.iter().rfind(tells_parents));
    for events in case.events_by_subject(&fact::MEMCG_ORIGIN).into_values() {
        let points: Vec<(Moment, f64)> = events
            .iter()
            .map(|event| (event.at, event.says.dying.unwrap_or(0) as f64))
            .collect();
        let Some(newest) = events.last() else {
            continue;
        };
        let mut origin = origin(*newest, points);
        // One that a later census does not tell of has drained, or is too few to be told.
        let last_census = match origin.parent() {
            Some(_) => last_of_parents,
            None => last,
        };
        if let Some((at, _)) = last_census.filter(|(at, _)| *at > origin.at) {
            origin.points.push((*at, 0.0));
            (origin.at, origin.dying, origin.leaked) = (*at, 0, 0);
            origin.young_empty = 0;
        }
        origins.push(origin);
    }
    count_all_below_the_only_parent(&mut origins, &counts);
    origins.sort_by(|a, b| (b.dying, b.leaked, a.subject).cmp(&(a.dying, a.leaked, b.subject)));
    origins
}

/// Where all dying ones were in one directory, each count of the node is one of them.
fn count_all_below_the_only_parent(origins: &mut [Origin<'_>], counts: &[(Moment, f64)]) {
    let mut held = origins.iter_mut().filter(|origin| origin.dying > 0);
    let (Some(only), None) = (held.next(), held.next()) else {
        return;
    };
    if let (Some(_), Some((at, dying))) = (only.parent(), counts.last()) {
        only.points = counts.to_vec();
        (only.at, only.dying) = (*at, *dying as u64);
    }
}

fn origin<'a>(event: Event<'a, MemcgOrigin>, points: Vec<(Moment, f64)>) -> Origin<'a> {
    let says = event.says;
    let pages = [says.file, says.shmem, says.anon, says.other];
    Origin {
        subject: event.subject,
        at: event.at,
        pattern: pattern_of(says.example.as_deref().unwrap_or(&event.subject.name)),
        kind: says.kind.as_deref().unwrap_or_default(),
        unit: unit(says),
        image: says.image.as_deref(),
        live: says.live.unwrap_or(0),
        dying: says.dying.unwrap_or(0),
        leaked: says.leaked.unwrap_or(0),
        young_empty: says.young_empty.unwrap_or(0),
        pages: says.file.map(|_| pages.map(|n| n.unwrap_or(0))),
        without_pin: says.without_pin.unwrap_or(0),
        oldest_seconds: says.oldest_seconds,
        ages: &says.ages,
        pins: &says.pins,
        points,
    }
}

/// The unit that the path shows; one of a user's own manager is named with it.
fn unit(says: &MemcgOrigin) -> Option<String> {
    let told = says.unit.as_ref()?;
    let by_path = says.example.as_deref().and_then(unit_name::of_path);
    by_path
        .filter(|unit| unit_name::own(unit) == told)
        .or_else(|| Some(told.clone()))
}
