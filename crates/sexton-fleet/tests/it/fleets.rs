//! Invented fleets with a known truth.

use serde_json::Value;

use crate::support::*;

fn labels(answer: &Value) -> Vec<&str> {
    let differences = answer["differences"].as_array().unwrap();
    differences
        .iter()
        .filter_map(|difference| difference["label"].as_str())
        .collect()
}

#[test]
fn the_founding_incident() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 1000, 6, 1, "founding");
    let (exit, answer) = compare(lake.path(), &["--bad", "nic_resets > 0"]);
    assert_eq!(exit, 1);
    let first = &answer["differences"][0];
    assert_eq!(
        first["label"],
        "ecs.service active",
        "{:?}",
        labels(&answer)
    );
    assert!(first["folded_under"].is_null());
    let of = |label: &str| {
        let differences = answer["differences"].as_array().unwrap();
        let found = differences
            .iter()
            .find(|difference| difference["label"] == label);
        found.unwrap_or_else(|| panic!("{label} is not in {:?}", labels(&answer)))
    };
    // The zone is explained by the unit, and so is the image that brings it.
    for label in ["zone = us-east-1a", "image = ami-0a11ml2611"] {
        assert_eq!(of(label)["folded_under"], "ecs.service active", "{label}");
    }
    assert_eq!(of("zone = us-east-1a")["role"], "spared");
    // That zone has the image and not the unit.
    let odd = &first["exceptions"][0];
    assert_eq!(odd["group"], "zone = us-east-1a");
    assert_eq!(odd["has"], "image = ami-0a11ml2611");
    assert_eq!(odd["nodes_with_cause"], 0);
    // It was there before the trouble.
    assert!(
        first["before"].as_u64() > Some(100) && first["after"] == 0,
        "{first}"
    );
    let text = stdout(&fleet(&[
        "compare",
        "--lake",
        lake.path().to_str().unwrap(),
    ]));
    assert!(text.contains("1. ecs.service active"), "{text}");
    assert!(
        text.contains("Spared: zone = us-east-1a has image = ami-0a11ml2611"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn planted_causes_come_first() {
    let mut missed = Vec::new();
    for seed in 1..=12 {
        let lake = tempfile::tempdir().unwrap();
        let truth = simulate(lake.path(), 800, 2, seed, "random");
        let (_, answer) = compare(lake.path(), &[]);
        if !is_found(&answer, &truth) {
            missed.push((
                seed,
                truth["cause"].clone(),
                labels(&answer).first().map(|s| (*s).to_owned()),
            ));
        }
    }
    assert!(missed.len() <= 1, "{missed:#?}");
}

#[test]
fn fleets_without_a_cause_report_nothing() {
    let mut reported = Vec::new();
    for seed in 1..=12 {
        let lake = tempfile::tempdir().unwrap();
        simulate(lake.path(), 400, 2, seed, "none");
        let (exit, answer) = compare(lake.path(), &[]);
        if exit != 0 {
            reported.push((seed, labels(&answer).join("; ")));
        }
    }
    assert!(reported.len() <= 1, "{reported:#?}");
}

#[test]
fn ten_nodes_are_not_enough() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 10, 4, 3, "founding");
    let (exit, answer) = compare(lake.path(), &[]);
    assert_eq!(exit, 3, "{answer}");
    assert!(
        answer["too_few"]["nodes_needed"].as_u64() > Some(10),
        "{answer}"
    );
    let text = stdout(&fleet(&[
        "compare",
        "--lake",
        lake.path().to_str().unwrap(),
    ]));
    assert!(text.contains("NOT ENOUGH NODES"), "{text}");
}

#[test]
fn sql_counts_what_was_written() {
    let lake = tempfile::tempdir().unwrap();
    let truth = simulate(lake.path(), 300, 5, 2, "founding");
    let lake = lake.path().to_str().unwrap();
    let count = |query: &str| {
        let output = fleet(&["sql", query, "--lake", lake, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        json(&output)[0]["n"].as_u64().unwrap()
    };
    assert_eq!(
        Some(count("SELECT count(*) AS n FROM reports")),
        truth["n_reports"].as_u64()
    );
    assert_eq!(count("SELECT count(DISTINCT node) AS n FROM reports"), 300);
    let active = "SELECT count(DISTINCT node) AS n FROM units WHERE unit = 'ecs.service' AND state = 'active'";
    assert_eq!(Some(count(active)), truth["n_cause"].as_u64());
    let output = fleet(&["sql", "SELECT nonsense FROM reports", "--lake", lake]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("nonsense"), "{}", stderr(&output));
}
