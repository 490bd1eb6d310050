//! Unit files: what they say, how often that restarts or starts something, and the head of
//! the program that they name.

use sexton_systemd::unit_file::interpreter::{self, Headers};
use sexton_systemd::unit_file::restart::{Defaults, Restart};
use sexton_systemd::unit_file::settings::Settings;
use sexton_systemd::unit_file::{file, timer};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "unit_file",
    run,
};

fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for assignment in file::parse(&text) {
        file::words(&assignment.value);
    }
    let settings = Settings::parse(&text);
    let restart = Restart::of(&settings, &Defaults::default());
    restart.is_endless();
    restart.arithmetic();
    if let Some(rate) = timer::rate(&settings) {
        assert!(rate.per_day.is_finite() && rate.per_day > 0.0, "{rate:?}");
    }
    interpreter::first_line(bytes);
    Headers::of(bytes).and_then(|headers| headers.loader(bytes));
}
