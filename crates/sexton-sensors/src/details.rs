//! Details of events that several sensors give in the same words.

use std::borrow::Cow;

use sexton_model::origin::Origin;
use sexton_model::record::Detail;
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
