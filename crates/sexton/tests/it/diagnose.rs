//! `sexton diagnose`, as a user runs it: live, and again from what it kept.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use sexton_testkit::TempTree;

use crate::command::{SEXTON, sexton, stderr, stdout};
use crate::terminal;
use crate::unprivileged::Copy;

fn from(bundle: &Path, more: &[&str]) -> Output {
    Command::new(SEXTON)
        .args(["diagnose", "--from"])
        .arg(bundle)
        .args(more)
        .output()
        .expect("it runs")
}

/// Watches for a moment and keeps it.
fn watch(folder: &Path, more: &[&str]) -> Output {
    Command::new(SEXTON)
        .args(["diagnose", "--for", "2s", "-o"])
        .arg(folder)
        .args(more)
        .output()
        .expect("it runs")
}

#[test]
fn a_kept_bundle_gives_the_same_bytes_to_anybody() {
    let folder = TempTree::new();
    let bundle = folder.path().join("node.bundle");
    let live = watch(&bundle, &["--json"]);
    let code = live.status.code();
    assert!(matches!(code, Some(0 | 1 | 3)), "{}", stderr(&live));
    assert_eq!(
        stderr(&live),
        "",
        "nothing is told where there is no terminal"
    );
    let copy = Copy::new("replay");
    let replayed = copy.run(&[
        "diagnose",
        "--json",
        "--from",
        &bundle.display().to_string(),
    ]);
    assert_eq!(replayed.status.code(), code, "{}", stderr(&replayed));
    assert!(stdout(&live) == stdout(&replayed), "the two differ");
    check_contract(&serde_json::from_str(&stdout(&live)).expect("JSON"), code);
}

#[track_caller]
fn check_contract(diagnosis: &Value, code: Option<i32>) {
    assert_eq!(diagnosis["schema"], "sexton.diagnosis/1");
    for key in ["node", "window", "verdict", "findings", "gaps"] {
        assert!(!diagnosis[key].is_null(), "{key}");
    }
    let verdict = &diagnosis["verdict"];
    for key in ["state", "headline", "root", "confidence", "chain", "chains"] {
        assert!(verdict.get(key).is_some(), "{key}");
    }
    let expected = match verdict["state"].as_str() {
        Some("cause-found" | "symptoms-only") => 1,
        Some("healthy") => 0,
        Some("blind") => 3,
        other => panic!("{other:?}"),
    };
    assert_eq!(code, Some(expected));
    for finding in diagnosis["findings"].as_array().expect("a list") {
        for key in [
            "id",
            "code",
            "subject",
            "severity",
            "confidence",
            "title",
            "since",
            "caused_by",
            "evidence",
            "remedies",
        ] {
            assert!(finding.get(key).is_some(), "{key} in {finding:#}");
        }
        for piece in finding["evidence"].as_array().expect("a list") {
            for key in ["stance", "text", "source", "value"] {
                assert!(piece.get(key).is_some(), "{key} in {piece:#}");
            }
        }
    }
    let window = &diagnosis["window"];
    let (from, to) = (window["from"].as_str(), window["to"].as_str());
    assert!(
        from < to && to.is_some_and(|to| to.ends_with('Z')),
        "{window}"
    );
    assert!(
        window["seconds"].as_f64().is_some_and(|s| s < 30.0),
        "history is not the window"
    );
}

#[test]
fn text_fits_and_html_stands_alone() {
    let folder = TempTree::new();
    let bundle = folder.path().join("node.bundle");
    let live = watch(&bundle, &[]);
    let text = stdout(&live);
    // Commands are there to be copied, and not cut.
    let labels = ["Stop it now", "Clean up", "Prevent it", "Investigate"];
    let is_command = |line: &&str| {
        let row = line.trim_start();
        line.starts_with("      ") || labels.iter().any(|label| row.starts_with(label))
    };
    let long = text.lines().filter(|line| !is_command(line));
    for line in long {
        // Only a single word (a path, a name) may be longer than the width.
        let words = line.split_whitespace().count();
        assert!(line.chars().count() <= 80 || words <= 2, "{line}");
    }
    assert!(
        !text.contains('\x1b'),
        "no colour where there is no terminal"
    );
    let page = stdout(&from(&bundle, &["--format", "html"]));
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for foreign in ["src=", "http://", "@import", "url(", "<script", "<link"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[test]
fn ctrl_c_judges_what_there_is() {
    let child = Command::new(SEXTON)
        .args(["diagnose", "--for", "10m", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    std::thread::sleep(Duration::from_millis(1500));
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.expect("kill is there").success());
    let output = child.wait_with_output().expect("it ends");
    let diagnosis: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    check_contract(&diagnosis, output.status.code());
}

#[test]
fn wrong_use_is_named() {
    let folder = TempTree::new().file("/policy.toml", "[rules.MCG003]\n\nmots = 3\n");
    let policy = folder.path().join("policy.toml").display().to_string();
    let nowhere = folder.path().join("nowhere").display().to_string();
    let full = folder.path().display().to_string();
    for (args, named) in [
        (&["diagnose", "--policy", &policy][..], "policy.toml:3: "),
        (&["diagnose", "--policy", &nowhere][..], "cannot read"),
        (&["diagnose", "--from", &nowhere][..], "cannot open"),
        (&["diagnose", "-o", &full][..], "is not empty"),
        (
            &["diagnose", "--from", "a", "-o", "b"][..],
            "cannot be used with",
        ),
        (&["diagnose", "--for", "soon"][..], "soon"),
        (&["explain", "XYZ001"][..], "no rule has the code XYZ001"),
        (
            &["check", "--only", "noses"][..],
            "no check is called noses",
        ),
        (&["check", "--policy", &policy][..], "policy.toml:3: "),
        (&["fix", "--policy", &policy][..], "policy.toml:3: "),
    ] {
        let output = sexton(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let complaint = stderr(&output);
        assert!(complaint.contains(named), "{args:?}: {complaint}");
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn every_rule_is_explained() {
    let list = stdout(&sexton(&["explain"]));
    for rule in sexton_analysis::rules::RULES {
        assert!(list.contains(rule.code), "{}", rule.code);
        let page = stdout(&sexton(&["explain", &rule.code.to_lowercase()]));
        for part in ["Means:", "Not this:", "By hand:", "Next:", "Needs:"] {
            assert!(page.contains(part), "{} has no {part}", rule.code);
        }
        assert!(
            page.lines().all(|line| line.chars().count() <= 80),
            "{page}"
        );
    }
}

/// On a narrow terminal no line is wrapped, so that lines are drawn over and not repeated.
#[test]
fn a_watch_shows_sensors_coming_up_and_a_preliminary_verdict() {
    let shown = terminal::watched(&["diagnose", "--for", "16s"], (60, 24));
    let lines: Vec<&str> = shown.split(['\r', '\n']).collect();
    let text = |line: &&str| line.replace("\x1b[K", "").replace("\x1b[A", "");
    let lines: Vec<String> = lines.iter().map(text).collect();
    assert!(
        lines.iter().all(|line| line.chars().count() < 60),
        "{shown}"
    );
    let has = |start: &str| lines.iter().any(|line| line.starts_with(start));
    assert!(has("Watching 0s of 16s, "), "{shown}");
    assert!(has("Starting: ") || has("Watching 1s of 16s, "), "{shown}");
    assert!(has("So far: "), "{shown}");
    let left = shown.rsplit("Watching").next().expect("the last block");
    assert!(left.ends_with("\x1b[K"), "nothing stays: {left:?}");
}
