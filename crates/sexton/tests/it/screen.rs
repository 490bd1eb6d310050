//! The answer in one screen, on a terminal of 80x24, on one of 60 columns, and in a pipe.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sexton_testkit::{TempTree, check_snapshot};

use crate::command::{SEXTON, stderr, stdout};
use crate::golden::{root, write_blind, write_without_root};
use crate::terminal::shown;

/// What is on a screen, by name: a bundle below the root of the tree.
const SCREENS: [(&str, &str); 4] = [
    ("leak", "fixtures/5.10-debian12/lab-plain-unit-v1"),
    (
        "founding-inner-loop",
        "fixtures/6.18-debian12/founding-inner-loop",
    ),
    ("healthy", "fixtures/7.2-debian12/lab-healthy-live-v2"),
    ("symptoms-only", "fixtures/6.18-debian12/saturated-core"),
];

const MOST_WORDS: usize = 25;
const PLAIN: [(&str, &str); 1] = [("NO_COLOR", "1")];

fn piped(folder: &Path, args: &[&str]) -> String {
    let output = Command::new(SEXTON)
        .args(args)
        .current_dir(folder)
        .output()
        .expect("the binary runs");
    assert_eq!(stderr(&output), "", "{args:?}");
    stdout(&output)
}

/// Compares one screen in all three ways with what was kept.
fn check_screen(folder: &Path, name: &str, bundle: &str) {
    let args = ["diagnose", bundle];
    let wide = shown(folder, &args, (80, 24), &PLAIN);
    let narrow = shown(folder, &args, (60, 24), &PLAIN);
    let pipe = piped(folder, &args);
    for (screen, width) in [(&wide, 80), (&narrow, 60), (&pipe, 80)] {
        let n_rows: usize = screen
            .lines()
            .map(|line| line.chars().count().div_ceil(width).max(1))
            .sum();
        assert!(n_rows < 24, "{name} takes {n_rows} rows:\n{screen}");
    }
    check_snapshot!(format!("screens/{name}-80x24.txt"), wide);
    check_snapshot!(format!("screens/{name}-60.txt"), narrow);
    check_snapshot!(format!("screens/{name}-pipe.txt"), pipe);
}

#[test]
fn screens_are_as_they_were_looked_at() {
    for (name, bundle) in SCREENS {
        check_screen(&root(), name, bundle);
    }
    let made = TempTree::new();
    unpack_drill(made.path());
    check_screen(made.path(), "drill", ".");
    write_blind(&made.path().join("blind.bundle"));
    check_screen(made.path(), "blind", "blind.bundle");
    write_without_root(&made.path().join("unprivileged.bundle"));
    check_screen(made.path(), "no-root", "unprivileged.bundle");
}

fn unpack_drill(to: &Path) {
    let archive = root().join("fixtures/6.18-debian12/drill/recording.tar.gz");
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(to)
        .status();
    assert!(unpacked.expect("tar is there").success());
}

fn bundles() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("fixtures")];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).expect("a folder").flatten();
        let inside = entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir());
        match folder.join("bundle.json").is_file() {
            true => found.push(folder),
            false => folders.extend(inside),
        }
    }
    found.sort();
    found
}

/// The title is read at a glance, and the answer without scrolling, whatever the node has.
#[test]
fn every_recording_is_answered_in_one_screen() {
    let bundles = bundles();
    assert!(bundles.len() > 30, "{}", bundles.len());
    for bundle in bundles {
        let path = bundle.to_str().expect("text");
        let json = piped(&root(), &["diagnose", path, "--json"]);
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let headline = json["verdict"]["headline"].as_str().expect("a headline");
        let n_words = headline.split_whitespace().count();
        assert!(n_words <= MOST_WORDS, "{n_words} words, {path}: {headline}");
        assert!(!headline.ends_with('…'), "{path}: {headline}");
        let screen = piped(&root(), &["diagnose", path]);
        let n_lines = screen.lines().count();
        assert!(n_lines < 24, "{n_lines} lines, {path}:\n{screen}");
    }
}

#[test]
fn long_text_goes_through_the_pager_and_short_text_does_not() {
    let (_, bundle) = SCREENS[0];
    let pager = [("PAGER", "sed s/^/:/"), ("NO_COLOR", "1")];
    let full = shown(&root(), &["diagnose", bundle, "--full"], (80, 24), &pager);
    assert!(full.lines().all(|line| line.starts_with(':')), "{full}");
    let plain = ["diagnose", bundle, "--full", "--no-pager"];
    let plain = shown(&root(), &plain, (80, 24), &pager);
    assert!(!plain.contains("\n:"), "{plain}");
    let short = shown(&root(), &["diagnose", bundle], (80, 24), &pager);
    assert!(!short.starts_with(':'), "{short}");
    let missing = [("PAGER", "no-such-pager 2>/dev/null"), ("NO_COLOR", "1")];
    let shown = shown(&root(), &["diagnose", bundle, "--full"], (80, 24), &missing);
    assert!(shown.starts_with("ROOT CAUSE FOUND"), "{shown}");
}
