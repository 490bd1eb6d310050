//! Runs the binary on fleets of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Simulated fleets are of 2026-11-17, whatever the clock of this machine says.
pub const NOW: &str = "2026-11-20T00:00:00Z";

pub fn fleet(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sexton-fleet"));
    command.args(args).env_remove("SEXTON_LAKE");
    command.env("SEXTON_NOW", NOW);
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

/// Whether the first difference is the planted cause, or one that is on the same nodes.
pub fn is_found(answer: &Value, truth: &Value) -> bool {
    let first = &answer["differences"][0];
    let mut cause: Vec<&str> = truth["cause"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let Some(label) = first["label"].as_str() else {
        return false;
    };
    let mut parts: Vec<&str> = label.split(" together with ").collect();
    cause.sort_unstable();
    parts.sort_unstable();
    let same = first["same_nodes"].as_array().unwrap();
    parts == cause || cause.len() == 1 && same.iter().any(|same| *same == cause[0])
}

/// The interpreter that `cargo xtask test setup` prepares with a module.
#[track_caller]
pub fn python(folder: &str, module: &str) -> PathBuf {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(tree, PathBuf::from);
    let python = target.join(folder).join("bin/python");
    // Only looks for it: some take a second to load.
    let find = format!("import importlib.util as u, sys; sys.exit(not u.find_spec({module:?}))");
    let found = Command::new(&python).args(["-c", &find]).status();
    assert!(
        found.is_ok_and(|status| status.success()),
        "sexton-missing: python: no {module} was prepared; run cargo xtask test setup"
    );
    python
}
