mod vital;

use sexton_model::fact::Fact;
use sexton_model::fact::container::{CONTAINER_RUNNING, CONTAINER_STARTED};
use sexton_model::fact::core::RUNNABLE_TASKS;
use sexton_model::fact::filesystem::{FS_AVAILABLE_BYTES, FS_SEEN, FS_USED_RATIO};
use sexton_model::fact::host::HOST_CPUS;
use sexton_model::fact::klog::{KLOG_EVENT, KLOG_LINES};
use sexton_model::fact::limit::{LIMIT_HITS, LIMIT_MOST, LIMIT_USED_RATIO};
use sexton_model::fact::nic;
use sexton_model::fact::pressure::{
    PRESSURE_CPU_SOME_AVG10_RATIO, PRESSURE_IO_FULL_AVG10_RATIO, PRESSURE_MEMORY_SOME_AVG10_RATIO,
};
use sexton_model::fact::process::{PROCESSES_DEFUNCT, PROCESSES_UNINTERRUPTIBLE};
use sexton_model::fact::unit::{UNIT_FILE, UNIT_SHAPE, UnitShape};
use sexton_model::gap::{Gap, Why};
use sexton_model::gate::{Bound, Check, Live, Passed, Tally, UnitSurvey, worst};
use sexton_model::moment::Moment;
use sexton_model::record::{Record, Sink};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::timeline::Records;

use super::super::{GatePolicy, Seen, judge, limits};
use crate::testing;

const SECOND: u64 = 1_000_000_000;

/// Checks that need the kernel's log: what hides it from one hides it from all.
const OF_LOG: [&str; 3] = ["nic_resets", "oom_kills", "bad_filesystems"];

/// A node on which all is well.
struct Node {
    memory: Tally,
    units: Result<UnitSurvey, Gap>,
    records: Vec<Record>,
    other_runtimes: &'static [&'static str],
}

fn quiet() -> Node {
    let mut out = Sink::new("klog", Moment::from_ns(900 * SECOND));
    out.sample(&Subject::node(), &KLOG_LINES, 400.0);
    let mut records = out.into_records();
    let mut out = Sink::new("containers", Moment::from_ns(900 * SECOND));
    out.sample(&Subject::node(), &CONTAINER_RUNNING, 3.0);
    records.extend(out.into_records());
    records.extend(unit_files(Some("kubernetes-node"), &[]));
    records.extend(crowd(3.0, Some(0.1)));
    records.extend(vital_signs());
    Node {
        memory: Tally {
            total: Some(300),
            live: Some(Live::Exactly(240)),
            gaps: Vec::new(),
        },
        units: Ok(UnitSurvey {
            n_units: 150,
            uptime_seconds: 7200,
            ..UnitSurvey::default()
        }),
        records,
        other_runtimes: &[],
    }
}

/// Tasks that could run on two cores, and the pressure on them.
fn crowd(runnable: f64, pressure: Option<f64>) -> Vec<Record> {
    let node = Subject::node();
    let told = [
        ("host", &HOST_CPUS, Some(2.0)),
        ("cores", &RUNNABLE_TASKS, Some(runnable)),
        ("pressure", &PRESSURE_CPU_SOME_AVG10_RATIO, pressure),
    ];
    let told = told.into_iter().filter_map(|(sensor, fact, value)| {
        let mut out = Sink::new(sensor, Moment::from_ns(900 * SECOND));
        out.sample(&node, fact, value?);
        Some(out.into_records())
    });
    told.flatten().collect()
}

/// A sample of the node, or of something else.
fn sample(sensor: &'static str, subject: Subject, fact: &'static Fact, value: f64) -> Vec<Record> {
    let mut out = Sink::new(sensor, Moment::from_ns(900 * SECOND));
    out.sample(&subject, fact, value);
    out.into_records()
}

