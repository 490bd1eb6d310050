//! Runs the binary.

use std::process::{Command, Output};

/// Path of the binary under test.
pub const SEXTON: &str = env!("CARGO_BIN_EXE_sexton");

/// Runs it with these arguments.
pub fn sexton(args: &[&str]) -> Output {
    Command::new(SEXTON)
        .args(args)
        .output()
        .expect("the binary runs")
}

/// What it printed.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("output is text")
}

/// What it complained about.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("output is text")
}
