//! Figures of the agent itself: its verdict and findings, its sensors, what it uses.

use crate::exposition::Out;
use crate::push::Stats;

/// Findings that have a series of their own, and forecasts.
const MAX_FINDINGS: usize = 100;
const MAX_FORECASTS: usize = 20;

/// Sensors that have a series of their own. There are fewer.
const MAX_SENSORS: usize = 64;

/// Longer names of subjects are cut.
const MAX_SUBJECT_CHARS: usize = 120;

const STATES: [&str; 4] = ["cause-found", "symptoms-only", "healthy", "blind"];
const SEVERITIES: [&str; 4] = ["critical", "serious", "warning", "note"];

/// What an agent says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Own {
    /// The version of sexton.
    pub version: String,
    /// The most of a core that it may use.
    pub cpu_limit_ratio: f64,
    /// The most memory that it may have.
    pub memory_limit_bytes: u64,
    /// Size of the ring.
    pub ring_bytes: u64,
    /// The most that the ring may have.
    pub ring_limit_bytes: u64,
    /// Records that were kept.
    pub records: u64,
    /// Samples of stacks that were kept.
    pub stack_samples: u64,
    /// Whether it can write what it sees.
    pub is_recording: bool,
    /// Incidents that are kept.
    pub incidents: usize,
    /// Their size.
    pub incident_bytes: u64,
    /// The verdict in one word; none before the first.
    pub state: Option<String>,
    /// When the node was last judged, in seconds since 1970.
    pub judged_seconds: Option<f64>,
    /// How long that took.
    pub judge_seconds: f64,
    /// The sensors.
    pub sensors: Vec<Sensor>,
    /// Findings that are open.
    pub findings: Vec<Finding>,
    /// What passes which limit when.
    pub forecasts: Vec<Forecast>,
    /// Reports to the bucket of the fleet; none when there are none.
    pub fleet: Option<FleetReports>,
    /// How sending to receivers goes.
    pub exports: Vec<Stats>,
}

/// Reports to the bucket of the fleet.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FleetReports {
    /// Whether the last attempt to send worked.
    pub is_up: bool,
    /// Reports that were sent.
    pub sent: u64,
    /// Reports that were dropped.
    pub dropped: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Reports that wait.
    pub waiting: usize,
}

/// A sensor that is not turned off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sensor {
    /// Its name.
    pub name: String,
    /// Whether it sees.
    pub is_up: bool,
    /// Whether it was stopped to stay within the budget.
    pub is_shed: bool,
}

/// An open finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The code of the rule.
    pub code: String,
    /// What it is about.
    pub subject: String,
    /// How bad it is.
    pub severity: String,
    /// When it opened, in seconds since 1970.
    pub since_seconds: u64,
}

/// When a limit is passed at the present rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// What grows.
    pub what: String,
    /// Which limit it passes.
    pub limit: String,
    /// In this number of seconds.
    pub seconds: f64,
}

impl Own {
    pub(crate) fn write(&self, out: &mut impl Out) {
        out.gauge("sexton_build_info", "the version of the agent");
        out.line(
            "sexton_build_info",
            [("version", self.version.as_str())],
            1.0,
        );
        for (name, help, value) in self.plain() {
            out.gauge(name, help);
            out.line(name, [], value);
        }
        for (name, help, value) in [
            (
                "sexton_records_total",
                "records that were kept",
                self.records,
            ),
            (
                "sexton_stack_samples_kept_total",
                "samples of stacks that were kept",
                self.stack_samples,
            ),
        ] {
            out.counter(name, help);
            out.line(name, [], value as f64);
        }
        self.write_sensors(out);
        self.write_verdict(out);
        self.write_findings(out);
        self.write_forecasts(out);
        self.write_fleet(out);
        self.write_exports(out);
    }

