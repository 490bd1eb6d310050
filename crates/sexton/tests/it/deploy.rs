//! The unit of the agent: how exposed systemd finds it, and that it says why it may what it may.

use std::collections::BTreeSet;
use std::process::Command;

const UNIT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../deploy/systemd/sexton-agent.service"
);

/// The most that `systemd-analyze security` may say, in tenths.
const MOST_EXPOSED: &str = "25";

#[test]
fn the_unit_is_confined() {
    let security = Command::new("systemd-analyze")
        .args(["security", "--no-pager", "--offline=true"])
        .arg(format!("--threshold={MOST_EXPOSED}"))
        .arg(UNIT)
        .output()
        .expect("systemd-analyze is part of systemd, which the set-up installs");
    let said = String::from_utf8_lossy(&security.stdout);
    assert!(said.contains("Overall exposure level"), "{security:?}");
    assert!(security.status.success(), "{said}");
}

#[test]
fn each_capability_has_its_reason() {
    let unit = std::fs::read_to_string(UNIT).expect("the unit");
    let set = |key: &str| -> BTreeSet<String> {
        let line = unit.lines().find_map(|line| line.strip_prefix(key));
        let names = line.expect("it is set").split_whitespace();
        names.map(str::to_owned).collect()
    };
    let granted = set("CapabilityBoundingSet=");
    assert_eq!(granted, set("AmbientCapabilities="));
    let reasons = unit
        .lines()
        .filter_map(|line| line.strip_prefix("#   CAP_"));
    let explained = reasons.filter_map(|line| {
        let (name, reason) = line.split_once(' ')?;
        (!reason.trim().is_empty()).then(|| format!("CAP_{name}"))
    });
    assert_eq!(granted, explained.collect());
}
