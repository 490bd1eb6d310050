use sexton_model::fact::Fact;
use sexton_model::fact::container::{CONTAINER_STARTED, ContainerStarted};
use sexton_model::fact::core::{CORE_SYSTEM_RATIO, CORE_WORST_SYSTEM_RATIO};
use sexton_model::fact::memcg::{MEMCG_DYING, MEMCG_ORIGIN, MemcgOrigin};
use sexton_model::fact::napi::{NAPI_STARVED, NapiDelay};
use sexton_model::fact::nic::{NIC_SENT_PACKETS, NicGone};
use sexton_model::fact::unit::{StartedBy, UNIT_STARTED, UnitStarted};
use sexton_model::gap::Gap;
use sexton_model::payload::Structure;
use sexton_model::record::Sink;
use sexton_model::subject::Subject;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn at(seconds: u64) -> Moment {
    Moment::from_ns(seconds * SECOND)
}

fn metrics() -> Metrics {
    Metrics::new(at(100))
}

/// What a sensor says in one poll.
fn poll(metrics: &mut Metrics, sensor: &'static str, seconds: u64, say: impl FnOnce(&mut Sink)) {
    let mut out = Sink::new(sensor, at(seconds));
    say(&mut out);
    out.into_records()
        .iter()
        .for_each(|record| metrics.take(record));
}

fn text(metrics: &mut Metrics, seconds: u64) -> String {
    metrics.render(&Own::default(), Format::Text, at(seconds))
}

/// The series of a metric, without its name.
fn series(text: &str, name: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(name));
    let lines = lines.filter(|rest| rest.starts_with(['{', ' ']));
    lines.map(|rest| rest.trim().to_owned()).collect()
}

fn value(text: &str, name: &str, labels: &str) -> Option<f64> {
    let found = series(text, name);
    let found = found.iter().find_map(|line| line.strip_prefix(labels));
    found.and_then(|value| value.trim().parse().ok())
}

/// The sum of the values of series.
fn sum(series: &[String]) -> f64 {
    let values = series.iter().filter_map(|line| line.rsplit(' ').next());
    let values = values.map(|value| value.parse::<f64>().expect("a number"));
    values.sum()
}

fn cgroup(name: String) -> Subject {
    Subject::new(SubjectKind::Cgroup, name)
}

fn tell_origins(metrics: &mut Metrics, seconds: u64, n: u64, length: usize) {
    poll(metrics, "memcg", seconds, |out| {
        let total = (1..=n).sum::<u64>();
        out.sample(&Subject::node(), &MEMCG_DYING, total as f64);
        for i in 1..=n {
            let subject = cgroup(format!("/kubepods/pod-{i}/{}", "x".repeat(length)));
            out.sample(&subject, &MEMCG_DYING, i as f64);
            let says = MemcgOrigin {
                dying: Some(i),
                ..MemcgOrigin::read(&Vec::new()).expect("nothing is required")
            };
            out.event(out.now(), &subject, &MEMCG_ORIGIN, says);
        }
    });
}

#[test]
fn ten_thousand_origins_are_a_few_series_and_nothing_is_lost() {
    let mut metrics = metrics();
    tell_origins(&mut metrics, 101, 10_000, 10);
    let text = text(&mut metrics, 102);
    let shown = series(&text, "sexton_memcg_origin_dying");
    assert_eq!(shown.len(), 50);
    assert!(
        shown.iter().any(|line| line.contains("pod-10000/")),
        "{shown:?}"
    );
    let sum = sum(&shown);
    assert_eq!(sum, 50_005_000.0);
    assert_eq!(value(&text, "sexton_memcg_dying", ""), Some(50_005_000.0));
    let folded = "{metric=\"sexton_memcg_origin_dying\"}";
    assert_eq!(value(&text, "sexton_series_folded", folded), Some(9_951.0));
}

