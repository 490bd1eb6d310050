//! One manager that is watched. A thread of its own talks to it; a poll takes what it has said.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sexton_host::clock;
use sexton_model::fact::unit as fact;
use sexton_model::gap::{Gap, Why};
use sexton_model::record::Sink;
use sexton_model::subject::Subject;
use sexton_systemd::bus::{BusError, Manager};

use super::ledger::{Ledger, Note};
use super::teller::{News, Teller};
use super::watch::Watch;
use super::{NAME, gap_of};

/// After a failure we wait so long, and twice as long after each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The way to one manager.
#[derive(Debug)]
pub(super) struct Line {
    news: Receiver<News>,
    teller: Arc<Teller>,
    thread: JoinHandle<()>,
}

impl Line {
    pub(super) fn watch(manager: Manager) -> Self {
        let (teller, news) = Teller::new();
        let teller = Arc::new(teller);
        let own = Arc::clone(&teller);
        let thread = thread::spawn(move || talk(&manager, &own));
        Self {
            news,
            teller,
            thread,
        }
    }

    /// Whether the manager is gone.
    pub(super) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Units that there are, and those that have failed, if that is known now.
    pub(super) fn counts(&self) -> Option<(u64, u64)> {
        self.teller.last_counts()
    }

    /// Passes on what was said since the last time.
    pub(super) fn pass_on(&self, sensor: &Subject, out: &mut Sink) {
        let mut starts: BTreeMap<Subject, u64> = BTreeMap::new();
        let mut restarts: BTreeMap<Subject, u64> = BTreeMap::new();
        for news in self.news.try_iter() {
            match news {
                News::Gap(gap) => out.gap(sensor, gap),
                News::Note(Note::Starts { unit, n }) => *starts.entry(unit).or_default() += n,
                News::Note(Note::Restarts { unit, n }) => {
                    restarts.insert(unit, n);
                }
                News::Note(Note::Event {
                    at_monotonic_ns,
                    unit,
                    what,
                }) => {
                    let at = at_monotonic_ns.map_or_else(clock::now, clock::of_monotonic);
                    what.tell(at, &unit, out);
                }
            }
        }
        for (unit, n) in starts {
            out.sample(&unit, &fact::UNIT_STARTS, n as f64);
        }
        for (unit, n) in restarts {
            out.sample(&unit, &fact::UNIT_RESTARTS, n as f64);
        }
        let lost = self.teller.take_lost();
        if lost > 0 {
            let text = "changes of units came faster than they were polled";
            out.gap(sensor, Gap::new(NAME, Why::Lost(lost), text));
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // Not waited for: it is gone within the deadline of its last question.
        self.teller.end();
    }
}

/// Talks to a manager, again and again, until the line is dropped or the manager is gone.
fn talk(manager: &Manager, teller: &Teller) {
    let mut ledger = Ledger::new(clock::monotonic_ns(), manager.user());
    let mut wait = FIRST_WAIT;
    while !teller.is_over() {
        let began = Instant::now();
        let (session, errors) = manager.connect();
        if session.is_none() && errors.iter().all(|error| manager.has_ended(error)) {
            return;
        }
        for error in &errors {
            // A bus that is not there is no loss while systemd itself answers.
            let is_absent = matches!(error, BusError::Connect { .. }) && session.is_some();
            if !is_absent {
                teller.gap(gap_of(error));
            }
        }
        if let Some(session) = session {
            let done = Watch::begin(session, &mut ledger, teller).and_then(|mut it| it.work());
            match done {
                Err(error) if !manager.has_ended(&error) => teller.gap(gap_of(&error)),
                _ => {}
            }
        }
        teller.blind();
        if began.elapsed() > LONGEST_WAIT {
            wait = FIRST_WAIT;
        }
        teller.sleep(wait);
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}
