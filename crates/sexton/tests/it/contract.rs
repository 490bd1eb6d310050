//! Keys of the JSON that other programs may rely on, on this very machine.

use serde_json::Value;

use crate::command::{sexton, stdout};

fn json(args: &[&str]) -> (Value, Option<i32>) {
    let output = sexton(args);
    let value = serde_json::from_str(&stdout(&output)).expect("it is JSON");
    (value, output.status.code())
}

fn check_keys(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "no `{key}` in {value:#}");
    }
}

#[test]
fn zombies_keeps_its_contract() {
    let (census, code) = json(&["zombies", "--json", "--all"]);
    assert_eq!(census["schema"], "sexton.zombies/1");
    let totals = [
        "live",
        "dying",
        "total",
        "kernel_total",
        "memory_bytes",
        "origins",
        "files",
        "cgroups",
    ];
    check_keys(&census, &totals);
    check_keys(&census, &["method", "gaps"]);
    for origin in census["origins"].as_array().expect("a list") {
        check_keys(
            origin,
            &[
                "origin",
                "unit",
                "image",
                "live",
                "dying",
                "pages",
                "pins",
                "oldest_seconds",
            ],
        );
        if origin["pins"].is_object() {
            check_keys(&origin["pins"], &["file", "shmem", "anon", "other"]);
        }
    }
    for file in census["files"].as_array().expect("a list") {
        check_keys(
            file,
            &["path", "device", "inode", "kind", "zombies", "pages"],
        );
    }
    for cgroup in census["cgroups"].as_array().expect("a list") {
        check_keys(cgroup, &["path", "state", "pages", "pinned_by"]);
    }
    let expected = match (census["method"].as_str(), census["dying"].as_u64()) {
        (Some("bpf-walk"), Some(1..)) => 1,
        (Some("bpf-walk"), _) => 0,
        _ => 3,
    };
    assert_eq!(code, Some(expected));
}

#[test]
fn the_long_and_the_short_way_to_json_agree() {
    let (census, _) = json(&["zombies", "--format", "json"]);
    assert_eq!(census["schema"], "sexton.zombies/1");
    assert!(census.get("cgroups").is_none(), "only with --all");
}

#[test]
fn top_limits_every_list() {
    let (census, _) = json(&["zombies", "--json", "--top", "1"]);
    for list in ["origins", "units", "files"] {
        assert!(
            census[list].as_array().expect("a list").len() <= 1,
            "{list}"
        );
    }
}

#[test]
fn doctor_keeps_its_contract() {
    let (checkup, code) = json(&["doctor", "--json"]);
    assert_eq!(checkup["schema"], "sexton.doctor/1");
    check_keys(&checkup, &["state", "kernel", "user", "ground", "sensors"]);
    for sensor in checkup["sensors"].as_array().expect("a list") {
        check_keys(sensor, &["sensor", "watches", "state", "sights"]);
        for sight in sensor["sights"].as_array().expect("a list") {
            check_keys(sight, &["what", "state", "because", "remedy"]);
        }
    }
    assert_eq!(code, Some(if checkup["state"] == "sees" { 0 } else { 3 }));
}
