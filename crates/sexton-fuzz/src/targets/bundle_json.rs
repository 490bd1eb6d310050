//! `bundle.json`, and the names of segments.

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "bundle_json",
    run,
};

fn run(bytes: &[u8]) {
    sexton_store::fuzzing::small_files(bytes);
}
