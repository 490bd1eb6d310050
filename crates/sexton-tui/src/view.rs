//! The state of the view: what has been seen, and which part of it is looked at.

use std::time::Duration;

use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record};
use sexton_model::timeline::Timeline;

use crate::history::{History, Window};
use crate::keys::Action;
use crate::names;
use crate::panels::Panel;

/// How much of a live node is kept to step back through.
const KEPT: Duration = Duration::from_secs(30 * 60);

/// The lengths that a window may have, in seconds.
const LENGTHS: [u64; 9] = [30, 60, 120, 300, 600, 1800, 3600, 10_800, 43_200];

/// The place in `LENGTHS` of five minutes.
const AT_FIRST: usize = 3;

/// A step through time is this part of the window.
const STEPS: u32 = 10;

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Draw it again.
    Stay,
    /// The user has seen enough.
    Quit,
}

/// What is shown: built from records, changed by actions, drawn by [`crate::render`].
#[derive(Debug)]
pub struct View {
    pub(crate) history: History,
    pub(crate) is_live: bool,
    pub(crate) focus: Panel,
    pub(crate) is_zoomed: bool,
    pub(crate) helps: bool,
    pub(crate) scroll: usize,
    /// From the first record to the last, or to now.
    span: Option<Window>,
    /// Where we look; `None` follows the newest.
    cursor: Option<Moment>,
    length: usize,
}

impl View {
    /// Of a live node, of which nothing has been seen yet.
    pub fn live() -> Self {
        Self {
            history: History::default(),
            is_live: true,
            focus: Panel::Cores,
            is_zoomed: false,
            helps: false,
            scroll: 0,
            span: None,
            cursor: None,
            length: AT_FIRST,
        }
    }

    /// Of a recording, at its end.
    pub fn of_records(records: &[Record]) -> Self {
        let mut view = Self {
            is_live: false,
            ..Self::live()
        };
        view.take(records);
        view
    }

    /// Of a recording, at its end. Only what is shown is read from it.
    pub fn of_timeline(timeline: &dyn Timeline) -> Self {
        let facts = names::all().flat_map(|fact| timeline.of(fact));
        let mut records: Vec<Record> = facts.cloned().collect();
        records.extend(timeline.gaps().map(|(at, subject, gap)| Record {
            at,
            sensor: gap.sensor.clone(),
            subject: subject.clone(),
            body: Body::Gap(Box::new(gap.clone())),
        }));
        records.sort_by_key(|record| record.at);
        let mut view = Self::of_records(&records);
        if let Some(span) = timeline.span() {
            view.span = Some(Window {
                from: *span.start(),
                to: *span.end(),
            });
        }
        view
    }

    /// Takes in what was seen. Of a live node what is too old is let go.
    pub fn take(&mut self, records: &[Record]) {
        for record in records {
            self.history.take(record);
            self.stretch(record.at);
        }
        self.let_go();
    }

    /// Moves a live view to now, whether or not anything was seen.
    pub fn advance(&mut self, now: Moment) {
        if self.is_live {
            self.stretch(now);
            self.let_go();
        }
    }

    /// Does what a key asked for.
    pub fn act(&mut self, action: Action) -> Flow {
        match action {
            Action::Quit => return Flow::Quit,
            Action::Help => self.helps = !self.helps,
            Action::Leave if self.helps => self.helps = false,
            Action::Leave => self.is_zoomed = false,
            Action::Pause if self.is_live => {
                self.cursor = match self.cursor {
                    None => self.span.map(|span| span.to),
                    Some(_) => None,
                }
            }
            Action::Pause => {}
            Action::Back => self.step(false),
            Action::On => self.step(true),
            Action::First => {
                self.cursor = self.span.map(|span| span.from);
                self.step(true);
            }
            Action::Last => self.cursor = None,
            Action::Longer => self.length = (self.length + 1).min(self.longest()),
            Action::Shorter => self.length = self.length.saturating_sub(1),
            Action::Next => self.turn_to(self.focus.next()),
            Action::Previous => self.turn_to(self.focus.previous()),
            Action::Zoom => self.is_zoomed = !self.is_zoomed,
            Action::Down => self.scroll = (self.scroll + 1).min(self.focus.n_lines(self)),
            Action::Up => self.scroll = self.scroll.saturating_sub(1),
        }
        Flow::Stay
    }

    /// The part of time that is looked at; `None` before anything was seen.
    pub(crate) fn window(&self) -> Option<Window> {
        let span = self.span?;
        let to = self.cursor.unwrap_or(span.to).clamp(span.from, span.to);
        Some(Window {
            from: before(to, self.length()),
            to,
        })
    }

    /// All of time that can be looked at.
    pub(crate) fn span(&self) -> Option<Window> {
        self.span
    }

    /// How long the window is.
    pub(crate) fn length(&self) -> Duration {
        Duration::from_secs(LENGTHS[self.length])
    }

    /// Whether the newest is shown as it comes.
    pub(crate) fn is_following(&self) -> bool {
        self.cursor.is_none()
    }

    fn turn_to(&mut self, panel: Panel) {
        self.focus = panel;
        self.scroll = 0;
    }

    /// A live node has no more than is kept.
    fn longest(&self) -> usize {
        let fits = |seconds: &u64| !self.is_live || *seconds <= KEPT.as_secs();
        LENGTHS.iter().rposition(fits).unwrap_or(0)
    }

    fn step(&mut self, on: bool) {
        let Some(span) = self.span else { return };
        let step = self.length() / STEPS;
        let here = self.cursor.unwrap_or(span.to);
        let there = if on {
            here.after(step)
        } else {
            before(here, step)
        };
        self.cursor = Some(there.clamp(span.from, span.to));
    }

    fn stretch(&mut self, at: Moment) {
        let span = self.span.get_or_insert(Window { from: at, to: at });
        span.from = span.from.min(at);
        span.to = span.to.max(at);
    }

    fn let_go(&mut self) {
        let Some(span) = self.span.as_mut().filter(|_| self.is_live) else {
            return;
        };
        span.from = span.from.max(before(span.to, KEPT));
        self.history.forget(span.from);
    }
}

/// So much earlier; never before the boot.
fn before(at: Moment, time: Duration) -> Moment {
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Moment::from_ns(at.as_ns().saturating_sub(ns))
}
