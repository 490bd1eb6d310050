//! Details of events that several sensors give in the same words.

use std::borrow::Cow;

use sexton_model::fact::sexton::SEXTON_STEP_DOWN;
use sexton_model::origin::Origin;
use sexton_model::record::{Detail, Sink};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;

/// One detail.
pub(crate) fn detail(key: &'static str, value: impl ToString) -> Detail {
    (Cow::Borrowed(key), value.to_string())
}

/// What a cgroup's path tells: its kind, and where it has them its unit and container.
pub(crate) fn of_origin(path: &[u8], details: &mut Vec<Detail>) {
    let origin = Origin::of(path);
    details.push(detail("origin", origin.kind()));
    if let Some(unit) = origin.host_unit() {
        details.push(detail("unit", escape(unit.as_bytes())));
    }
    if let Some(container) = origin.container() {
        details.push(detail("container", escape(container.id.as_bytes())));
    }
}

/// Tells that something is seen by lesser means than the best: "stacks by perf events".
pub(crate) fn step_down(sensor: &'static str, what: &str, by: &str, out: &mut Sink) {
    let about = Subject::new(SubjectKind::Sensor, sensor);
    let details = vec![detail("what", what), detail("by", by)];
    out.event(out.now(), &about, &SEXTON_STEP_DOWN, details);
}