/// The vital signs of a node on which all is well.
fn vital_signs() -> Vec<Record> {
    let node = Subject::node;
    let root = Subject::new(SubjectKind::Mount, "/");
    let limit = Subject::new(SubjectKind::Limit, "kernel.pid_max");
    [
        sample("pressure", node(), &PRESSURE_MEMORY_SOME_AVG10_RATIO, 0.0),
        sample("pressure", node(), &PRESSURE_IO_FULL_AVG10_RATIO, 0.1),
        sample("filesystems", root, &FS_USED_RATIO, 0.4),
        sample("processes", node(), &PROCESSES_DEFUNCT, 2.0),
        sample("processes", node(), &PROCESSES_UNINTERRUPTIBLE, 1.0),
        sample("limits", limit, &LIMIT_USED_RATIO, 0.1),
    ]
    .concat()
}

/// What the files of units tell: the shape, and known offenders that are on.
fn unit_files(shape: Option<&str>, offenders: &[&str]) -> Vec<Record> {
    let mut out = Sink::new("unit_files", Moment::from_ns(900 * SECOND));
    let now = out.now();
    let told = UnitShape {
        shape: shape.map(str::to_owned),
        ..UnitShape::default()
    };
    out.event(now, &Subject::node(), &UNIT_SHAPE, told);
    for unit in offenders {
        let details = vec![
            ("offender_why".into(), "it loops".to_owned()),
            ("offender_action".into(), "mask".to_owned()),
        ];
        let subject = Subject::new(SubjectKind::Unit, *unit);
        out.event(now, &subject, &UNIT_FILE, testing::read(details));
    }
    out.into_records()
}

impl Node {
    fn judge(&self, policy: &GatePolicy) -> Vec<Check> {
        let records = Records::new(self.records.clone());
        let seen = Seen {
            memory: &self.memory,
            units: self.units.as_ref(),
            records: &records,
            other_runtimes: self.other_runtimes,
            signatures: &sexton_signatures::Signatures::built_in(),
        };
        judge(&seen, policy, &[])
    }

    /// Expects this of one check, and that all others pass.
    #[track_caller]
    fn check(&self, name: &str, passed: Passed, value: Option<f64>) {
        for check in self.judge(&GatePolicy::default()) {
            if check.name == name {
                assert_eq!((check.passed, check.value), (passed, value), "{check:?}");
                assert!(!check.why.is_empty());
            } else if !(OF_LOG.contains(&name) && OF_LOG.contains(&check.name)) {
                assert_eq!(check.passed, Passed::Yes, "{check:?}");
            }
        }
    }

    fn event(&mut self, at_s: u64, class: &str, written_by: &str) {
        let mut out = Sink::new("klog", Moment::from_ns(at_s * SECOND));
        let details = vec![
            ("class".into(), class.into()),
            ("device".into(), "eth0".into()),
            ("written_by".into(), written_by.into()),
        ];
        let subject = Subject::new(SubjectKind::Device, "eth0");
        out.event(out.now(), &subject, &KLOG_EVENT, testing::read(details));
        self.records.extend(out.into_records());
    }

    fn gap(&mut self, sensor: &'static str, why: Why) {
        let mut out = Sink::new(sensor, Moment::from_ns(900 * SECOND));
        out.gap(&Subject::node(), Gap::new(sensor, why, "it was not seen"));
        self.records.retain(|record| record.sensor != sensor);
        self.records.extend(out.into_records());
    }
}

#[test]
fn a_quiet_node_passes() {
    let checks = quiet().judge(&GatePolicy::default());
    assert_eq!(checks.len(), limits().count());
    assert_eq!(worst(&checks), Passed::Yes, "{checks:#?}");
    assert_eq!(worst(&[]), Passed::Unknown);
}

#[test]
fn the_founding_incident_does_not_pass() {
    let mut node = quiet();
    node.memory.total = Some(68_680);
    let checks = node.judge(&GatePolicy::default());
    for name in ["memory_cgroups", "memory_cgroups_per_live"] {
        let check = checks.iter().find(|check| check.name == name);
        assert_eq!(check.expect("it is there").passed, Passed::No);
    }
}

