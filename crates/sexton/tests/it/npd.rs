//! The plug-in configuration for node-problem-detector keeps its contract: the rules that its
//! `Validate` checks, what it makes of exit codes, and how much of the output it keeps
//! (`pkg/custompluginmonitor` of node-problem-detector).

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::command::{SEXTON, stdout};

const CONFIG: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/node-problem-detector/sexton.json"
);

/// Reads a whole number of seconds, `4s`.
fn seconds(text: &Value) -> u64 {
    let text = text.as_str().expect("a time");
    let digits = text.strip_suffix('s').expect("in seconds");
    digits.parse().expect("a number")
}

#[test]
fn the_configuration_is_valid_and_works() {
    let config: Value =
        serde_json::from_str(&fs::read_to_string(CONFIG).expect("it is there")).expect("JSON");
    assert_eq!(config["plugin"], "custom");
    let global = &config["pluginConfig"];
    let most = usize::try_from(global["max_output_length"].as_u64().expect("a bound"));
    let most = most.expect("it fits");
    let conditions: Vec<&Value> = config["conditions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|condition| &condition["type"])
        .collect();
    for rule in config["rules"].as_array().expect("a list") {
        assert!(seconds(&rule["timeout"]) <= seconds(&global["timeout"]));
        assert!(conditions.contains(&&rule["condition"]), "{rule}");
        for reason in [&rule["reason"], &rule["condition"]] {
            let reason = reason.as_str().expect("a word");
            let is_camel = reason.starts_with(|c: char| c.is_ascii_uppercase())
                && reason.chars().all(|c| c.is_ascii_alphanumeric());
            assert!(is_camel, "{reason}");
        }
        assert_eq!(rule["path"], "/usr/bin/sexton");
        let args = rule["args"].as_array().expect("a list");
        let args = args.iter().map(|arg| arg.as_str().expect("a text"));
        let output = Command::new(SEXTON).args(args).output().expect("it runs");
        check_message(&output, most);
    }
}

/// 0 is OK, 1 a problem, all else unknown; the message is what was printed, trimmed and cut.
#[track_caller]
fn check_message(output: &std::process::Output, most: usize) {
    let message = stdout(output);
    let message = message.trim();
    assert!(message.len() <= most && message.is_ascii(), "{message}");
    assert!(!message.contains('\n'), "{message}");
    let word = match output.status.code() {
        Some(0) => "PASS: ",
        Some(1) => "FAIL: ",
        Some(3) => "UNKNOWN: ",
        other => panic!("{other:?}: {message}"),
    };
    assert!(message.starts_with(word), "{message}");
}
