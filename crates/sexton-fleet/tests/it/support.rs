//! Runs the binary on fleets of its own.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

pub fn fleet(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sexton-fleet"));
    command.args(args).env_remove("SEXTON_LAKE");
    command.output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[track_caller]
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}\n{}", stdout(output), stderr(output));
    })
}

/// Makes a fleet, and returns its truth.
#[track_caller]
pub fn simulate(lake: &Path, nodes: usize, hours: usize, seed: u64, incident: &str) -> Value {
    let lake = lake.to_str().unwrap();
    let (nodes, hours, seed) = (nodes.to_string(), hours.to_string(), seed.to_string());
    let output = fleet(&[
        "simulate",
        "--nodes",
        &nodes,
        "--hours",
        &hours,
        "--seed",
        &seed,
        "--incident",
        incident,
        "-o",
        lake,
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    json(&output)
}

pub fn compare(lake: &Path, more: &[&str]) -> (i32, Value) {
    let lake = lake.to_str().unwrap();
    let output = fleet(&[&["compare", "--lake", lake, "--json"], more].concat());
    (output.status.code().unwrap(), json(&output))
}
