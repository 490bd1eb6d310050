//! The agent's status in the text format of Prometheus.
//!
//! Series are bounded: sensors are a fixed set, and of open findings the gravest are shown;
//! `sexton_findings_open` counts all of them.

use std::fmt::Write as _;

use crate::status::Status;

/// Findings that have a series of their own.
const MAX_FINDINGS: usize = 100;

const STATES: [&str; 4] = ["cause-found", "symptoms-only", "healthy", "blind"];
const SEVERITIES: [&str; 4] = ["critical", "serious", "warning", "note"];

/// The status, as `/metrics` answers.
pub fn metrics(status: &Status) -> String {
    let mut out = Exposition::default();
    out.gauge("sexton_build_info", "the version of the agent");
    out.line("sexton_build_info", &[("version", &status.version)], 1.0);
    out.gauge(
        "sexton_agent_cpu_ratio",
        "the part of one core that the agent used in the last minute",
    );
    if let Some(ratio) = status.cpu_ratio {
        out.line("sexton_agent_cpu_ratio", &[], ratio);
    }
    for (name, help, value) in plain(status) {
        out.gauge(name, help);
        out.line(name, &[], value);
    }
    out.counter("sexton_records_total", "records that were kept");
    out.line("sexton_records_total", &[], status.records as f64);
    out.counter(
        "sexton_stack_samples_total",
        "samples of stacks that were kept",
    );
    out.line("sexton_stack_samples_total", &[], status.samples as f64);
    sensors(&mut out, status);
    verdict(&mut out, status);
    findings(&mut out, status);
    out.text
}

/// Values without labels: name, help, value.
fn plain(status: &Status) -> [(&'static str, &'static str, f64); 9] {
    [
        (
            "sexton_agent_cpu_limit_ratio",
            "the most that it may use",
            status.cpu_limit_ratio,
        ),
        (
            "sexton_agent_memory_bytes",
            "resident memory of the agent",
            status.memory_bytes as f64,
        ),
        (
            "sexton_agent_memory_limit_bytes",
            "the most that it may have",
            status.memory_limit_bytes as f64,
        ),
        (
            "sexton_ring_bytes",
            "size of the ring",
            status.ring_bytes as f64,
        ),
        (
            "sexton_ring_limit_bytes",
            "the most that the ring may have",
            status.ring_max_bytes as f64,
        ),
        (
            "sexton_incidents",
            "incidents that are kept",
            status.incidents as f64,
        ),
        (
            "sexton_incident_bytes",
            "size of the incidents that are kept",
            status.incident_bytes as f64,
        ),
        (
            "sexton_judge_seconds",
            "how long the last judgement took",
            status.judge_ns as f64 / 1e9,
        ),
        (
            "sexton_findings_open",
            "findings that are open",
            status.findings.len() as f64,
        ),
    ]
}

fn sensors(out: &mut Exposition, status: &Status) {
    out.gauge(
        "sexton_sensor_up",
        "1 when a sensor sees, 0 when it is blind, off or shed",
    );
    for (name, sensor) in &status.sensors {
        let is_up = f64::from(u8::from(sensor.state == "on"));
        out.line("sexton_sensor_up", &[("sensor", name)], is_up);
    }
}

fn verdict(out: &mut Exposition, status: &Status) {
    out.gauge("sexton_verdict", "1 for the state of the node's verdict");
    let Some(state) = &status.state else { return };
    for known in STATES {
        let is_it = f64::from(u8::from(known == state));
        out.line("sexton_verdict", &[("state", known)], is_it);
    }
    out.gauge(
        "sexton_judged_timestamp_seconds",
        "when the node was last judged",
    );
    let judged = status.judged_wall_ns.unwrap_or(0) as f64 / 1e9;
    out.line("sexton_judged_timestamp_seconds", &[], judged);
}

fn findings(out: &mut Exposition, status: &Status) {
    out.gauge(
        "sexton_finding",
        "1 for each open finding, the gravest first; at most 100",
    );
    let rank = |severity: &str| SEVERITIES.iter().position(|known| *known == severity);
    let mut shown: Vec<_> = status.findings.iter().collect();
    shown.sort_by_key(|finding| (rank(&finding.severity), finding.opened_wall_ns));
    for finding in shown.into_iter().take(MAX_FINDINGS) {
        let since = (finding.opened_wall_ns / 1_000_000_000).to_string();
        let labels = [
            ("code", finding.code.as_str()),
            ("subject", &finding.subject),
            ("severity", &finding.severity),
            ("since", &since),
        ];
        out.line("sexton_finding", &labels, 1.0);
    }
}

/// Writes the format.
#[derive(Default)]
struct Exposition {
    text: String,
}

impl Exposition {
    fn gauge(&mut self, name: &str, help: &str) {
        self.head(name, help, "gauge");
    }

    fn counter(&mut self, name: &str, help: &str) {
        self.head(name, help, "counter");
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        let _ = writeln!(self.text, "{name}{labels} {value}");
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{FindingStatus, SensorStatus};

    fn finding(i: usize, severity: &str) -> FindingStatus {
        FindingStatus {
            id: format!("MCG001:/a{i}"),
            code: "MCG001".into(),
            subject: format!("/a\"{i}"),
            severity: severity.into(),
            title: "a pile".into(),
            opened_wall_ns: i as u64,
        }
    }

    #[test]
    fn series_are_bounded_and_the_gravest_come_first() {
        let mut status = Status {
            findings: (0..500).map(|i| finding(i, "warning")).collect(),
            ..Status::default()
        };
        status.findings.push(finding(500, "critical"));
        let text = metrics(&status);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("sexton_finding{"))
            .collect();
        assert_eq!(lines.len(), MAX_FINDINGS);
        assert_eq!(
            lines[0],
            r#"sexton_finding{code="MCG001",subject="/a\"500",severity="critical",since="0"} 1"#
        );
        assert!(text.contains("sexton_findings_open 501\n"), "{text}");
    }

    #[test]
    fn what_is_not_known_has_no_series() {
        let mut status = Status::default();
        let blind = SensorStatus {
            state: "blind".into(),
            why: None,
        };
        status.sensors.insert("napi".into(), blind);
        let text = metrics(&status);
        assert!(!text.contains("\nsexton_agent_cpu_ratio "), "{text}");
        assert!(!text.contains("sexton_verdict{"), "{text}");
        assert!(
            text.contains("sexton_sensor_up{sensor=\"napi\"} 0\n"),
            "{text}"
        );
    }
}
