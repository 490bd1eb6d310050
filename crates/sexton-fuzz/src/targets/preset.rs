//! Preset files.

use std::path::Path;

use sexton_model::glob;
use sexton_systemd::unit_file::preset;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "preset",
    run,
};

fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let file = Path::new("/etc/systemd/system-preset/50-fuzz.preset");
    for rule in preset::parse(&text, file) {
        glob::matches(&rule.pattern, "getty@tty1.service");
    }
}
