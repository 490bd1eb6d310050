//! Paths of cgroups, and who made them.

use sexton_model::origin::{Origin, pattern_component};
use sexton_model::text;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "cgroup_path",
    run,
};

fn run(path: &[u8]) {
    let origin = Origin::of(path);
    origin.kind();
    origin.unit();
    origin.host_unit();
    origin.slice();
    origin.container();
    origin.pod();
    origin.machine();
    origin.user();
    origin.session();
    // Alike paths have one pattern, so that of a pattern is itself.
    let pattern = origin.pattern();
    pattern_component(path);
    let shown = text::escape(&pattern);
    crate::shown::assert_plain(&shown);
    assert_eq!(text::unescape(&shown), pattern);
}
