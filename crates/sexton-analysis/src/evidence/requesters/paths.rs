//! What the path of a created cgroup says of who is behind it.

use sexton_model::origin::{Origin, Part, Role};

use crate::evidence::creations::Creation;
use crate::words::unit_name;

/// Whether a path lies below the directory of a unit.
pub(super) fn is_below(path: &str, unit: &str) -> bool {
    let unit = unit_name::own(unit);
    path.rsplit_once('/')
        .is_some_and(|(above, _)| above.split('/').any(|part| part == unit))
}

/// The path of the pod that a path is, or lies in.
pub(super) fn pod_of(path: &str) -> Option<String> {
    let origin = Origin::of(path.as_bytes());
    let is_pod = |part: &Part<'_>| matches!(part.role, Role::Pod(_));
    let last = origin.parts().iter().rposition(is_pod)?;
    let parts: Vec<&str> = path.split('/').take(last + 1).collect();
    Some(parts.join("/"))
}

/// Whether systemd made the directory of a unit that has a name of its own: it was started.
/// Scopes and units with a number are made for somebody.
/// Those of a user's own manager may be told by nobody else: not each can be asked.
pub(crate) fn is_start_of_unit(creation: &Creation<'_>) -> bool {
    let last = creation.pattern.rsplit('/').next().unwrap_or_default();
    let is_systemd = creation
        .makers
        .first()
        .is_some_and(|maker| maker.comm == "systemd");
    let unit = creation.unit.as_deref();
    let is_unit = unit.is_some_and(|unit| !is_below(creation.path, unit));
    let is_of_user = unit.is_some_and(unit_name::is_of_user) && !last.ends_with(".scope");
    let is_slice = last.ends_with(".slice");
    is_systemd && ((is_unit && !is_of_user && !last.contains('<')) || is_slice)
}