#[test]
fn a_ratio_of_few_says_nothing() {
    let mut node = quiet();
    (node.memory.total, node.memory.live) = (Some(200), Some(Live::Exactly(20)));
    node.check("memory_cgroups_per_live", Passed::Yes, Some(10.0));
    node.memory.total = Some(400);
    node.check("memory_cgroups_per_live", Passed::No, Some(20.0));
}

#[test]
fn a_count_that_was_ended_fails_nothing() {
    let mut node = quiet();
    (node.memory.total, node.memory.live) = (Some(800), Some(Live::AtLeast(100)));
    node.check("memory_cgroups_per_live", Passed::Unknown, Some(8.0));
    node.memory.live = Some(Live::AtLeast(200));
    node.check("memory_cgroups_per_live", Passed::Yes, Some(4.0));
}

#[test]
fn units_that_failed_or_restart_are_named() {
    let mut node = quiet();
    node.units = node.units.map(|units| UnitSurvey {
        failed: vec!["a.service".into()],
        ..units
    });
    node.check("failed_units", Passed::No, Some(1.0));
    let mut ignores = GatePolicy::default();
    ignores.ignored_units.insert("a.service".into());
    assert_eq!(worst(&node.judge(&ignores)), Passed::Yes);
    let mut node = quiet();
    node.units = node.units.map(|units| UnitSurvey {
        restarts: vec![("b.service".into(), 3), ("ecs.service".into(), 20)],
        ..units
    });
    node.check("restarts_per_hour", Passed::No, Some(10.0));
}

#[test]
fn a_loop_of_the_last_hours_does_not_hide_in_a_long_uptime() {
    let check = |n: u64, waiting: &[&str], passed: Passed, value: f64| {
        let mut node = quiet();
        node.units = node.units.map(|units| UnitSurvey {
            restarts: vec![("b.service".into(), n)],
            waiting: waiting.iter().map(|&unit| unit.to_owned()).collect(),
            uptime_seconds: 30 * 86_400,
            ..units
        });
        node.check("restarts_per_hour", passed, Some(value));
    };
    check(480, &["b.service"], Passed::No, 480.0);
    check(480, &["c.service"], Passed::Yes, 480.0 / 720.0);
    // It crashed now, and hardly ever before.
    check(3, &["b.service"], Passed::Yes, 3.0 / 720.0);
}

#[test]
fn services_that_were_not_asked_may_restart() {
    let mut node = quiet();
    node.units = node.units.map(|units| UnitSurvey {
        n_unasked: 3,
        ..units
    });
    node.check("restarts_per_hour", Passed::Unknown, Some(0.0));
}

#[test]
fn the_lines_of_one_reset_count_once() {
    let mut node = quiet();
    for (at_s, class) in [
        (100, "nic_tx_timeout"),
        (101, "nic_reset"),
        (300, "nic_reset"),
        (301, "nic_reset_done"),
    ] {
        node.event(at_s, class, "kernel");
    }
    node.check("nic_resets", Passed::No, Some(2.0));
}

#[test]
fn what_a_program_wrote_into_the_log_is_no_reset() {
    let mut node = quiet();
    node.event(100, "nic_reset", "userspace");
    node.check("nic_resets", Passed::Yes, Some(0.0));
}

#[test]
fn counters_speak_where_the_log_is_lost() {
    let mut node = quiet();
    node.gap("klog", Why::Lost(7));
    let mut out = Sink::new("klog", Moment::from_ns(900 * SECOND));
    out.sample(&Subject::node(), &KLOG_LINES, 393.0);
    node.records.extend(out.into_records());
    node.check("nic_resets", Passed::Unknown, Some(0.0));
    let mut out = Sink::new("nics", Moment::from_ns(900 * SECOND));
    let queue = Subject::new(SubjectKind::Queue, "eth0/tx-1");
    out.sample(&queue, &nic::NIC_TX_TIMEOUTS, 0.0);
    node.records.extend(out.into_records());
    node.check("nic_resets", Passed::Yes, Some(0.0));
}

