//! What the agent answers to a scrape: the series that were kept as records passed, and the
//! status.

use std::sync::{Arc, Mutex, PoisonError};

use sexton_agent::{Status, Tap};
use sexton_export::push::Stats;
use sexton_export::{Finding, FleetReports, Forecast, Format, Metrics, Own, Sensor};
use sexton_host::clock;

/// The series of this node, shared by the agent's loop and those who scrape.
#[derive(Clone)]
pub struct Scrape(Arc<Mutex<Metrics>>);

impl Scrape {
    /// None yet.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Metrics::new(clock::now()))))
    }

    /// What the agent shows its records to.
    pub fn tap(&self) -> Tap {
        let metrics = Arc::clone(&self.0);
        Box::new(move |records| {
            let mut metrics = metrics.lock().unwrap_or_else(PoisonError::into_inner);
            records.iter().for_each(|record| metrics.take(record));
        })
    }

    /// The answer in the format that the client accepts, and its content type.
    pub fn answer(&self, status: &Status, accept: Option<&str>) -> (&'static str, String) {
        let format = Format::accepted(accept);
        let own = own(status);
        let mut metrics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = metrics.render(&own, format, clock::now());
        (format.content_type(), text)
    }
}

/// Figures of the agent itself.
pub fn own(status: &Status) -> Own {
    let sensors = status.sensors.iter().filter(|(_, it)| it.state != "off");
    let sensors = sensors.map(|(name, sensor)| Sensor {
        name: name.clone(),
        is_up: sensor.state == "on",
        is_shed: sensor.state == "shed",
    });
    let findings = status.findings.iter().map(|finding| Finding {
        code: finding.code.clone(),
        subject: finding.subject.clone(),
        severity: finding.severity.clone(),
        since_seconds: finding.opened_wall_ns / 1_000_000_000,
    });
    let forecasts = status.forecasts.iter().map(|forecast| Forecast {
        what: forecast.what.clone(),
        limit: forecast.limit.clone(),
        seconds: forecast.in_days * 86_400.0,
    });
    let exports = status.exports.iter().map(|export| Stats {
        channel: export.channel.clone(),
        n_requests: export.requests,
        n_sent: export.sent,
        sent_bytes: export.sent_bytes,
        n_refused: export.refused,
        n_dropped: export.dropped,
        n_cut: export.cut,
        n_folded: export.folded,
        lag_seconds: export.lag_seconds,
        trouble: export.trouble.clone(),
    });
    Own {
        version: status.version.clone(),
        cpu_limit_ratio: status.cpu_limit_ratio,
        memory_limit_bytes: status.memory_limit_bytes,
        ring_bytes: status.ring_bytes,
        ring_limit_bytes: status.ring_max_bytes,
        records: status.records,
        stack_samples: status.samples,
        is_recording: status.disk_trouble.is_none(),
        incidents: status.incidents,
        incident_bytes: status.incident_bytes,
        state: status.state.clone(),
        judged_seconds: status.judged_wall_ns.map(|ns| ns as f64 / 1e9),
        judge_seconds: status.judge_ns as f64 / 1e9,
        sensors: sensors.collect(),
        findings: findings.collect(),
        forecasts: forecasts.collect(),
        fleet: status.fleet.as_ref().map(|fleet| FleetReports {
            is_up: fleet.trouble.is_none(),
            sent: fleet.sent,
            dropped: fleet.dropped,
            failed: fleet.failed,
            waiting: fleet.waiting,
        }),
        exports: exports.collect(),
    }
}
