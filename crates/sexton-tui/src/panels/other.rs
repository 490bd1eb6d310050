//! What has no panel of its own: the values of each such fact, and events, the newest first.
//! A fact that is defined tomorrow is shown here by what its definition says.

use ratatui::text::{Line, Span};
use sexton_model::fact::show::{Series, Whose};
use sexton_model::fact::{Fact, FactKind};

use super::{Content, Room, faint, not_seen, strong};
use crate::figures;
use crate::history::{Told, Window};
use crate::names::{self, Shown};
use crate::view::View;
use crate::words::{self, clip, clock, fit, measured};

/// Columns of a label and of a value.
const LABEL: usize = 38;
const VALUE: usize = 12;

pub(super) fn content(view: &View, window: Window, room: Room) -> Content {
    let series = names::other_series();
    let values = series.filter_map(|(fact, series)| values(view, window, fact, series));
    let mut list: Vec<Line<'static>> = values.collect();
    let mut head = Vec::new();
    if !list.is_empty() {
        let worst = format!("worst of {}", words::stretch(view.length()));
        let legend = format!("{}{:>VALUE$}  {worst}", fit("", LABEL), "now");
        head.push(Line::from(Span::styled(legend, faint())));
    }
    let marks = view.history.marks(window);
    list.extend(marks.map(|told| mark(view, told, room)));
    if list.is_empty() {
        list.push(not_seen("anything else"));
    }
    Content {
        title: String::new(),
        head,
        list,
    }
}

fn values(
    view: &View,
    window: Window,
    fact: &'static Fact,
    series: &Series,
) -> Option<Line<'static>> {
    let known = view.history.series(Shown::Other(fact.name));
    let last = known.last(window)?;
    let label = Span::raw(fit(series.label, LABEL));
    if fact.kind == FactKind::Counter {
        let grown = measured(figures::grown(known, window), fact.measure);
        let grown = format!("{:>VALUE$}", format!("+{grown}"));
        let over = format!("  in {}", words::stretch(view.length()));
        let spans = vec![
            label,
            Span::styled(grown, strong()),
            Span::styled(over, faint()),
        ];
        return Some(Line::from(spans));
    }
    let now = match series.whose {
        Whose::Node => last.last,
        Whose::Any => last.worst,
    };
    let mut worst = known.worst(window).map_or_else(String::new, |cell| {
        format!("  {}", measured(cell.worst, fact.measure))
    });
    if let (Whose::Any, Some(cell)) = (series.whose, known.worst(window)) {
        worst.push_str(&format!(" on {}", cell.subject));
    }
    let now = format!("{:>VALUE$}", measured(now, fact.measure));
    let spans = vec![
        label,
        Span::styled(now, strong()),
        Span::styled(worst, faint()),
    ];
    Some(Line::from(spans))
}

fn mark(view: &View, told: &Told, room: Room) -> Line<'static> {
    let at = format!("{} ", clock(view, told.at));
    let text = match told.n {
        0 | 1 => told.text.clone(),
        n => format!("{n}× {}", told.text),
    };
    let text = clip(&text, room.columns.saturating_sub(at.len()));
    Line::from(vec![Span::styled(at, faint()), Span::raw(text)])
}
