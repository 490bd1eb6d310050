//! Memory cgroups: dying ones, how fast they pile up, births, and whose they are.

use ratatui::text::{Line, Span};
use sexton_model::moment::Moment;
use sexton_report::text;

use super::{Content, Room, faint, none, not_seen, strong};
use crate::figures;
use crate::history::Window;
use crate::names::{self, Shown};
use crate::view::View;
use crate::words::{self, clip, count, stretch};

pub(super) fn content(view: &View, window: Window, room: Room) -> Content {
    let head = vec![
        counts(view, window),
        growth(view, window),
        births(view, window),
    ];
    let mut origins: Vec<(f64, String)> = view
        .history
        .origins
        .iter()
        .filter_map(|(subject, series)| Some((series.last(window)?.last, subject.to_string())))
        .collect();
    origins.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let line = |(n, origin): &(f64, String)| {
        let n = format!("{:>9} ", count(*n));
        let origin = clip(origin, room.columns.saturating_sub(n.len()));
        Line::from(vec![Span::styled(n, strong()), Span::raw(origin)])
    };
    let list = match origins.is_empty() {
        true => vec![not_seen("origins")],
        false => origins.iter().map(line).collect(),
    };
    Content {
        title: String::new(),
        head,
        list,
    }
}

/// The census is slow and its figures hold for long, so the last one counts.
fn counts(view: &View, window: Window) -> Line<'static> {
    let until = Window {
        from: Moment::default(),
        ..window
    };
    let last = |shown| view.history.series(shown).last(until);
    let dying = last(Shown::Dying);
    let mut spans = match dying {
        Some(dying) => vec![
            Span::styled(count(dying.last), strong()),
            Span::raw(" dying"),
        ],
        None => not_seen("dying").spans,
    };
    if let Some(live) = last(Shown::Live) {
        spans.push(Span::raw(format!(", {} live", count(live.last))));
    }
    if let Some(bytes) = last(Shown::DyingBytes) {
        spans.push(Span::raw(format!(", ≥ {}", text::bytes(bytes.last as u64))));
    }
    let age = dying.map(|dying| window.to.since(dying.at));
    if let Some(age) = age.filter(|age| *age > view.length()) {
        spans.push(Span::styled(format!(", {} ago", stretch(age)), faint()));
    }
    Line::from(spans)
}

fn growth(view: &View, window: Window) -> Line<'static> {
    let label = Span::styled("growth ", faint());
    let Some(growth) = figures::growth(&view.history, window) else {
        return Line::from(vec![label, Span::styled("not known yet", faint())]);
    };
    let sign = match growth.per_hour {
        n if n.round() > 0.0 => "+",
        n if n.round() < 0.0 => "-",
        _ => "",
    };
    let rate = format!("{sign}{} per hour", count(growth.per_hour.abs()));
    let over = format!(" over {}", stretch(growth.over));
    Line::from(vec![
        label,
        Span::styled(rate, strong()),
        Span::styled(over, faint()),
    ])
}

fn births(view: &View, window: Window) -> Line<'static> {
    let n = figures::n_births(&view.history, window);
    if n == 0 {
        return match view.history.heard(names::CGROUPS, window) {
            true => none(view, "births"),
            false => not_seen("births"),
        };
    }
    Line::from(vec![
        Span::styled("births ", faint()),
        Span::styled(text::number(n), strong()),
        Span::styled(format!(" in {}", words::stretch(view.length())), faint()),
    ])
}
