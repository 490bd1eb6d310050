//! Units that start, fail, or make cgroups, the busiest first.

use ratatui::text::{Line, Span};
use sexton_report::text;

use super::{Content, Room, faint, none, not_seen, strong};
use crate::figures::{self, Unit};
use crate::history::Window;
use crate::names;
use crate::view::View;
use crate::words::fit;

/// Columns of the three counts.
const COUNTS: [usize; 3] = [7, 6, 8];

pub(super) fn content(view: &View, window: Window, room: Room) -> Content {
    let units = figures::units(&view.history, window);
    if units.is_empty() {
        let list = match view.history.heard(names::UNITS, window) {
            true => vec![none(view, "starts and failures")],
            false => vec![not_seen("units")],
        };
        return Content {
            list,
            ..Content::default()
        };
    }
    let columns = room.columns.saturating_sub(COUNTS.iter().sum());
    let [starts, fails, cgroups] = COUNTS;
    let blank = fit("", columns);
    let legend = format!(
        "{blank}{:>starts$}{:>fails$}{:>cgroups$}",
        "starts", "fails", "cgroups"
    );
    // Births of cgroups are told even where units are not: say so, lest the rest be
    // read as zero.
    let sees_units = view.history.heard(names::UNITS, window);
    let sees_births = view.history.heard(names::CGROUPS, window);
    let line = |unit: &Unit| {
        Line::from(vec![
            Span::raw(fit(&unit.name, columns)),
            number(unit.n_starts, sees_units, starts),
            number(unit.n_failures, sees_units, fails),
            number(unit.n_births, sees_births, cgroups),
        ])
    };
    Content {
        title: String::new(),
        head: vec![Line::from(Span::styled(legend, faint()))],
        list: units.iter().map(line).collect(),
    }
}

fn number(n: u64, is_seen: bool, columns: usize) -> Span<'static> {
    let (text, style) = match (n, is_seen) {
        (0, false) => ("?".into(), faint()),
        (0, true) => ("0".into(), faint()),
        _ => (text::number(n), strong()),
    };
    Span::styled(format!("{text:>columns$}"), style)
}
