//! Writes rules and their tests as the YAML that Prometheus and promtool read.

use std::fmt::Write as _;

use super::alerts::{Alert, INSTANCE, JOB};
use super::{RULES_FILE, TESTS_FILE};

const HEAD: &str =
    "# Printed from the definitions of sexton by `cargo xtask docs`; change those instead.\n";

pub(super) fn rules(recorded: &[(&str, &str)], alerts: &[Alert]) -> String {
    let mut out = String::from(HEAD);
    let _ = writeln!(out, "# Tested by: promtool test rules {TESTS_FILE}");
    // One group: alerts see in the same evaluation what was recorded before them.
    out.push_str("groups:\n  - name: sexton\n    rules:\n");
    for (name, expr) in recorded {
        let _ = writeln!(
            out,
            "      - record: {name}\n        expr: {}",
            quoted(expr)
        );
    }
    for alert in alerts {
        let Alert {
            name,
            hold,
            runbook,
            ..
        } = alert;
        let _ = writeln!(out, "      - alert: {name}");
        let _ = writeln!(out, "        expr: {}", quoted(&alert.expr));
        if *hold != "0s" {
            let _ = writeln!(out, "        for: {hold}");
        }
        let _ = writeln!(out, "        labels:");
        let _ = writeln!(out, "          severity: {}", quoted(alert.severity));
        let _ = writeln!(out, "        annotations:");
        let _ = writeln!(out, "          summary: {}", quoted(&alert.summary));
        let _ = writeln!(out, "          runbook_url: {runbook}");
    }
    out
}

pub(super) fn tests(alerts: &[Alert]) -> String {
    let mut out = String::from(HEAD);
    let _ = writeln!(
        out,
        "rule_files:\n  - {RULES_FILE}\nevaluation_interval: 30s\ntests:"
    );
    for alert in alerts {
        test(&mut out, alert);
    }
    out
}

/// Not yet, then it fires, then it is over.
fn test(out: &mut String, alert: &Alert) {
    let proof = &alert.proof;
    let _ = writeln!(out, "  - name: {}", alert.name);
    let _ = writeln!(out, "    interval: 30s\n    input_series:");
    for (series, values) in &proof.series {
        let _ = writeln!(out, "      - series: {}", quoted(&of_node(series)));
        let _ = writeln!(out, "        values: {}", quoted(values));
    }
    let _ = writeln!(out, "    alert_rule_test:");
    for (at, fires) in [
        (proof.quiet_at, false),
        (proof.fires_at, true),
        (proof.resolved_at, false),
    ] {
        let _ = writeln!(out, "      - eval_time: {at}");
        let _ = writeln!(out, "        alertname: {}", alert.name);
        if !fires {
            continue;
        }
        let _ = writeln!(out, "        exp_alerts:\n          - exp_labels:");
        let own = [
            ("instance", INSTANCE.to_owned()),
            ("job", JOB.to_owned()),
            ("severity", proof.severity.to_owned()),
        ];
        for (name, value) in own.iter().chain(&proof.labels) {
            let _ = writeln!(out, "              {name}: {}", quoted(value));
        }
        let _ = writeln!(out, "            exp_annotations:");
        let _ = writeln!(out, "              summary: {}", quoted(&proof.summary));
        let _ = writeln!(out, "              runbook_url: {}", alert.runbook);
    }
}

/// A series with the labels that a scrape adds.
fn of_node(series: &str) -> String {
    let added = format!("instance=\"{INSTANCE}\",job=\"{JOB}\"");
    match series.strip_suffix('}') {
        Some(open) => format!("{open},{added}}}"),
        None => format!("{series}{{{added}}}"),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
