//! What cannot be seen, and why, by sensor.

use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use sexton_report::text;

use super::{Content, Room, faint};
use crate::figures::{self, Blindness};
use crate::history::Window;
use crate::view::View;
use crate::words::{clip, clock, fit, wrap};

/// Columns of the sensor and of the reason.
const SENSOR: usize = 9;
const WHY: usize = 12;

/// In less than this the reason gives way to the text, which tells it too.
const LEAST_FOR_WHY: usize = 60;

pub(super) fn content(view: &View, window: Window, room: Room) -> Content {
    let gaps = figures::gaps(&view.history, window);
    let mut title = match gaps.len() {
        0 => String::new(),
        n => format!("{n}, so not all was seen"),
    };
    if view.history.n_forgotten > 0 {
        let n = text::count(view.history.n_forgotten, "event");
        title = format!("{title}; {n} let go for lack of room");
    }
    let list = match gaps.is_empty() {
        true => vec![Line::from(Span::styled("none so far", faint()))],
        false => gaps.iter().flat_map(|gap| lines(view, gap, room)).collect(),
    };
    Content {
        title,
        head: Vec::new(),
        list,
    }
}

/// One line among others; all of it where there is room.
fn lines(view: &View, gap: &Blindness, room: Room) -> Vec<Line<'static>> {
    let warning = Style::new().fg(Color::Yellow);
    let why = match room.is_alone || room.columns >= LEAST_FOR_WHY {
        true => WHY,
        false => 0,
    };
    let begin = [
        Span::raw(fit(&gap.sensor, SENSOR)),
        Span::styled(fit(&gap.why, why), warning),
    ];
    let columns = room.columns.saturating_sub(SENSOR + why);
    let mut texts = match room.is_alone {
        true => wrap(&gap.text, columns),
        false => vec![clip(&gap.text, columns)],
    };
    if room.is_alone {
        let times = text::count(gap.n, "time");
        texts.push(format!("{times}, last at {}", clock(view, gap.at)));
        let remedy = gap.remedy.iter();
        texts.extend(remedy.flat_map(|remedy| wrap(&format!("-> {remedy}"), columns)));
    }
    let indent = || Span::raw(" ".repeat(SENSOR + why));
    let mut texts = texts.into_iter();
    let mut first = Line::from(begin.to_vec());
    first.push_span(Span::raw(texts.next().unwrap_or_default()));
    let rest = texts.map(|text| Line::from(vec![indent(), Span::raw(text)]));
    std::iter::once(first).chain(rest).collect()
}
