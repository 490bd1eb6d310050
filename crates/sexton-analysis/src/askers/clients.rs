//! Programs that ask a daemon for a container and wait for it, such as `docker run`: they
//! are in the unit that asks, began before the container did, and end when it does, with
//! its status. Only those of containers that fail are told of, which is what loops are of.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sexton_model::fact::exit::PROCESS_FAILED;
use sexton_model::moment::Moment;
use sexton_model::record::Record;

use crate::case::Case;
use crate::known;
use crate::lives::Life;

/// A client ends so shortly after its container; the engine tells of ends by its own clock,
/// which may be a little ahead.
const AFTER: Duration = Duration::from_secs(3);
const AHEAD: Duration = Duration::from_millis(500);

/// Fewer lives than this may be a coincidence.
const LEAST: usize = 3;

/// Of the lives of an image so many must have had a client of one unit, and none of another.
/// Not all: ends that come in bursts are counted and not told.
const SHARE: f64 = 0.5;

/// Units whose clients ran containers.
#[derive(Debug, Default)]
pub(super) struct Clients<'a> {
    /// By the container's id, the unit and the client's name.
    by_life: BTreeMap<&'a str, (&'a str, &'a str)>,
    by_image: BTreeMap<&'a str, (&'a str, &'a str)>,
}

/// A client from its start to its end.
struct Run<'a> {
    unit: &'a str,
    comm: &'a str,
    code: i64,
    from: Moment,
    to: Moment,
}

impl<'a> Clients<'a> {
    pub(super) fn of(case: &Case<'a>, lives: &[Life<'a>]) -> Self {
        let runs: Vec<Run<'a>> = case
            .of(&PROCESS_FAILED)
            .iter()
            .filter_map(|r| run(r))
            .collect();
        let Some(seen) = span(&runs) else {
            return Self::default();
        };
        let mut found = Self::default();
        let mut lives_of: BTreeMap<&'a str, Vec<Option<(&'a str, &'a str)>>> = BTreeMap::new();
        for life in lives.iter().filter(|life| is_within(life, seen)) {
            let client = client_of(life, &runs);
            lives_of.entry(life.image).or_default().push(client);
            found.by_life.extend(client.map(|client| (life.id, client)));
        }
        let n_of =
            |client: &(&str, &str)| found.by_life.values().filter(|own| *own == client).count();
        let many: BTreeSet<_> = found
            .by_life
            .values()
            .filter(|own| n_of(own) >= LEAST)
            .copied()
            .collect();
        found.by_life.retain(|_, client| many.contains(client));
        for (image, clients) in lives_of {
            let units: BTreeSet<_> = clients.iter().flatten().collect();
            let n_told = clients.iter().flatten().count();
            let is_most = n_told as f64 >= SHARE * clients.len() as f64;
            let only = units.first().filter(|_| units.len() == 1 && is_most);
            let known = only.filter(|client| many.contains(**client));
            found.by_image.extend(known.map(|client| (image, **client)));
        }
        found
    }

    /// The unit whose client ran these containers of an image, and the name of the client.
    pub(super) fn behind(
        &self,
        image: Option<&str>,
        lives: &[&Life<'a>],
    ) -> Option<(&'a str, &'a str)> {
        let own = match lives {
            [life] => self.by_life.get(life.id),
            _ => None,
        };
        own.or_else(|| self.by_image.get(image?)).copied()
    }
}

fn run<'a>(record: &'a Record) -> Option<Run<'a>> {
    let comm = record
        .detail("comm")
        .filter(|comm| known::is_client(comm))?;
    let unit = record
        .detail("unit")
        .filter(|unit| !known::is_between(unit))?;
    let lifetime_ns: u64 = record.detail("lifetime_ns")?.parse().ok()?;
    Some(Run {
        unit,
        comm,
        code: record.detail("exit_code")?.parse().ok()?,
        from: Moment::from_ns(record.at.as_ns().saturating_sub(lifetime_ns)),
        to: record.at,
    })
}

/// From when to when clients were seen: for lives outside nothing can be told.
fn span(runs: &[Run<'_>]) -> Option<(Moment, Moment)> {
    let from = runs.iter().map(|run| run.from).min()?;
    Some((from, runs.iter().map(|run| run.to).max()?))
}

fn is_within(life: &Life<'_>, (from, to): (Moment, Moment)) -> bool {
    let is_failed = life.exit_code.is_some_and(|code| code != 0);
    let has_begun = life.started.is_some_and(|started| started >= from);
    is_failed && has_begun && life.ended.is_some_and(|ended| ended <= to)
}

/// The client of one container; `None` when two units may have run it.
fn client_of<'a>(life: &Life<'_>, runs: &[Run<'a>]) -> Option<(&'a str, &'a str)> {
    let (started, ended) = life.started.zip(life.ended)?;
    let is_it = |run: &&Run<'a>| {
        Some(run.code) == life.exit_code
            && run.from <= started
            && ended.since(run.to) <= AHEAD
            && run.to.since(ended) <= AFTER
    };
    let units: BTreeSet<_> = runs
        .iter()
        .filter(is_it)
        .map(|run| (run.unit, run.comm))
        .collect();
    units.first().filter(|_| units.len() == 1).copied()
}
