//! What the censuses say of cgroups that are alike.

use sexton_model::fact::memcg as fact;
use sexton_model::moment::Moment;
use sexton_model::record::Record;
use sexton_model::subject::Subject;

use crate::births::pattern_of;
use crate::case::Case;
use crate::unit_name;

/// A file, or files alike, that pin dying ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pin<'a> {
    pub(crate) zombies: u64,
    pub(crate) kind: &'a str,
    pub(crate) path: &'a str,
}

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
    /// Pages by kind: file, shmem, anon, other. `None` where they were not seen.
    pub(crate) pages: Option<[u64; 4]>,
    pub(crate) without_pin: u64,
    pub(crate) oldest_seconds: Option<u64>,
    /// Seconds: the youngest, nine deciles, the oldest.
    pub(crate) ages: Vec<f64>,
    pub(crate) pins: Vec<Pin<'a>>,
    /// Dying ones at each census.
    pub(crate) points: Vec<(Moment, f64)>,
}

/// All of them, those with most dying first.
pub(crate) fn all<'a>(case: &Case<'a>) -> Vec<Origin<'a>> {
    let mut origins: Vec<Origin<'a>> = Vec::new();
    let last_census = case
        .samples(&fact::MEMCG_DYING, &Subject::node())
        .next_back();
    for (subject, records) in case.by_subject(&fact::MEMCG_ORIGIN) {
        let points: Vec<(Moment, f64)> = records
            .iter()
            .map(|record| (record.at, number(record, "dying").unwrap_or(0) as f64))
            .collect();
        let Some(last) = records.last() else { continue };
        let mut origin = origin(subject, last, points);
        // One that a later census does not tell of has drained, or is too few to be told.
        if let Some((at, _)) = last_census.filter(|(at, _)| *at > origin.at) {
            origin.points.push((at, 0.0));
            (origin.at, origin.dying, origin.leaked) = (at, 0, 0);
        }
        origins.push(origin);
    }
    origins.sort_by(|a, b| (b.dying, b.leaked, a.subject).cmp(&(a.dying, a.leaked, b.subject)));
    origins
}

fn origin<'a>(subject: &'a Subject, record: &'a Record, points: Vec<(Moment, f64)>) -> Origin<'a> {
    let count = |key| number(record, key).unwrap_or(0);
    let pages = ["file", "shmem", "anon", "other"].map(|key| number(record, key));
    let ages = record.detail("ages").unwrap_or_default();
    Origin {
        subject,
        at: record.at,
        pattern: pattern_of(record.detail("example").unwrap_or(&subject.name)),
        kind: record.detail("kind").unwrap_or_default(),
        unit: unit(record),
        image: record.detail("image"),
        live: count("live"),
        dying: count("dying"),
        leaked: count("leaked"),
        pages: pages[0].map(|_| pages.map(|n| n.unwrap_or(0))),
        without_pin: count("without_pin"),
        oldest_seconds: number(record, "oldest_seconds"),
        ages: ages.split(' ').filter_map(|age| age.parse().ok()).collect(),
        pins: ["pin_1", "pin_2", "pin_3"]
            .into_iter()
            .filter_map(|key| pin(record.detail(key)?))
            .collect(),
        points,
    }
}

/// The unit that the path tells; one of a user's own manager is told with it.
fn unit(record: &Record) -> Option<String> {
    let told = record.detail("unit")?;
    let by_path = record.detail("example").and_then(unit_name::of_path);
    by_path
        .filter(|unit| unit_name::own(unit) == told)
        .or_else(|| Some(told.to_owned()))
}

fn number(record: &Record, key: &str) -> Option<u64> {
    record.detail(key)?.parse().ok()
}

fn pin(text: &str) -> Option<Pin<'_>> {
    let mut words = text.splitn(3, ' ');
    Some(Pin {
        zombies: words.next()?.parse().ok()?,
        kind: words.next()?,
        path: words.next()?,
    })
}
