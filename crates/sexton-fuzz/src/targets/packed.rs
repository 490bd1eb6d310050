//! Packed bundles, as they are, and as a tar archive that still has to be compressed.

use std::path::Component;

use sexton_store::fuzzing::{pack_tar, packed};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "packed",
    run,
};

fn run(bytes: &[u8]) {
    let compressed = pack_tar(bytes).expect("memory for a small archive");
    for name in [packed(bytes), packed(&compressed)].concat() {
        let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_));
        assert!(name.components().all(is_inside), "{}", name.display());
    }
}