    /// Values without labels: name, help, value.
    fn plain(&self) -> [(&'static str, &'static str, f64); 9] {
        [
            (
                "sexton_agent_cpu_limit_ratio",
                "the most of one core that the agent may use",
                self.cpu_limit_ratio,
            ),
            (
                "sexton_agent_memory_limit_bytes",
                "the most memory that the agent may have",
                self.memory_limit_bytes as f64,
            ),
            (
                "sexton_ring_bytes",
                "size of the ring",
                self.ring_bytes as f64,
            ),
            (
                "sexton_ring_limit_bytes",
                "the most that the ring may have",
                self.ring_limit_bytes as f64,
            ),
            (
                "sexton_recording_up",
                "1 while the agent can write what it sees, else 0",
                flag(self.is_recording),
            ),
            (
                "sexton_incidents",
                "incidents that are kept",
                self.incidents as f64,
            ),
            (
                "sexton_incident_bytes",
                "size of the incidents that are kept",
                self.incident_bytes as f64,
            ),
            (
                "sexton_judge_seconds",
                "how long the last judgement took",
                self.judge_seconds,
            ),
            (
                "sexton_findings_open",
                "findings that are open",
                self.findings.len() as f64,
            ),
        ]
    }

    fn write_sensors(&self, out: &mut impl Out) {
        let sensors = || self.sensors.iter().take(MAX_SENSORS);
        out.gauge(
            "sexton_sensor_up",
            "1 when a sensor sees, 0 when it is blind or stopped; none when it is turned off",
        );
        for sensor in sensors() {
            let labels = [("sensor", sensor.name.as_str())];
            out.line("sexton_sensor_up", labels, flag(sensor.is_up));
        }
        out.gauge(
            "sexton_sensor_shed",
            "1 when the agent stopped a sensor to stay within its budget, else 0",
        );
        for sensor in sensors() {
            let labels = [("sensor", sensor.name.as_str())];
            out.line("sexton_sensor_shed", labels, flag(sensor.is_shed));
        }
    }

    fn write_verdict(&self, out: &mut impl Out) {
        let Some(state) = &self.state else { return };
        out.gauge(
            "sexton_verdict",
            "1 for the state of the node's verdict, 0 for the others",
        );
        for known in STATES {
            out.line("sexton_verdict", [("state", known)], flag(known == state));
        }
        let Some(judged) = self.judged_seconds else {
            return;
        };
        let name = "sexton_judged_timestamp_seconds";
        out.gauge(name, "when the node was last judged, in seconds since 1970");
        out.line(name, [], judged);
    }

    fn write_findings(&self, out: &mut impl Out) {
        let rank = |severity: &str| SEVERITIES.iter().position(|known| *known == severity);
        let mut shown: Vec<&Finding> = self.findings.iter().collect();
        shown.sort_by_key(|finding| (rank(&finding.severity), finding.since_seconds));
        shown.truncate(MAX_FINDINGS);
        if shown.is_empty() {
            return;
        }
        out.gauge(
            "sexton_finding",
            "1 for each open finding, the gravest first; at most 100",
        );
        for finding in shown {
            let since = finding.since_seconds.to_string();
            let subject = cut(&finding.subject);
            let labels = [
                ("code", finding.code.as_str()),
                ("subject", &subject),
                ("severity", &finding.severity),
                ("since", &since),
            ];
            out.line("sexton_finding", labels, 1.0);
        }
    }

    fn write_forecasts(&self, out: &mut impl Out) {
        if self.forecasts.is_empty() {
            return;
        }
        let name = "sexton_forecast_seconds";
        out.gauge(
            name,
            "time until something passes a limit, if it grows on as it does",
        );
        for forecast in self.forecasts.iter().take(MAX_FORECASTS) {
            let (what, limit) = (cut(&forecast.what), cut(&forecast.limit));
            let labels = [("what", what.as_str()), ("limit", &limit)];
            out.line(name, labels, forecast.seconds);
        }
    }

