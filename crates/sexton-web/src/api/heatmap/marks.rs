//! What is drawn on a heat map beside its cells: events, and times without samples.

use super::super::params::Window;
use super::super::{EventView, GapView};
use crate::index::{Content, Happening};
use crate::source::State;

/// Events that are told.
const MAX_EVENTS: usize = 300;

/// Lanes whose events are drawn on a heat map.
const DRAWN: [&str; 5] = [
    "nic.events",
    "log.kernel",
    "units.restarts",
    "network.pending",
    "network.starved",
];

/// No sampling is so slow that less than this between samples, or at an end, is a gap.
const SAMPLED_EVERY_NS: u64 = 1_000_000_000;

/// What is drawn on the picture.
pub(super) fn events(state: &State, window: Window) -> Vec<EventView<'static>> {
    let mut found: Vec<&Happening> = Vec::new();
    let lanes = state.index.lanes();
    for lane in lanes
        .iter()
        .filter(|lane| DRAWN.contains(&lane.id.as_str()))
    {
        if let Content::Events(Some(events)) = lane.content {
            let within = events.within(window.from_ns, window.to_ns);
            found.extend(within.iter().take(MAX_EVENTS));
        }
    }
    found.sort_by_key(|event| event.at_ns);
    let views = found.into_iter().take(MAX_EVENTS);
    let views = views.map(|event| EventView::of(state.clock, event).into_owned());
    views.collect()
}

/// When stacks were not sampled.
pub(super) fn blind(state: &State, window: Window) -> Vec<GapView> {
    let (_, end_ns) = state.span_ns();
    let spans = state
        .index
        .blind()
        .within(&["stacks"], window.from_ns, window.to_ns);
    let spans = spans.take(100);
    let told = spans.map(|span| GapView::of(state.clock, span, end_ns));
    told.chain(unsampled(state, window)).collect()
}

/// Before the first sample and after the last nobody looked: that no sample is there does
/// not say that cores were idle.
fn unsampled(state: &State, window: Window) -> Vec<GapView> {
    let sampled = state.bundle.stacks_span();
    let (from_ns, to_ns) = sampled.map_or((window.to_ns, window.to_ns), |span| {
        (span.start().as_ns(), span.end().as_ns())
    });
    let sides = [
        (window.from_ns, from_ns.min(window.to_ns)),
        (to_ns.max(window.from_ns), window.to_ns),
    ];
    let is_long = |(from_ns, to_ns): &(u64, u64)| to_ns.saturating_sub(*from_ns) > SAMPLED_EVERY_NS;
    let view = |(from_ns, to_ns)| {
        let why = "stacks were not sampled then".to_owned();
        GapView(state.clock.us(from_ns), state.clock.us(to_ns), why)
    };
    sides.into_iter().filter(is_long).map(view).collect()
}