#[test]
fn more_than_can_be_kept_is_counted_once_each() {
    let mut metrics = metrics();
    for seconds in [101, 102] {
        tell_origins(&mut metrics, seconds, 20_000, 1);
    }
    let text = text(&mut metrics, 103);
    let folded = "{metric=\"sexton_memcg_origin_dying\"}";
    assert_eq!(value(&text, "sexton_series_folded", folded), Some(19_951.0));
}

#[test]
fn an_answer_is_bounded_in_series_and_bytes_whatever_the_node_has() {
    let mut metrics = metrics();
    tell_origins(&mut metrics, 101, 10_000, 200);
    // Every metric by core and by device, of more than any machine has.
    for fact in fact::all().filter(|fact| fact.kind != fact::FactKind::Event) {
        let fact: &'static Fact = fact;
        poll(&mut metrics, "many", 101, |out| {
            for i in 0..1_500_u64 {
                let name = format!("eth{i}-{}/rx-{i}", "y".repeat(80));
                let subject = Subject::new(SubjectKind::Queue, name);
                out.sample(&subject, fact, (i % 7) as f64);
            }
        });
    }
    let text = text(&mut metrics, 102);
    assert!(text.len() <= MAX_BYTES, "{} bytes", text.len());
    let n = text.lines().filter(|line| !line.starts_with('#')).count();
    assert!((200..=MAX_SERIES).contains(&n), "{n} series");
    assert_eq!(value(&text, "sexton_series", ""), Some(n as f64));
    assert!(series(&text, "sexton_core_system_ratio").len() > 5);
}

#[test]
fn no_metric_starves_while_others_have_few_series() {
    let mut metrics = metrics();
    poll(&mut metrics, "nics", 101, |out| {
        for i in 0..4_000_u32 {
            let queue = Subject::new(SubjectKind::Queue, format!("eth0/tx-{i}"));
            out.sample(&queue, &NIC_SENT_PACKETS, f64::from(i));
        }
    });
    poll(&mut metrics, "cores", 101, |out| {
        for cpu in 0..192 {
            out.sample(&Subject::cpu(cpu), &CORE_SYSTEM_RATIO, 0.5);
        }
    });
    let text = text(&mut metrics, 102);
    assert_eq!(series(&text, "sexton_core_system_ratio").len(), 192);
    assert!(series(&text, "sexton_nic_sent_packets_total").len() > 1_000);
}

#[test]
fn other_of_a_counter_never_falls_while_series_come_and_go() {
    let mut metrics = metrics();
    let start = |metrics: &mut Metrics, seconds: u64, unit: u64, n: u64| {
        poll(metrics, "units", seconds, |out| {
            let says = UnitStarted {
                by: Some(StartedBy::Restart),
                n: Some(n),
                invocation: None,
                main_pid: None,
                triggered_by: None,
            };
            let unit = Subject::new(SubjectKind::Unit, format!("u{unit}.service"));
            out.event(out.now(), &unit, &UNIT_STARTED, says);
        });
    };
    let other = "{unit=\"other\",by=\"other\"}";
    let name = "sexton_unit_starts_total";
    let (mut before, mut total) = (0.0, 0);
    for round in 0..20_u64 {
        for unit in 0..80 {
            let n = 1 + (unit * 31 + round * 17) % 13;
            total += n;
            start(&mut metrics, 101 + round, unit, n);
        }
        let text = text(&mut metrics, 101 + round);
        let now = value(&text, name, other).expect("80 units are more than 50");
        assert!(now >= before, "round {round}: {now} after {before}");
        before = now;
        assert_eq!(series(&text, name).len(), 50);
    }
    let text = text(&mut metrics, 200);
    let all = series(&text, name);
    let sum = sum(&all);
    assert_eq!(sum, total as f64, "each start is counted once");
}

