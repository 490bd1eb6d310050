//! Draws a view.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

use crate::history::Window;
use crate::keys::KEYS;
use crate::panels::{Panel, Room};
use crate::view::View;
use crate::words;

/// Below this size only the panel in focus is shown.
const LEAST_FOR_ALL: (u16, u16) = (64, 18);

/// Below this height the panel of all that is left is shown only alone.
const LEAST_FOR_OTHER: u16 = 36;

/// Columns of the bar that shows where in time we are.
const BAR: usize = 16;

/// Draws the view, at any size.
pub fn render(view: &View, frame: &mut Frame<'_>) {
    let area = frame.area();
    let rows = [
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ];
    let [top, middle, bottom] = Layout::vertical(rows).areas(area);
    frame.render_widget(Paragraph::new(header(view, top.width.into())), top);
    match view.window() {
        None => {
            let text = match view.is_live {
                true => "waiting for the first records",
                false => "this recording is empty",
            };
            frame.render_widget(Paragraph::new(text), middle);
        }
        Some(window) => panels(view, window, middle, frame),
    }
    frame.render_widget(Paragraph::new(footer(bottom.width.into())), bottom);
    if view.helps {
        help(middle, frame);
    }
}

fn panels(view: &View, window: Window, area: Rect, frame: &mut Frame<'_>) {
    let is_small = area.width < LEAST_FOR_ALL.0 || area.height < LEAST_FOR_ALL.1;
    let has_no_place = view.focus == Panel::Other && area.height < LEAST_FOR_OTHER;
    if view.is_zoomed || is_small || has_no_place {
        return panel(view, window, view.focus, area, true, frame);
    }
    for (which, place) in places(view, area) {
        panel(view, window, which, place, false, frame);
    }
}

/// Where each panel goes: cores take the width, and so does what is left where there is
/// room for it; the others share it.
fn places(view: &View, area: Rect) -> Vec<(Panel, Rect)> {
    // A rule and a summary of two lines, then a line for each core, but at most 2 in 5 lines.
    let n_cores = view.history.cores.len().clamp(1, 1000) as u16;
    let cores = (n_cores + 3).min((area.height * 2 / 5).max(6));
    let last = (area.height / 6).max(4);
    let other = if area.height < LEAST_FOR_OTHER {
        0
    } else {
        last
    };
    let rows = [
        Constraint::Length(cores),
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Length(other),
        Constraint::Length(last),
    ];
    let [first, second, third, fourth, fifth] = Layout::vertical(rows).areas(area);
    let halves = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).spacing(2);
    let [dying, network] = halves.areas(second);
    let [units, kernel] = halves.areas(third);
    let [workloads, gaps] = halves.areas(fifth);
    let mut places = vec![
        (Panel::Cores, first),
        (Panel::Dying, dying),
        (Panel::Network, network),
        (Panel::Units, units),
        (Panel::Kernel, kernel),
        (Panel::Other, fourth),
        (Panel::Workloads, workloads),
        (Panel::Gaps, gaps),
    ];
    places.retain(|(_, place)| place.height > 0);
    places
}

