//! The panels: each turns figures of the window into lines.

mod cores;
mod dying;
mod gaps;
mod kernel;
mod network;
mod other;
mod units;
mod workloads;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::history::Window;
use crate::view::View;
use crate::words::{self, NOT_SEEN};

/// Lines of a list that are made at most; nobody scrolls further.
const MOST_LINES: usize = 1000;

/// A part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panel {
    /// The kernel's share of each core.
    Cores,
    /// Dying memory cgroups: how many, how fast, whose.
    Dying,
    /// Waits of network polling.
    Network,
    /// Units that start, fail, or make cgroups.
    Units,
    /// The kernel log and links of network devices.
    Kernel,
    /// Containers that come and go, and processes that end badly.
    Workloads,
    /// All that no other panel shows.
    Other,
    /// What cannot be seen.
    Gaps,
}

/// All panels, in the order of the tab key.
const PANELS: [Panel; 8] = [
    Panel::Cores,
    Panel::Dying,
    Panel::Network,
    Panel::Units,
    Panel::Kernel,
    Panel::Workloads,
    Panel::Other,
    Panel::Gaps,
];

/// What a panel says.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Beside its name.
    pub(crate) title: String,
    /// Stays in place.
    pub(crate) head: Vec<Line<'static>>,
    /// Can be scrolled.
    pub(crate) list: Vec<Line<'static>>,
}

/// The room a panel has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) columns: usize,
    pub(crate) lines: usize,
    /// Whether the panel has the screen for itself.
    pub(crate) is_alone: bool,
}

impl Panel {
    /// Its name on the screen.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cores => "cores",
            Self::Dying => "memory cgroups",
            Self::Network => "network polling",
            Self::Units => "units",
            Self::Kernel => "kernel and links",
            Self::Workloads => "workloads",
            Self::Other => "other",
            Self::Gaps => "gaps",
        }
    }

    /// What it says of the window in this room.
    pub(crate) fn content(self, view: &View, window: Window, room: Room) -> Content {
        let mut content = match self {
            Self::Cores => cores::content(view, window, room),
            Self::Dying => dying::content(view, window, room),
            Self::Network => network::content(view, window, room),
            Self::Units => units::content(view, window, room),
            Self::Kernel => kernel::content(view, window, room),
            Self::Workloads => workloads::content(view, window, room),
            Self::Other => other::content(view, window, room),
            Self::Gaps => gaps::content(view, window, room),
        };
        content.list.truncate(MOST_LINES);
        content
    }

    /// The lines that can be scrolled, in an ordinary room.
    pub(crate) fn n_lines(self, view: &View) -> usize {
        let room = Room {
            columns: 80,
            lines: 24,
            is_alone: view.is_zoomed,
        };
        view.window()
            .map_or(0, |window| self.content(view, window, room).list.len())
    }

    /// The next one; after the last comes the first.
    pub(crate) fn next(self) -> Self {
        self.further(1)
    }

    /// The one before.
    pub(crate) fn previous(self) -> Self {
        self.further(PANELS.len() - 1)
    }

    fn further(self, n: usize) -> Self {
        let place = PANELS.iter().position(|panel| *panel == self).unwrap_or(0);
        PANELS[(place + n) % PANELS.len()]
    }
}

/// For what is less than the rest: labels, times, what was not seen.
fn faint() -> Style {
    Style::new().fg(Color::DarkGray)
}

/// For what must be read first.
fn strong() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// The color of a share. It only helps the eye; rules judge.
fn heat(share: f64) -> Style {
    let color = match share {
        _ if share >= 0.9 => Color::Red,
        _ if share >= 0.6 => Color::Yellow,
        _ => Color::Green,
    };
    Style::new().fg(color)
}

/// The line that says nothing is known of something.
fn not_seen(what: &str) -> Line<'static> {
    Line::from(Span::styled(format!("{what}: {NOT_SEEN}"), faint()))
}

/// `none in 5m`.
fn none(view: &View, what: &str) -> Line<'static> {
    let length = words::stretch(view.length());
    Line::from(Span::styled(format!("{what}: none in {length}"), faint()))
}