#[test]
fn the_counter_of_one_device_does_not_speak_for_another() {
    let mut node = quiet();
    node.gap("klog", Why::Lost(7));
    let mut out = Sink::new("klog", Moment::from_ns(900 * SECOND));
    out.sample(&Subject::node(), &KLOG_LINES, 393.0);
    node.records.extend(out.into_records());
    for device in ["eth0", "eth1"] {
        let mut out = Sink::new("nics", Moment::from_ns(900 * SECOND));
        let subject = Subject::new(SubjectKind::Device, device);
        out.event(
            out.now(),
            &subject,
            &nic::NIC_IDENTITY,
            testing::read(Vec::new()),
        );
        node.records.extend(out.into_records());
    }
    let mut count = |device: &str, passed| {
        let mut out = Sink::new("nics", Moment::from_ns(900 * SECOND));
        let queue = Subject::new(SubjectKind::Queue, format!("{device}/tx-1"));
        out.sample(&queue, &nic::NIC_TX_TIMEOUTS, 0.0);
        node.records.extend(out.into_records());
        node.check("nic_resets", passed, Some(0.0));
    };
    count("eth0", Passed::Unknown);
    count("eth1", Passed::Yes);
}

/// In a storm of lines the last ten minutes do not fit into the log.
#[test]
fn a_log_that_was_cut_tells_only_as_far_as_it_reaches_back() {
    let check = |oldest_s: u64, gaps: u64, passed| {
        let mut node = quiet();
        let mut out = Sink::new("klog", Moment::from_ns(900 * SECOND));
        for _ in 0..gaps {
            let gap = Gap::new("klog", Why::Lost(7), "7 lines were overwritten");
            out.gap(&Subject::node(), gap);
        }
        node.records.extend(out.into_records());
        node.event(oldest_s, "link_up", "kernel");
        node.check("oom_kills", passed, Some(0.0));
    };
    check(100, 1, Passed::Yes);
    check(600, 1, Passed::Unknown);
    check(100, 2, Passed::Unknown);
}

/// Many drivers report a reset only in the log, so their counters do not stand in for it.
#[test]
fn counters_do_not_stand_in_for_a_log_that_was_not_read() {
    let mut node = quiet();
    node.gap("klog", Why::Denied);
    let mut out = Sink::new("nics", Moment::from_ns(900 * SECOND));
    let queue = Subject::new(SubjectKind::Queue, "eth0/tx-1");
    out.sample(&queue, &nic::NIC_TX_TIMEOUTS, 0.0);
    node.records.extend(out.into_records());
    node.check("nic_resets", Passed::Unknown, Some(0.0));
    let mut out = Sink::new("nics", Moment::from_ns(901 * SECOND));
    out.sample(&queue, &nic::NIC_TX_TIMEOUTS, 2.0);
    node.records.extend(out.into_records());
    node.check("nic_resets", Passed::No, Some(2.0));
}

#[test]
fn a_runtime_that_is_denied_is_unknown_beside_one_that_answers() {
    let mut node = quiet();
    let mut out = Sink::new("containers", Moment::from_ns(900 * SECOND));
    let gap = Gap::new("containers", Why::Denied, "containerd: permission denied");
    out.gap(&Subject::node(), gap);
    node.records.extend(out.into_records());
    node.check("young_containers", Passed::Unknown, Some(0.0));
}

