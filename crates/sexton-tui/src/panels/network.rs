//! Waits of network polling, now and at their worst, and who held the core.

use ratatui::text::{Line, Span};
use sexton_model::fact::napi::{NAPI_STARVED, NapiDelay};
use sexton_model::record::Event;

use super::cores::recent;
use super::{Content, Room, faint, none, not_seen, strong};
use crate::history::{Cell, Window};
use crate::names::{self, Shown};
use crate::view::View;
use crate::words::{NOT_SEEN, clip, clock, stretch, time};

pub(super) fn content(view: &View, window: Window, room: Room) -> Content {
    let events = view.history.events(window);
    let starved: Vec<Event<'_, NapiDelay>> = events
        .filter_map(|(_, record)| Event::of(record, &NAPI_STARVED))
        .collect();
    let list = match starved.is_empty() {
        true if view.history.heard(names::NAPI, window) => vec![none(view, "starved")],
        true => vec![not_seen("starved")],
        false => starved
            .iter()
            .map(|delay| line(view, *delay, room))
            .collect(),
    };
    let title = match starved.len() {
        0 => String::new(),
        n => format!("starved {n}×"),
    };
    Content {
        title,
        head: waits(view, window),
        list,
    }
}

fn waits(view: &View, window: Window) -> Vec<Line<'static>> {
    let waits = view.history.series(Shown::NapiWait);
    let wait = |label: String, cell: Option<&Cell>| {
        let mut spans = vec![Span::styled(label, faint())];
        let Some(cell) = cell else {
            spans.push(Span::styled(NOT_SEEN, faint()));
            return spans;
        };
        spans.push(Span::styled(time(cell.worst), strong()));
        if cell.worst > 0.0 {
            spans.push(Span::raw(format!(" on {}", cell.subject)));
        }
        spans
    };
    let worst = waits.worst(window);
    let label = format!("worst of {} ", stretch(view.length()));
    let mut of_window = wait(label, worst);
    if let Some(cell) = worst.filter(|cell| cell.worst > 0.0) {
        let at = format!(" at {}", clock(view, cell.at));
        of_window.push(Span::styled(at, faint()));
    }
    let now = wait("waits now ".into(), waits.last(recent(window)));
    vec![Line::from(now), Line::from(of_window)]
}

fn line(view: &View, delay: Event<'_, NapiDelay>, room: Room) -> Line<'static> {
    let at = format!("{} ", clock(view, delay.at));
    let waited = delay.says.waited_ns.map(|ns| time(ns as f64));
    let waited = waited.unwrap_or_else(|| "starved".into());
    let mut text = format!(" {}", delay.subject);
    if let Some(holder) = &delay.says.holder_comm {
        text.push_str(&format!(" held by {holder}"));
    }
    if let Some(what) = &delay.says.what {
        text.push_str(&format!(", {what}"));
    }
    let columns = room.columns.saturating_sub(at.len() + waited.len());
    Line::from(vec![
        Span::styled(at, faint()),
        Span::styled(waited, strong()),
        Span::raw(clip(&text, columns)),
    ])
}
