//! Programs that ask a daemon for something and wait for it. `docker run` is in the unit that
//! asks, began before the container did, and ends when it does, with its status;
//! `systemd-run` is at work while systemd makes the unit.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sexton_model::fact::exit::{CLIENT_ENDED, PROCESS_FAILED};
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

/// Of births so many must have come while a client of one unit was at work, and of its clients
/// so many must have seen one: whoever asks for something else all the time, such as a list
/// of containers, is at work at any birth.
const BIRTHS_SHARE: f64 = 0.8;
const RUNS_SHARE: f64 = 0.5;

/// Units whose clients ran containers.
#[derive(Debug, Default)]
pub(super) struct Clients<'a> {
    /// By the container's id, the unit and the client's name.
    by_life: BTreeMap<&'a str, (&'a str, &'a str)>,
    by_image: BTreeMap<&'a str, (&'a str, &'a str)>,
    runs: Vec<Run<'a>>,
}

/// A client from its start to its end.
#[derive(Debug)]
struct Run<'a> {
    unit: &'a str,
    comm: &'a str,
    code: i64,
    from: Moment,
    to: Moment,
}

impl<'a> Clients<'a> {
    pub(super) fn of(case: &Case<'a>, lives: &[Life<'a>]) -> Self {
        let (failed, well) = (case.of(&PROCESS_FAILED), case.of(&CLIENT_ENDED));
        let ended = failed.iter().chain(well);
        let runs: Vec<Run<'a>> = ended.filter_map(|record| run(record)).collect();
        let Some(seen) = span(&runs) else {
            return Self::default();
        };
        // Recordings of older versions tell only of clients that failed.
        let is_told = |life: &&Life<'a>| !well.is_empty() || life.exit_code != Some(0);
        let mut found = Self::default();
        let mut lives_of: BTreeMap<&'a str, Vec<Option<(&'a str, &'a str)>>> = BTreeMap::new();
        let lives = lives.iter().filter(is_told);
        for life in lives.filter(|life| is_within(life, seen)) {
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
        found.runs = runs;
        found
    }

    /// The one unit whose clients were at work at these moments, and little else; with the
    /// name of the client.
    pub(super) fn at_work(&self, times: &[Moment]) -> Option<(&'a str, &'a str)> {
        if times.len() < LEAST {
            return None;
        }
        let mut by_unit: BTreeMap<(&'a str, &'a str), Vec<&Run<'a>>> = BTreeMap::new();
        for run in &self.runs {
            by_unit.entry((run.unit, run.comm)).or_default().push(run);
        }
        let spans = |run: &Run<'_>, at: &Moment| run.from <= *at && *at <= run.to;
        let mut fitting = by_unit.into_iter().filter(|(_, runs)| {
            let is_asked = |at: &&Moment| runs.iter().any(|run| spans(run, at));
            let n_asked = times.iter().filter(is_asked).count();
            let asks = |run: &&&Run<'a>| times.iter().any(|at| spans(run, at));
            let n_asking = runs.iter().filter(asks).count();
            n_asked as f64 >= BIRTHS_SHARE * times.len() as f64
                && n_asking as f64 >= RUNS_SHARE * runs.len() as f64
        });
        match (fitting.next(), fitting.next()) {
            (Some((client, _)), None) => Some(client),
            _ => None,
        }
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
    let is_known = life.exit_code.is_some();
    let has_begun = life.started.is_some_and(|started| started >= from);
    is_known && has_begun && life.ended.is_some_and(|ended| ended <= to)
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
