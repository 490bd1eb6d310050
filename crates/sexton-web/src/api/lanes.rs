//! What the time line can show.

use schemars::JsonSchema;
use serde::Serialize;

use super::{SubjectView, Time};
use crate::index::{Content, Lane};
use crate::source::State;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Lanes")]
pub(super) struct LanesView {
    lanes: Vec<LaneView>,
    #[schemars(with = "Time")]
    from: u64,
    #[schemars(with = "Time")]
    to: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Lane")]
struct LaneView {
    id: String,
    /// Where it belongs. There may be more groups than the page knows.
    group: &'static str,
    /// The heading of that group.
    group_title: &'static str,
    label: String,
    unit: crate::index::LaneUnit,
    /// Values are how much it grew in a second.
    per_second: bool,
    kind: crate::index::LaneKind,
    /// The largest value of the whole source; for events the number of them.
    max: f64,
    subject: Option<SubjectView<'static>>,
    /// What it shows, in one sentence.
    about: &'static str,
}

pub(super) fn view(state: &State) -> LanesView {
    let (from_ns, to_ns) = state.span_ns();
    let lanes = state.index.lanes().into_iter();
    LanesView {
        lanes: lanes.map(|one| lane(one, from_ns, to_ns)).collect(),
        from: state.clock.us(from_ns),
        to: state.clock.us(to_ns),
    }
}

#[allow(clippy::cast_precision_loss, reason = "a count that is shown")]
fn lane(lane: Lane<'_>, from_ns: u64, to_ns: u64) -> LaneView {
    let max = match lane.content {
        Content::Values(values) => values.map_or(0.0, |values| f64::from(values.largest())),
        Content::Events(events) => {
            // What happened before the recording has no mark in it, so it does not count.
            let within = events.map_or(&[][..], |events| events.within(from_ns, to_ns + 1));
            within.iter().map(|event| event.n).sum::<u64>() as f64
        }
    };
    let subject = lane.subject.as_ref();
    let subject = subject.map(|subject| SubjectView::from(subject).into_owned());
    LaneView {
        id: lane.id,
        group: lane.group.id(),
        group_title: lane.group.title(),
        label: lane.label,
        unit: lane.unit,
        per_second: lane.is_per_second,
        kind: lane.kind,
        max,
        subject,
        about: lane.about,
    }
}
