//! `sexton check`, as pipelines run it. Limits are set so that the outcome is known.

use std::fs;
use std::process::Output;

use serde_json::Value;
use sexton_testkit::TempTree;

use crate::command::{sexton, stderr, stdout};

const PASSES: &str = "[check]\nmemory_cgroups = 1_000_000_000\n";
/// Every node has more than one: the root and whatever runs the tests.
const FAILS: &str = "[check]\nmemory_cgroups = 1\n";

/// Makes one check under a policy.
fn check(policy: &str, more: &[&str]) -> Output {
    let folder = TempTree::new().file("/policy.toml", policy);
    let file = folder.path().join("policy.toml").display().to_string();
    let mut args = vec!["check", "--only", "memory_cgroups", "--policy", &file];
    args.extend(more);
    sexton(&args)
}

#[test]
fn exit_codes_are_those_of_who_asks() {
    for (format, passed, failed) in [
        ("text", 0, 1),
        ("json", 0, 1),
        ("junit", 0, 1),
        ("sarif", 0, 1),
        ("npd", 0, 1),
        ("prom", 0, 1),
        ("nagios", 0, 2),
    ] {
        for (policy, code) in [(PASSES, passed), (FAILS, failed)] {
            let output = check(policy, &["--format", format]);
            assert_eq!(
                output.status.code(),
                Some(code),
                "{format}: {}",
                stderr(&output)
            );
        }
    }
}

#[test]
fn json_keeps_its_contract() {
    let output = check(FAILS, &["--json"]);
    let gate: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(gate["schema"], "sexton.check/1");
    assert_eq!(gate["pass"], false);
    let check = &gate["checks"][0];
    assert_eq!(check["name"], "memory_cgroups");
    assert_eq!(check["pass"], false);
    assert_eq!(check["limit"], 1.0);
    assert!(check["value"].as_f64().is_some_and(|n| n > 1.0));
    assert!(check["why"].as_str().is_some_and(|why| !why.is_empty()));
}

#[test]
fn all_checks_end_with_a_word_for_each() {
    let output = sexton(&["check", "--json"]);
    let gate: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let passes = gate["checks"].as_array().expect("a list").iter();
    let passes: Vec<&Value> = passes.map(|check| &check["pass"]).collect();
    let expected = match () {
        () if passes.iter().any(|pass| **pass == false) => 1,
        () if passes.iter().any(|pass| pass.is_null()) => 3,
        () => 0,
    };
    assert_eq!(output.status.code(), Some(expected), "{gate:#}");
    let text = stdout(&sexton(&["check"]));
    assert!(
        text.lines().next().is_some_and(|head| head.len() <= 80),
        "{text}"
    );
}

/// The rules of JUnit's common schema: counts agree with cases, each case has at most one
/// outcome, names are there.
#[test]
fn junit_adds_up() {
    let xml = stdout(&check(FAILS, &["--format", "junit"]));
    assert!(xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "));
    for (count, n) in [
        ("tests=\"1\"", 2),
        ("failures=\"1\"", 2),
        ("errors=\"0\"", 2),
    ] {
        assert_eq!(xml.matches(count).count(), n, "{xml}");
    }
    assert_eq!(
        xml.matches("<testcase classname=\"sexton.check\" name=\"")
            .count(),
        1
    );
    assert_eq!(
        xml.matches("<failure type=\"MCG003\" message=\"").count(),
        1
    );
    for element in ["testsuites", "testsuite", "testcase", "failure"] {
        let open = xml.matches(&format!("<{element} ")).count();
        assert_eq!(
            open,
            xml.matches(&format!("</{element}>")).count(),
            "{element}"
        );
    }
}

/// The rules of SARIF 2.1.0 that our output touches: sections 3.13, 3.14, 3.19, 3.27, 3.28.
#[test]
fn sarif_keeps_its_rules() {
    let log: Value =
        serde_json::from_str(&stdout(&check(FAILS, &["--format", "sarif"]))).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().expect("a list");
    assert_eq!(run["tool"]["driver"]["name"], "sexton");
    let results = run["results"].as_array().expect("a list");
    assert_eq!(results.len(), 1);
    for result in results {
        let index = result["ruleIndex"].as_u64().expect("a number");
        let rule = &rules[usize::try_from(index).expect("small")];
        assert_eq!(rule["id"], result["ruleId"]);
        let levels = ["none", "note", "warning", "error"];
        assert!(levels.contains(&result["level"].as_str().expect("a word")));
        assert_eq!(result["kind"] == "fail", result["level"] != "none");
        assert!(result["message"]["text"].is_string());
        assert!(result["locations"][0]["logicalLocations"][0]["name"].is_string());
    }
}

#[test]
fn nagios_gets_one_line_with_figures() {
    let line = stdout(&check(FAILS, &["--format", "nagios"]));
    let (said, figures) = line.trim_end().split_once(" | ").expect("a bar");
    assert!(
        said.starts_with("SEXTON CRITICAL - memory_cgroups "),
        "{line}"
    );
    let (label, rest) = figures.split_once('=').expect("a figure");
    assert_eq!(label, "memory_cgroups");
    let parts: Vec<&str> = rest.split(';').collect();
    assert!(parts[0].parse::<f64>().is_ok_and(|n| n > 1.0), "{line}");
    assert_eq!(parts[1..], ["", "1", "0"]);
}

#[test]
fn a_metrics_file_is_replaced_at_once() {
    let folder = TempTree::new().file("/sexton.prom", "old\n");
    let file = folder.path().join("sexton.prom");
    let output = check(
        FAILS,
        &["--format", "prom", "-o", &file.display().to_string()],
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    let metrics = fs::read_to_string(&file).expect("it is there");
    assert!(metrics.contains("sexton_check_state{check=\"memory_cgroups\",state=\"fail\"} 1\n"));
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').expect("a value");
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
    let names = fs::read_dir(folder.path()).expect("a folder");
    assert_eq!(names.count(), 1, "nothing is left beside it");
}
