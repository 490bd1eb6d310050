//! The program itself, as users run it.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// Names the binary that `cargo xtask test kernel` has built.
pub const SEXTON: &str = "SEXTON";

/// The binary; `None` when nobody says where it is.
pub fn binary() -> Option<PathBuf> {
    std::env::var_os(SEXTON).map(PathBuf::from)
}

/// The sensors of the binary, which is no test build: the list of this one is longer.
pub fn sensors() -> Vec<String> {
    let sexton = binary().expect("SEXTON names the binary: run cargo xtask test kernel");
    let output = Command::new(sexton).args(["doctor", "--json"]).output();
    let checkup = output.expect("it starts").stdout;
    let checkup: Value = serde_json::from_slice(&checkup).expect("JSON");
    let sensors = checkup["sensors"].as_array().expect("a list").iter();
    let names = sensors.map(|it| it["sensor"].as_str().expect("a name").to_owned());
    names.collect()
}