#[test]
fn what_holds_no_longer_is_gone() {
    let mut metrics = metrics();
    tell_origins(&mut metrics, 101, 3, 1);
    poll(&mut metrics, "cores", 101, |out| {
        out.sample(&Subject::cpu(0), &CORE_SYSTEM_RATIO, 0.5);
    });
    poll(&mut metrics, "nics", 101, |out| {
        for name in ["eth0", "eth0/tx-1", "eth01"] {
            let subject = Subject::new(SubjectKind::Device, name);
            out.sample(&subject, &NIC_SENT_PACKETS, 1.0);
        }
    });
    // A census that tells of no origin: they are released.
    poll(&mut metrics, "memcg", 200, |out| {
        out.sample(&Subject::node(), &MEMCG_DYING, 0.0);
    });
    poll(&mut metrics, "nics", 200, |out| {
        let gone = NicGone { ifindex: None };
        let eth0 = Subject::new(SubjectKind::Device, "eth0");
        out.event(out.now(), &eth0, &NIC_GONE, gone);
    });
    let later = text(&mut metrics, 400);
    assert_eq!(series(&later, "sexton_memcg_origin_dying"), [""; 0]);
    assert_eq!(series(&later, "sexton_memcg_dying"), ["0"]);
    assert_eq!(series(&later, "sexton_core_system_ratio"), [""; 0]);
    assert_eq!(
        series(&later, "sexton_nic_sent_packets_total"),
        ["{device=\"eth01\"} 1"]
    );
    // A sensor that is blind knows nothing; one that lost events still sees.
    let gap = |why| Gap::new("memcg", why, "a gap");
    poll(&mut metrics, "memcg", 401, |out| {
        out.gap(&Subject::node(), gap(Why::Lost(3)))
    });
    assert_eq!(
        series(&text(&mut metrics, 402), "sexton_memcg_dying"),
        ["0"]
    );
    poll(&mut metrics, "memcg", 403, |out| {
        out.gap(&Subject::node(), gap(Why::Denied));
    });
    assert_eq!(
        series(&text(&mut metrics, 404), "sexton_memcg_dying"),
        [""; 0]
    );
}

#[test]
fn a_plain_metric_is_of_the_node_or_of_its_worst_part() {
    let mut metrics = metrics();
    let worst = |metrics: &mut Metrics, seconds, cpu, ratio| {
        poll(metrics, "cores", seconds, |out| {
            out.sample(&Subject::cpu(cpu), &CORE_WORST_SYSTEM_RATIO, ratio);
        });
    };
    worst(&mut metrics, 101, 3, 0.9);
    worst(&mut metrics, 102, 1, 0.2);
    let text = text(&mut metrics, 103);
    assert_eq!(
        value(&text, "sexton_core_worst_system_ratio", ""),
        Some(0.2)
    );
}

#[test]
fn events_are_counted_from_zero_and_none_from_before_the_start() {
    let mut metrics = metrics();
    assert_eq!(
        value(&text(&mut metrics, 101), "sexton_napi_starved_total", ""),
        Some(0.0)
    );
    let started = |seconds: u64, metrics: &mut Metrics| {
        poll(metrics, "containers", 102, |out| {
            let mut says = ContainerStarted::read(&Vec::new()).expect("nothing is required");
            says.image = Some("nginx:1".into());
            let subject = Subject::new(SubjectKind::Container, "c1");
            out.event(at(seconds), &subject, &CONTAINER_STARTED, says);
        });
    };
    started(50, &mut metrics);
    started(101, &mut metrics);
    started(102, &mut metrics);
    poll(&mut metrics, "napi", 102, |out| {
        let says = NapiDelay::read(&Vec::new()).expect("nothing is required");
        out.event(out.now(), &Subject::cpu(0), &NAPI_STARVED, says);
    });
    let text = text(&mut metrics, 10_000);
    let starts = series(&text, "sexton_container_starts_total");
    assert_eq!(starts, ["{image=\"nginx:1\"} 2"]);
    assert_eq!(value(&text, "sexton_napi_starved_total", ""), Some(1.0));
}
