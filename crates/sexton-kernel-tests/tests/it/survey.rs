//! One look at the units of a real systemd names what failed and what restarts.

use std::time::Duration;

use serde_json::Value;
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::systemd::Systemd;

const SURVEY: &str = env!("CARGO_BIN_EXE_unit-survey");

const UNITS: [(&str, &str); 2] = [
    (
        "looper.service",
        "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=100ms\nExecStart=/bin/false\n",
    ),
    (
        "fails.service",
        "[Service]\nExecStart=/bin/sh -c \"exit 7\"\n",
    ),
];

const JOB: &str = r#"
systemctl start --no-block looper.service || true
systemctl start fails.service || true
for i in $(seq 100); do
  n=$(systemctl show --value -p NRestarts looper.service)
  if [ "$n" -ge 7 ]; then break; fi
  sleep 0.1
done
systemctl show --value -p NRestarts looper.service > before
./unit-survey > survey 2> trouble || true
systemctl show --value -p NRestarts looper.service > after
systemctl stop looper.service || true
"#;

#[test]
#[ignore = "needs systemd: run cargo xtask test kernel"]
fn failures_and_restarts_are_seen_at_once() {
    require(Need::Systemd);
    let systemd = Systemd::run(&UNITS, &[SURVEY], JOB, Duration::from_secs(90)).expect("a run");
    let number = |file: &str| -> u64 {
        let text = systemd.read(file).expect("the job wrote it");
        text.trim().parse().expect("a number")
    };
    let trouble = systemd.read("trouble").expect("the job wrote it");
    assert_eq!(trouble, "");
    let survey: Value =
        serde_json::from_str(&systemd.read("survey").expect("a survey")).expect("JSON");
    assert!(
        survey["n_units"].as_u64().is_some_and(|n| n > 20),
        "{survey}"
    );
    assert_eq!(survey["n_unasked"], 0);
    let failed = survey["failed"].as_array().expect("a list");
    assert!(failed.contains(&"fails.service".into()), "{survey}");
    let restarts = survey["restarts"].as_array().expect("a list").iter();
    let looper = restarts
        .filter(|row| row[0] == "looper.service")
        .filter_map(|row| row[1].as_u64())
        .next();
    let looper = looper.unwrap_or_else(|| panic!("it restarts: {survey}"));
    assert!(
        (number("before")..=number("after")).contains(&looper),
        "{survey}"
    );
}