#[test]
fn a_ratio_says_whether_it_is_a_bound() {
    let bound = |total, live| {
        let mut node = quiet();
        (node.memory.total, node.memory.live) = (Some(total), live);
        let checks = node.judge(&GatePolicy::default());
        let check = checks
            .iter()
            .find(|check| check.name == "memory_cgroups_per_live");
        let check = check.expect("it is there");
        (check.passed, check.bound, check.value)
    };
    let exact = bound(5_170, Some(Live::Exactly(5_007)));
    assert_eq!((exact.0, exact.1), (Passed::Yes, Bound::Exact));
    let ended = bound(5_170, Some(Live::AtLeast(1_293)));
    assert_eq!((ended.0, ended.1), (Passed::Yes, Bound::AtMost));
    assert_eq!(
        bound(17, Some(Live::AtLeast(1))),
        (Passed::Yes, Bound::AtMost, Some(17.0))
    );
    assert_eq!(bound(17, None), (Passed::Unknown, Bound::Exact, None));
}

#[test]
fn starts_of_containers_count_within_a_minute() {
    let mut node = quiet();
    for at_s in [100, 850, 860, 870, 880] {
        let mut out = Sink::new("containers", Moment::from_ns(at_s * SECOND));
        let details = vec![("image".into(), "agent:1".into())];
        let subject = Subject::new(SubjectKind::Container, at_s.to_string());
        out.event(
            out.now(),
            &subject,
            &CONTAINER_STARTED,
            testing::read(details),
        );
        node.records.extend(out.into_records());
    }
    node.check("young_containers", Passed::No, Some(4.0));
}

#[test]
fn what_is_not_seen_is_unknown() {
    let mut node = quiet();
    node.memory = Tally::default();
    node.units = Err(Gap::new("units", Why::Denied, "systemd did not answer"));
    node.gap("klog", Why::Denied);
    node.gap("containers", Why::Denied);
    let checks = node.judge(&GatePolicy::default());
    let unknown = checks
        .iter()
        .filter(|check| check.passed == Passed::Unknown);
    assert_eq!(unknown.count(), 8, "{checks:#?}");
    // No runtime is no trouble: there is nobody to start containers.
    let mut node = quiet();
    node.gap("containers", Why::Unsupported);
    node.check("young_containers", Passed::Yes, Some(0.0));
    node.other_runtimes = &["containerd"];
    node.check("young_containers", Passed::Unknown, None);
}

#[test]
fn a_check_can_be_skipped() {
    let mut policy = GatePolicy::default();
    policy.skipped.insert("nic_resets");
    let checks = quiet().judge(&policy);
    assert!(checks.iter().all(|check| check.name != "nic_resets"));
}

#[test]
fn units_without_use_are_counted_for_the_shape() {
    let mut node = quiet();
    let mut told = |shape, offenders: &[&str]| {
        node.records.retain(|record| record.sensor != "unit_files");
        node.records.extend(unit_files(shape, offenders));
        let checks = node.judge(&GatePolicy::default());
        let check = checks.into_iter().find(|one| one.name == "unwanted_units");
        check.expect("it is there")
    };
    let check = told(Some("kubernetes-node"), &["ecs.service"]);
    assert_eq!((check.passed, check.value), (Passed::No, Some(1.0)));
    assert_eq!(check.subjects, ["ecs.service"]);
    // Without a shape a known offender is one all the same, and more is not expected.
    assert_eq!(told(None, &["ecs.service"]).passed, Passed::No);
    let check = told(None, &[]);
    assert_eq!((check.passed, check.value), (Passed::Yes, Some(0.0)));
    assert!(check.why.contains("--shape"), "{}", check.why);
}

#[test]
fn files_of_units_that_were_not_read_are_unknown() {
    let mut node = quiet();
    node.gap("unit_files", Why::Overrun);
    node.check("unwanted_units", Passed::Unknown, None);
    // Where there are no units none is unwanted.
    node.gap("unit_files", Why::Unsupported);
    node.check("unwanted_units", Passed::Yes, Some(0.0));
    let mut node = quiet();
    let gaps = {
        let mut other = quiet();
        other.gap("unit_files", Why::Malformed);
        other.records.pop().expect("a gap")
    };
    node.records.push(gaps);
    node.check("unwanted_units", Passed::Unknown, Some(0.0));
}
