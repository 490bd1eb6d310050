//! Unit files and presets.

use std::path::Path;

use sexton_units::{file, preset};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "unit_file",
    run,
};

fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    file::parse(&text);
    preset::parse(
        &text,
        Path::new("/etc/systemd/system-preset/50-fuzz.preset"),
    );
}
