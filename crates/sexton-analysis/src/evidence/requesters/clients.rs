//! Programs that ask a daemon for something and wait for it. `docker run` is in the unit that
//! asks, began before the container did, and ends when it does, with its status;
//! `systemd-run` is at work while systemd makes the unit.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sexton_model::fact::exit::{CLIENT_ENDED, PROCESS_FAILED, ProcessExit};
use sexton_model::moment::Moment;
use sexton_model::record::Event;

use crate::case::Case;
use crate::evidence::container_runs::ContainerRun;
use crate::evidence::known;

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
    pub(super) fn of(case: &Case<'a>, lives: &[ContainerRun<'a>]) -> Self {
        let (failed, well) = (case.events(&PROCESS_FAILED), case.events(&CLIENT_ENDED));
        let has_well = well.clone().next().is_some();
        let mut runs: Vec<Run<'a>> = failed.chain(well).filter_map(run).collect();
        runs.sort_by_key(|run| run.to);
        let Some(seen) = span(&runs) else {
            return Self::default();
        };
        // Recordings of older versions tell only of clients that failed.
        let is_told = |life: &&ContainerRun<'a>| has_well || life.exit_code != Some(0);
        let mut found = Self::default();
        let mut lives_of: BTreeMap<&'a str, Vec<Option<(&'a str, &'a str)>>> = BTreeMap::new();
        let lives = lives.iter().filter(is_told);
        for life in lives.filter(|life| is_within(life, seen)) {
            let client = client_of(life, &runs);
            lives_of.entry(life.image).or_default().push(client);
            found.by_life.extend(client.map(|client| (life.id, client)));
        }
        let mut counts: BTreeMap<(&'a str, &'a str), usize> = BTreeMap::new();
        for client in found.by_life.values() {
            *counts.entry(*client).or_default() += 1;
        }
        let many = counts.into_iter().filter(|(_, n)| *n >= LEAST);
        let many: BTreeSet<_> = many.map(|(client, _)| client).collect();
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
        let mut times = times.to_vec();
        times.sort_unstable();
        let mut fitting = by_unit.into_iter().filter(|(_, runs)| {
            let spans = Spans::of(runs);
            let n_asked = times.iter().filter(|at| spans.cover(**at)).count();
            let asks = |run: &&&Run<'a>| {
                let first = times.partition_point(|at| *at < run.from);
                times.get(first).is_some_and(|at| *at <= run.to)
            };
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
        lives: &[&ContainerRun<'a>],
    ) -> Option<(&'a str, &'a str)> {
        let own = match lives {
            [life] => self.by_life.get(life.id),
            _ => None,
        };
        own.or_else(|| self.by_image.get(image?)).copied()
    }
}

fn run<'a>(event: Event<'a, ProcessExit>) -> Option<Run<'a>> {
    let says = event.says;
    let comm = says.comm.as_deref();
    let unit = says.unit.as_deref();
    Some(Run {
        unit: unit.filter(|unit| !known::is_between(unit))?,
        comm: comm.filter(|comm| known::is_client(comm))?,
        code: says.exit_code?.into(),
        from: Moment::from_ns(event.at.as_ns().saturating_sub(says.lifetime_ns?)),
        to: event.at,
    })
}

/// Spans of time that may overlap.
struct Spans {
    /// Where each begins, and the last end of it and all before, in the order of time.
    ends: Vec<(Moment, Moment)>,
}

impl Spans {
    fn of(runs: &[&Run<'_>]) -> Self {
        let mut ends: Vec<(Moment, Moment)> = runs.iter().map(|run| (run.from, run.to)).collect();
        ends.sort_unstable();
        let mut last = Moment::default();
        for (_, end) in &mut ends {
            last = last.max(*end);
            *end = last;
        }
        Self { ends }
    }

    /// Whether a moment lies in one of them.
    fn cover(&self, at: Moment) -> bool {
        let n = self.ends.partition_point(|(from, _)| *from <= at);
        n > 0 && self.ends[n - 1].1 >= at
    }
}

/// From when to when clients were seen: for lives outside nothing can be told.
fn span(runs: &[Run<'_>]) -> Option<(Moment, Moment)> {
    let from = runs.iter().map(|run| run.from).min()?;
    Some((from, runs.iter().map(|run| run.to).max()?))
}

fn is_within(life: &ContainerRun<'_>, (from, to): (Moment, Moment)) -> bool {
    let is_known = life.exit_code.is_some();
    let has_begun = life.started.is_some_and(|started| started >= from);
    is_known && has_begun && life.ended.is_some_and(|ended| ended <= to)
}

/// The client of one container; `None` when two units may have run it. The runs are sorted by
/// their ends.
fn client_of<'a>(life: &ContainerRun<'_>, runs: &[Run<'a>]) -> Option<(&'a str, &'a str)> {
    let (started, ended) = life.started.zip(life.ended)?;
    let first = runs.partition_point(|run| ended.since(run.to) > AHEAD);
    let near = runs[first..].iter();
    let near = near.take_while(|run| run.to.since(ended) <= AFTER);
    let is_it = |run: &&Run<'a>| Some(run.code) == life.exit_code && run.from <= started;
    let units: BTreeSet<_> = near.filter(is_it).map(|run| (run.unit, run.comm)).collect();
    units.first().filter(|_| units.len() == 1).copied()
}