    fn write_fleet(&self, out: &mut impl Out) {
        let Some(fleet) = &self.fleet else { return };
        let name = "sexton_fleet_up";
        out.gauge(
            name,
            "1 while reports reach the bucket of the fleet, else 0",
        );
        out.line(name, [], flag(fleet.is_up));
        let name = "sexton_fleet_reports_waiting";
        out.gauge(name, "reports that wait in the spool for the bucket");
        out.line(name, [], fleet.waiting as f64);
        for (name, help, value) in [
            (
                "sexton_fleet_reports_sent_total",
                "reports that reached the bucket",
                fleet.sent,
            ),
            (
                "sexton_fleet_reports_dropped_total",
                "reports that were dropped because the spool was full",
                fleet.dropped,
            ),
            (
                "sexton_fleet_sends_failed_total",
                "attempts to send reports that failed",
                fleet.failed,
            ),
        ] {
            out.counter(name, help);
            out.line(name, [], value as f64);
        }
    }

    fn write_exports(&self, out: &mut impl Out) {
        if self.exports.is_empty() {
            return;
        }
        type Figure = (&'static str, &'static str, fn(&Stats) -> f64);
        let counters: [Figure; 6] = [
            (
                "sexton_export_sent_total",
                "windows that a receiver took, at least in part",
                |it| it.n_sent as f64,
            ),
            (
                "sexton_export_sent_bytes_total",
                "bytes of requests that a receiver took",
                |it| it.sent_bytes as f64,
            ),
            (
                "sexton_export_requests_total",
                "requests to a receiver",
                |it| it.n_requests as f64,
            ),
            (
                "sexton_export_refused_total",
                "requests that a receiver refused for good, and items that it left out",
                |it| it.n_refused as f64,
            ),
            (
                "sexton_export_dropped_total",
                "windows that were dropped: older than the receiver takes, or gone from the ring",
                |it| it.n_dropped as f64,
            ),
            (
                "sexton_export_folded_samples_total",
                "samples whose owner was folded into other",
                |it| it.n_folded as f64,
            ),
        ];
        for (name, help, figure) in counters {
            out.counter(name, help);
            for stats in &self.exports {
                out.line(name, [("channel", stats.channel.as_str())], figure(stats));
            }
        }
        let gauges: [Figure; 2] = [
            (
                "sexton_export_lag_seconds",
                "age of the last window that was sent or is waiting",
                |it| it.lag_seconds,
            ),
            (
                "sexton_export_up",
                "1 while a receiver takes what is sent, else 0",
                |it| flag(it.trouble.is_none()),
            ),
        ];
        for (name, help, figure) in gauges {
            out.gauge(name, help);
            for stats in &self.exports {
                out.line(name, [("channel", stats.channel.as_str())], figure(stats));
            }
        }
    }
}

fn flag(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SUBJECT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::exposition::Exposition;

    fn finding(i: u64, severity: &str) -> Finding {
        Finding {
            code: "MCG001".into(),
            subject: format!("/a\"{i}"),
            severity: severity.into(),
            since_seconds: i,
        }
    }

    fn written(own: &Own) -> String {
        let mut out = Exposition::new(Format::Text);
        own.write(&mut out);
        out.finish()
    }

    #[test]
    fn findings_are_bounded_and_the_gravest_come_first() {
        let mut own = Own {
            findings: (0..500).map(|i| finding(i, "warning")).collect(),
            ..Own::default()
        };
        own.findings.push(finding(500, "critical"));
        let text = written(&own);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("sexton_finding{"))
            .collect();
        assert_eq!(lines.len(), MAX_FINDINGS);
        assert_eq!(
            lines[0],
            r#"sexton_finding{code="MCG001",subject="/a\"500",severity="critical",since="500"} 1"#
        );
        assert!(text.contains("sexton_findings_open 501\n"), "{text}");
    }

    #[test]
    fn what_is_not_known_has_no_series() {
        let own = Own {
            sensors: vec![Sensor {
                name: "napi".into(),
                is_up: false,
                is_shed: true,
            }],
            ..Own::default()
        };
        let text = written(&own);
        assert!(!text.contains("sexton_verdict"), "{text}");
        assert!(!text.contains("sexton_fleet"), "{text}");
        assert!(!text.contains("sexton_finding{"), "{text}");
        assert!(
            text.contains("sexton_sensor_up{sensor=\"napi\"} 0\n"),
            "{text}"
        );
        assert!(
            text.contains("sexton_sensor_shed{sensor=\"napi\"} 1\n"),
            "{text}"
        );
    }
}
