//! Every command that the README shows is run here, as it stands there.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sexton_testkit::TempTree;

use crate::command::{SEXTON, stderr, stdout};

/// What a command printed.
struct Said {
    stdout: String,
    stderr: String,
}

impl Said {
    fn begins_with(&self, word: &str) -> bool {
        self.stdout.starts_with(word)
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect("JSON")
    }
}

/// The exit code that a command must have.
enum Ends {
    /// Always the same.
    With(i32),
    /// What it says of this machine decides.
    By(fn(&Said) -> i32),
}

const NOTHING_FOUND: i32 = 0;
const FOUND: i32 = 1;
const FAILED: i32 = 2;
const BLIND: i32 = 3;

/// The commands of the README, and the exit code that each must end with.
const COMMANDS: [(&str, Ends); 15] = [
    ("sudo sexton zombies --top 1", Ends::By(census)),
    (
        "sudo sexton diagnose --for 10s -o node.bundle",
        Ends::By(verdict),
    ),
    (
        "sexton diagnose --from node.bundle --json",
        Ends::By(verdict_in_json),
    ),
    (
        "sudo sexton fix --origin '/batch/job-<n>'",
        Ends::By(nothing_unless_blind),
    ),
    ("sudo sexton check", Ends::By(checks)),
    ("sexton explain UNIT002", Ends::With(NOTHING_FOUND)),
    ("sexton image audit /", Ends::By(audit)),
    ("sudo sexton zombies --by file", Ends::By(census)),
    ("sudo sexton zombies --json --all", Ends::By(census_in_json)),
    (
        "sudo sexton record -o day.bundle --for 30s",
        Ends::With(NOTHING_FOUND),
    ),
    ("sexton profile top --from day.bundle", Ends::By(profile)),
    (
        "sexton profile heatmap --from day.bundle -o day.html",
        Ends::By(profile),
    ),
    (
        "sexton bundle redact day.bundle -o plain.bundle",
        Ends::With(NOTHING_FOUND),
    ),
    ("sexton bundle pack day.bundle", Ends::With(NOTHING_FOUND)),
    ("sexton doctor", Ends::By(sensors)),
];

fn found_or(found: bool, sees_all: bool) -> i32 {
    match (found, sees_all) {
        (true, _) => FOUND,
        (false, true) => NOTHING_FOUND,
        (false, false) => BLIND,
    }
}

fn census(said: &Said) -> i32 {
    if !said.stdout.contains("Seen by bpf-walk") {
        return BLIND;
    }
    let is_leaking = said.stdout.contains(" leaked:");
    let found = !said.begins_with("0 dying") || is_leaking;
    found_or(found, !said.stdout.contains("\nBlind spots"))
}

fn census_in_json(said: &Said) -> i32 {
    let census = said.json();
    if census["method"] != "bpf-walk" {
        return BLIND;
    }
    let n = |key: &str| census[key].as_u64().unwrap_or(0);
    let gaps = census["gaps"].as_array().expect("gaps");
    found_or(n("dying") + n("leaked") > 0, gaps.is_empty())
}

fn verdict(said: &Said) -> i32 {
    let states = [
        ("ROOT CAUSE FOUND", FOUND),
        ("SYMPTOMS FOUND", FOUND),
        ("HEALTHY", NOTHING_FOUND),
        ("CANNOT TELL", BLIND),
    ];
    let state = states.iter().find(|(words, _)| said.begins_with(words));
    state.expect("a verdict").1
}

fn verdict_in_json(said: &Said) -> i32 {
    match said.json()["verdict"]["state"].as_str() {
        Some("cause-found" | "symptoms-only") => FOUND,
        Some("healthy") => NOTHING_FOUND,
        Some("blind") => BLIND,
        other => panic!("no verdict: {other:?}"),
    }
}

/// What it could not read is on standard error, and nothing else is.
fn nothing_unless_blind(said: &Said) -> i32 {
    found_or(false, said.stderr.is_empty())
}

/// A recording by a user who may take no samples has nothing to list.
fn profile(said: &Said) -> i32 {
    match said.stderr.starts_with("sexton: no sample is left") {
        true => FAILED,
        false => nothing_unless_blind(said),
    }
}

fn checks(said: &Said) -> i32 {
    let states = [("PASS", NOTHING_FOUND), ("FAIL", FOUND), ("UNKNOWN", BLIND)];
    let state = states.iter().find(|(word, _)| said.begins_with(word));
    state.expect("a state").1
}

fn audit(said: &Said) -> i32 {
    let is_clean = said.begins_with("No unit is known to be wrong")
        || said.begins_with("Nothing is enabled that should not be");
    found_or(!is_clean, !said.stdout.contains("\nnot read  "))
}

fn sensors(said: &Said) -> i32 {
    let first = said.stdout.lines().next().unwrap_or_default();
    found_or(false, first.ends_with("all see what there is to see."))
}

#[test]
fn the_commands_of_the_readme_work() {
    let folder = TempTree::new();
    for (line, ends) in COMMANDS {
        let args: Vec<&str> = line
            .trim_start_matches("sudo ")
            .split(' ')
            .skip(1)
            .map(|arg| arg.trim_matches('\''))
            .collect();
        let output = Command::new(SEXTON)
            .args(&args)
            .current_dir(folder.path())
            .output();
        let output = output.expect("the binary runs");
        let code = output.status.code().expect("it was not killed");
        let said = Said {
            stdout: stdout(&output),
            stderr: stderr(&output),
        };
        let expected = match ends {
            Ends::With(code) => code,
            Ends::By(rule) => rule(&said),
        };
        assert_eq!(code, expected, "{line}\n{}{}", said.stdout, said.stderr);
        let writes_a_file = args.contains(&"-o");
        let is_silent = said.stdout.is_empty() && said.stderr.is_empty();
        assert!(!is_silent || writes_a_file, "{line} printed nothing");
    }
}

/// A command of the README that is not run here would not be known to work.
#[test]
fn every_command_of_the_readme_is_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).expect("a README");
    let shown = readme.lines().filter_map(|line| line.strip_prefix("$ "));
    let shown = shown.filter(|line| line.trim_start_matches("sudo ").starts_with("sexton "));
    for line in shown.filter(|line| *line != SHOWN) {
        let is_run = COMMANDS.iter().any(|(command, _)| *command == line);
        assert!(is_run, "{line}");
    }
}

/// A recording that is in the tree, and what comes of it as the README shows it.
const SHOWN: &str = "sexton diagnose fixtures/6.18-debian12/founding-inner-loop";

#[test]
fn the_verdict_of_the_readme_is_what_comes_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).expect("a README");
    let shown = readme
        .split_once(&format!("$ {SHOWN}\n"))
        .expect("it is shown")
        .1;
    let shown = shown.split_once("```").expect("it has an end").0;
    let output = Command::new(SEXTON)
        .args(SHOWN.split(' ').skip(1))
        .current_dir(&root)
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(shown.contains("UNIT002  ecs.service"), "{shown}");
    assert!(
        said == shown,
        "the README shows\n{shown}\nand it says\n{said}"
    );
}
