//! Containers that come and go, by image, and processes that end badly, by name.

use ratatui::text::{Line, Span};
use sexton_report::text;

use super::{Content, Room, faint, strong};
use crate::figures::{self, Toll, Workload};
use crate::history::Window;
use crate::names::{self, Shown};
use crate::view::View;
use crate::words::{NOT_SEEN, clip};

pub(super) fn content(view: &View, window: Window, room: Room) -> Content {
    let workloads = figures::workloads(&view.history, window);
    let line = |(workload, toll): &(Workload, Toll)| line(workload, *toll, room);
    Content {
        title: String::new(),
        head: vec![head(view, window, &workloads)],
        list: workloads.iter().map(line).collect(),
    }
}

/// The sums.
fn head(view: &View, window: Window, workloads: &[(Workload, Toll)]) -> Line<'static> {
    let sum = |of: fn(&(Workload, Toll)) -> u64| workloads.iter().map(of).sum::<u64>();
    let n_born = sum(|(_, toll)| toll.n_born);
    let n_died = sum(|(workload, toll)| match workload {
        Workload::Image(_) => toll.n_died,
        Workload::Ended(..) => 0,
    });
    let n_ended = sum(|(workload, toll)| match workload {
        Workload::Image(_) => 0,
        Workload::Ended(..) => toll.n_died,
    });
    // A sensor without a runtime is at work and sees nothing.
    let running = view.history.series(Shown::ContainersRunning);
    let sees_containers = running.last(window).is_some() || n_born + n_died > 0;
    let sees_ends = view.history.heard(names::EXITS, window);
    let label = |text: &'static str| Span::styled(text, faint());
    let mut spans = match sees_containers {
        true => vec![
            count(n_born),
            label(" born "),
            count(n_died),
            label(" died, "),
        ],
        false => vec![label("containers "), label(NOT_SEEN), label(", ")],
    };
    match sees_ends {
        true => spans.extend([count(n_ended), label(" ended badly")]),
        false => spans.extend([label("bad ends "), label(NOT_SEEN)]),
    }
    Line::from(spans)
}

fn count(n: u64) -> Span<'static> {
    let style = if n > 0 { strong() } else { faint() };
    Span::styled(text::number(n), style)
}

fn line(workload: &Workload, toll: Toll, room: Room) -> Line<'static> {
    let label = |text: &'static str| Span::styled(text, faint());
    let (mut spans, name) = match workload {
        Workload::Image(image) => {
            let counts = [count(toll.n_born), label(" born "), count(toll.n_died)];
            let mut spans = counts.to_vec();
            spans.push(label(" died "));
            (spans, short(image, room).to_owned())
        }
        Workload::Ended(comm, how) => {
            let spans = vec![count(toll.n_died), label(" ended ")];
            (spans, format!("{comm}, {how}"))
        }
    };
    let taken: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::raw(clip(&name, room.columns.saturating_sub(taken))));
    Line::from(spans)
}

/// An image without its registry, where there is little room: its end says most.
fn short(image: &str, room: Room) -> &str {
    match room.is_alone {
        true => image,
        false => image.rsplit('/').next().unwrap_or(image),
    }
}