fn panel(
    view: &View,
    window: Window,
    which: Panel,
    area: Rect,
    is_alone: bool,
    frame: &mut Frame<'_>,
) {
    let in_focus = which == view.focus;
    let block = Block::new().borders(Borders::TOP);
    let inside = block.inner(area);
    let room = Room {
        columns: inside.width.into(),
        lines: inside.height.into(),
        is_alone,
    };
    let content = which.content(view, window, room);
    let style = match in_focus {
        true => Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD),
        false => Style::new().fg(Color::DarkGray),
    };
    let mark = if in_focus { "▸" } else { " " };
    let mut title = vec![Span::styled(format!("{mark}{} ", which.name()), style)];
    if !content.title.is_empty() {
        title.push(Span::raw(format!("{} ", content.title)));
    }
    let block = block.title(Line::from(title)).border_style(style);
    let n_listed = room.lines.saturating_sub(content.head.len());
    let last = content.list.len().saturating_sub(n_listed);
    let scroll = if in_focus { view.scroll.min(last) } else { 0 };
    let n_below = last - scroll;
    let block = match n_below {
        0 => block,
        n => block.title(Line::from(format!(" {n} more ")).right_aligned()),
    };
    let list = content.list.into_iter().skip(scroll);
    let lines: Vec<Line<'_>> = content.head.into_iter().chain(list).collect();
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn header(view: &View, columns: usize) -> Line<'static> {
    let strong = Style::new().add_modifier(Modifier::BOLD);
    let mode = match (view.is_live, view.is_following()) {
        (true, true) => Span::styled("live", strong.fg(Color::Green)),
        (true, false) => Span::styled("paused", strong.fg(Color::Yellow)),
        (false, _) => Span::styled("recording", strong.fg(Color::Cyan)),
    };
    let mut line = Line::from(vec![Span::styled("sexton ", strong), mode]);
    let (Some(window), Some(span)) = (view.window(), view.span()) else {
        return line;
    };
    let at = words::clock(view, window.to);
    let clock = words::clock_name(view, window.to);
    line.push_span(Span::raw(format!("  {at} {clock}")));
    let length = words::stretch(view.length());
    line.push_span(Span::raw(format!("  last {length}")));
    let kept = words::stretch(span.to.since(span.from));
    let bar = format!("{} of {kept}", bar(window, span));
    let blank = columns.saturating_sub(line.width() + words::width(&bar));
    if blank > 1 {
        line.push_span(Span::raw(format!("{}{bar}", " ".repeat(blank))));
    }
    line
}

/// Where in all of time the window ends.
fn bar(window: Window, span: Window) -> String {
    let whole = span.to.since(span.from).as_secs_f64();
    let part = window.to.since(span.from).as_secs_f64();
    let share = if whole > 0.0 { part / whole } else { 1.0 };
    let place = (share * (BAR - 1) as f64).round() as usize;
    let dot = |at| if at == place { '●' } else { '─' };
    (0..BAR).map(dot).collect()
}

fn footer(columns: usize) -> Line<'static> {
    let key = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);
    let shown = |(name, word, _): &(&'static str, &'static str, &str)| {
        [Span::styled(*name, key), Span::raw(format!(" {word}  "))]
    };
    let keys = KEYS.iter().filter(|(_, word, _)| !word.is_empty());
    let mut line = Line::from(keys.flat_map(shown).collect::<Vec<_>>());
    if line.width() > columns {
        let names = KEYS.iter().filter(|(_, word, _)| !word.is_empty());
        let names = names.flat_map(|(name, ..)| [Span::styled(*name, key), Span::raw(" ")]);
        line = Line::from(names.collect::<Vec<_>>());
    }
    line
}

fn help(area: Rect, frame: &mut Frame<'_>) {
    let mut lines: Vec<Line<'_>> = KEYS
        .iter()
        .map(|(name, _, meaning)| Line::from(format!(" {} {meaning}", words::fit(name, 9))))
        .collect();
    lines.push(Line::default());
    for text in [
        " ▁▄█ the worst second of the kernel's share of a core",
        " ·   not seen then",
        " \"not seen\" and ? are never zero: no sensor told it,",
        " and the gaps say why",
    ] {
        lines.push(Line::from(text));
    }
    let columns = lines.iter().map(Line::width).max().unwrap_or(0) as u16 + 3;
    let rows = lines.len() as u16 + 2;
    let place = area.centered(
        Constraint::Length(columns.min(area.width)),
        Constraint::Length(rows.min(area.height)),
    );
    frame.render_widget(Clear, place);
    let block = Block::bordered().title(" help ");
    frame.render_widget(Paragraph::new(lines).block(block), place);
}
