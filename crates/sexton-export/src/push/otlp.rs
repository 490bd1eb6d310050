//! OTLP over HTTP: protobuf.

use prost::Message as _;
use sexton_profile::export::otlp::{SCOPE, encode};
use sexton_profile::proto::otlp::{InstrumentationScope, KeyValue, Resource};
use sexton_profile::window::WindowProfile;

use super::load::Load;
use super::logs::LogLine;
use super::messages::{
    ExportAnswer, Gauge, Kind, LogRecord, LogsData, Metric, MetricsData, NumberDataPoint,
    ResourceLogs, ResourceMetrics, ScopeLogs, ScopeMetrics, Sum,
};
use crate::points::{Point, Points};

/// Sums go on from where they were.
const CUMULATIVE: i32 = 2;

/// Stacks are cut to this: more frames are a loop.
const MAX_DEPTH: usize = 1_024;

/// The message, and how many stacks were cut.
pub(super) fn message(load: &Load, node: &str, version: &str) -> (Vec<u8>, u64) {
    let scope = Some(InstrumentationScope {
        name: SCOPE.to_owned(),
        version: version.to_owned(),
    });
    let resource = Some(Resource {
        attributes: vec![
            KeyValue::new("host.name", node),
            KeyValue::new("service.name", "sexton"),
            KeyValue::new("service.version", version),
        ],
    });
    match load {
        Load::Metrics {
            since_ns,
            at_ns,
            metrics,
        } => {
            let metrics = metrics.iter().map(|it| metric(it, *since_ns, *at_ns));
            let data = MetricsData {
                resource_metrics: vec![ResourceMetrics {
                    resource,
                    scope_metrics: vec![ScopeMetrics {
                        scope,
                        metrics: metrics.collect(),
                    }],
                }],
            };
            (data.encode_to_vec(), 0)
        }
        Load::Logs(lines) => {
            let data = LogsData {
                resource_logs: vec![ResourceLogs {
                    resource,
                    scope_logs: vec![ScopeLogs {
                        scope,
                        log_records: lines.iter().map(log_record).collect(),
                    }],
                }],
            };
            (data.encode_to_vec(), 0)
        }
        Load::Profiles(profiles) => {
            let (data, n_cut) = encode(profiles, version, MAX_DEPTH, attributes);
            (data.encode_to_vec(), n_cut)
        }
    }
}

/// How much a receiver left out of what it took, and why.
pub(super) fn left_out(answer: &[u8]) -> Option<(u64, String)> {
    let answer = ExportAnswer::decode(answer).ok()?;
    let partial = answer.partial_success?;
    let n = u64::try_from(partial.rejected).ok().filter(|n| *n > 0)?;
    Some((n, partial.error_message))
}

fn metric(points: &Points, since_ns: u64, at_ns: u64) -> Metric {
    let point = |point: &Point| NumberDataPoint {
        start_time_unix_nano: if points.is_counter { since_ns } else { 0 },
        time_unix_nano: at_ns,
        as_double: Some(point.value),
        attributes: point
            .labels
            .iter()
            .map(|(name, value)| KeyValue::new(name, value.as_str()))
            .collect(),
    };
    let data_points = points.points.iter().map(point).collect();
    Metric {
        name: points.name.to_owned(),
        description: points.help.to_owned(),
        // Names carry their unit already; one that is named again is appended twice by receivers.
        unit: String::new(),
        data: Some(match points.is_counter {
            true => Kind::Sum(Sum {
                data_points,
                aggregation_temporality: CUMULATIVE,
                is_monotonic: true,
            }),
            false => Kind::Gauge(Gauge { data_points }),
        }),
    }
}

fn log_record(line: &LogLine) -> LogRecord {
    LogRecord {
        time_unix_nano: line.at_ns,
        observed_time_unix_nano: line.at_ns,
        severity_number: line.severity_number(),
        severity_text: line.severity.clone(),
        body: Some(line.title.as_str().into()),
        attributes: vec![
            KeyValue::new("sexton.code", line.code.as_str()),
            KeyValue::new("sexton.subject", line.subject.as_str()),
            KeyValue::new("sexton.turn", line.turn),
            KeyValue::new("sexton.severity", line.severity.as_str()),
            KeyValue::new("sexton.headline", line.headline.as_str()),
        ],
        event_name: "sexton.finding".to_owned(),
    }
}

/// Labels of an owner by the semantic conventions of OpenTelemetry.
fn attributes(profile: &WindowProfile) -> Vec<KeyValue> {
    let key = |label: &str| match label {
        "node" => "host.name",
        "service_name" => "service.name",
        "unit" => "systemd.unit",
        "container" => "container.name",
        "container_id" => "container.id",
        "image" => "container.image.name",
        "pod" => "k8s.pod.name",
        "pod_uid" => "k8s.pod.uid",
        "namespace" => "k8s.namespace.name",
        _ => "sexton.label",
    };
    let labels = profile.labels.iter();
    labels
        .map(|(name, value)| KeyValue::new(key(name), value.as_str()))
        .collect()
}
