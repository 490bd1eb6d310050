//! The kernel's share of each core, as a strip of the window, and the pressure on all.

use std::cmp::Ordering;
use std::time::Duration;

use ratatui::text::{Line, Span};
use sexton_model::moment::Moment;

use super::{Content, Room, faint, heat, not_seen, strong};
use crate::figures::{self, Core};
use crate::history::{Cell, Window};
use crate::names::Shown;
use crate::view::View;
use crate::words::{self, NOT_SEEN, block, clock, fit, percent};

/// What is older than this is not called "now".
const NOW: Duration = Duration::from_secs(5);

/// Columns of a line beside its strip: the name, the last and the worst value.
const BESIDE: usize = 8 + 5 + 6;

pub(super) fn content(view: &View, window: Window, room: Room) -> Content {
    let head = summary(view, window, room);
    let n_cells = room.columns.saturating_sub(BESIDE);
    let mut cores = figures::cores(&view.history, window, n_cells);
    let n = cores.len();
    let n_shown = room.lines.saturating_sub(head.len());
    let mut title = "system, irq and softirq".to_owned();
    if n > n_shown {
        // A stable sort: of equally bad ones the lower number comes first.
        cores.sort_by(|a, b| b.worst.partial_cmp(&a.worst).unwrap_or(Ordering::Equal));
        title = format!("{title}, worst {n_shown} of {n}");
    }
    let list = match n {
        0 => vec![not_seen("cores")],
        _ => cores.iter().map(line).collect(),
    };
    Content { title, head, list }
}

fn line(core: &Core) -> Line<'static> {
    let name = format!("cpu {}", core.number);
    let mut spans = vec![Span::raw(fit(&name, 8))];
    for cell in &core.cells {
        let style = cell.map_or_else(faint, heat);
        spans.push(Span::styled(block(*cell), style));
    }
    let value = |share: Option<f64>| share.map_or_else(|| "?".into(), percent);
    let now = format!("{:>5}", value(core.now));
    spans.push(Span::styled(now, core.now.map_or_else(faint, heat)));
    spans.push(Span::styled(format!("{:>6}", value(core.worst)), faint()));
    Line::from(spans)
}

fn summary(view: &View, window: Window, room: Room) -> Vec<Line<'static>> {
    let worst = view.history.series(Shown::WorstSystem);
    let label = |text: String| Span::styled(text, faint());
    let mut spans = vec![label("worst now ".into())];
    spans.push(share(worst.last(recent(window))));
    spans.push(label(format!("  of {} ", words::stretch(view.length()))));
    let of_window = worst.worst(window);
    spans.push(share(of_window));
    if let Some(cell) = of_window {
        spans.push(label(format!(" at {}", clock(view, cell.at))));
    }
    spans.push(label("  task waits ".into()));
    let wait = view.history.series(Shown::CoreWait).last(recent(window));
    spans.push(match wait {
        Some(cell) => Span::styled(words::time(cell.worst), strong()),
        None => label(NOT_SEEN.into()),
    });
    let mut line = Line::from(spans);
    let legend = format!("{:>5}{:>6}", "now", "worst");
    let blank = room.columns.checked_sub(line.width() + legend.len());
    if let Some(blank) = blank {
        line.push_span(label(format!("{}{legend}", " ".repeat(blank))));
    }
    vec![line, pressure(view, window)]
}

/// Part of the time in which tasks of the node waited (PSI): now, and at its worst.
fn pressure(view: &View, window: Window) -> Line<'static> {
    let resources = [
        ("cpu", Shown::PressureCpu),
        ("memory", Shown::PressureMemory),
        ("io", Shown::PressureIo),
    ];
    let label = |text: String| Span::styled(text, faint());
    let of = |shown| view.history.series(shown);
    let is_seen = |(_, shown): &(_, Shown)| of(*shown).last(window).is_some();
    if !resources.iter().any(is_seen) {
        return not_seen("pressure");
    }
    let value = |cell: Option<f64>| match cell {
        Some(share) => Span::styled(percent(share), heat(share)),
        None => label("?".into()),
    };
    let mut spans = vec![label("pressure now".into())];
    for (name, shown) in resources {
        let now = of(shown).last(recent(window));
        spans.push(label(format!(" {name} ")));
        spans.push(value(now.map(|cell| cell.last)));
    }
    spans.push(label(format!(
        "  worst of {}",
        words::stretch(view.length())
    )));
    for (name, shown) in resources {
        spans.push(label(format!(" {name} ")));
        spans.push(value(of(shown).worst(window).map(|cell| cell.worst)));
    }
    Line::from(spans)
}

fn share(cell: Option<&Cell>) -> Span<'static> {
    match cell {
        Some(cell) => {
            let text = format!("{} {}", cell.subject, percent(cell.worst));
            Span::styled(text, heat(cell.worst).patch(strong()))
        }
        None => Span::styled(NOT_SEEN, faint()),
    }
}

/// The part of a window that counts as now.
pub(super) fn recent(window: Window) -> Window {
    let ns = NOW.as_nanos() as u64;
    let from = Moment::from_ns(window.to.as_ns().saturating_sub(ns));
    Window { from, ..window }
}
