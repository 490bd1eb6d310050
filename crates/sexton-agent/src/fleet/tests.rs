//! Reports turn with the hour, and tell the lives of findings.

use sexton_analysis::live::{Lives, Step};
use sexton_model::fact::sexton::SEXTON_CPU_RATIO;
use sexton_model::finding::Confidence;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::timeline::Records;

use std::path::Path;

use sexton_analysis::live::Change;
use sexton_store::{BundleWriter, Limits, Ring};

use crate::findings::FindingsLog;

use super::*;

const HOUR_NS: u64 = 3_600_000_000_000;
/// An hour of 2026, as the wall clock says at a moment.
const WALL_NS: u64 = 495_000 * HOUR_NS;

fn settings(spool: &Path, lake: &Path) -> FleetSettings {
    FleetSettings {
        lake: Lake::Folder(lake.to_owned()),
        every: Duration::from_secs(3600),
        spool: spool.to_owned(),
        node: NodeName {
            name: "web7".into(),
            ..NodeName::default()
        },
        given: Given::default(),
    }
}

fn at(minutes: u64) -> (Moment, u64) {
    let ns = minutes * 60_000_000_000;
    (Moment::from_ns(ns), WALL_NS + ns)
}

fn sample(minutes: u64, value: f64) -> Record {
    let mut out = Sink::new("test", at(minutes).0);
    out.sample(&Subject::node(), &SEXTON_CPU_RATIO, value);
    out.into_records().remove(0)
}

fn finding(severity: Severity) -> Finding {
    Finding {
        code: "NIC001",
        subject: Subject::new(SubjectKind::Device, "eth0"),
        severity,
        confidence: Confidence::percent(90),
        title: "NIC resets".into(),
        figure: String::new(),
        since: None,
        evidence: Vec::new(),
        remedies: Vec::new(),
        touched: Vec::new(),
        episodes: Vec::new(),
    }
}

fn judge(reporter: &mut Reporter, lives: &mut Lives, minutes: u64, findings: Vec<Finding>) {
    let diagnosis = Diagnosis {
        findings,
        // All rules could look, or what they found before would stay open.
        not_judged: Vec::new(),
        ..sexton_analysis::judge(&Records::default(), &sexton_analysis::Policy::default())
    };
    let changes = lives.step(at(minutes).0, &diagnosis);
    reporter.note(&Judged {
        step: &Step {
            at: at(minutes).0,
            diagnosis,
            changes,
        },
        lives,
        boot_proofs: &[],
    });
}

#[test]
fn a_report_is_closed_at_the_turn_of_the_hour() {
    let settings = settings(Path::new("/a"), Path::new("/b"));
    let mut reporter = Reporter::new(&settings, at(50).1);
    reporter.take(&sample(50, 1.0));
    reporter.take(&sample(58, 3.0));
    assert_eq!(reporter.turn(at(59).0, at(59).1), None);
    let report = reporter.turn(at(60).0, at(60).1).expect("a report");
    assert_eq!(report.at_us, i64::try_from(WALL_NS / 1000).expect("a time"));
    assert_eq!(report.numbers["sexton_cpu_ratio"], 2.0);
    assert_eq!(report.numbers["watched_seconds"], 480.0);
    // No verdict is not the same as no finding.
    assert!(!report.numbers.contains_key("severity_rank"));
    assert_eq!(reporter.turn(at(61).0, at(61).1), None);
    // Of an hour in which nothing was seen there is no report.
    assert_eq!(reporter.turn(at(120).0, at(120).1), None);
}

#[test]
fn a_clock_that_is_not_set_makes_no_report() {
    let settings = settings(Path::new("/a"), Path::new("/b"));
    let mut reporter = Reporter::new(&settings, 5);
    reporter.take(&sample(1, 1.0));
    assert_eq!(reporter.turn(at(2).0, at(2).1), None);
    reporter.take(&sample(3, 1.0));
    assert!(reporter.turn(at(63).0, at(63).1).is_some());
}

#[test]
fn findings_are_told_with_their_lives() {
    let settings = settings(Path::new("/a"), Path::new("/b"));
    let mut reporter = Reporter::new(&settings, at(0).1);
    let mut lives = Lives::default();
    reporter.take(&sample(1, 1.0));
    judge(
        &mut reporter,
        &mut lives,
        10,
        vec![finding(Severity::Critical)],
    );
    judge(
        &mut reporter,
        &mut lives,
        20,
        vec![finding(Severity::Warning)],
    );
    let report = reporter.turn(at(60).0, at(60).1).expect("a report");
    let row = &report.findings[0];
    assert_eq!(
        (&*row.texts["life"], &*row.texts["severity"]),
        ("open", "critical")
    );
    let wall_us = |minutes| i64::try_from(at(minutes).1 / 1000).ok();
    assert_eq!((row.opened_us, row.resolved_us), (wall_us(10), None));
    // In the next hour it was a warning, and went away.
    reporter.take(&sample(61, 1.0));
    judge(
        &mut reporter,
        &mut lives,
        61,
        vec![finding(Severity::Warning)],
    );
    judge(&mut reporter, &mut lives, 63, Vec::new());
    let report = reporter.turn(at(120).0, at(120).1).expect("a report");
    let row = &report.findings[0];
    assert_eq!(
        (&*row.texts["life"], &*row.texts["severity"]),
        ("resolved", "warning")
    );
    assert_eq!((row.opened_us, row.resolved_us), (wall_us(10), wall_us(63)));
    assert_eq!(report.numbers["severity_rank"], 2.0);
    reporter.take(&sample(121, 1.0));
    judge(&mut reporter, &mut lives, 125, Vec::new());
    let report = reporter.turn(at(180).0, at(180).1).expect("a report");
    assert_eq!(
        (report.findings.len(), report.numbers["severity_rank"]),
        (0, 0.0)
    );
}

#[test]
fn a_bucket_that_comes_back_gets_what_waited() {
    let folder = tempfile::tempdir().expect("a folder");
    let lake = folder.path().join("lake");
    // A file where the bucket should be: nothing can be written there.
    std::fs::write(&lake, "").expect("a file");
    let mut settings = settings(&folder.path().join("spool"), &lake);
    settings.every = Duration::from_millis(200);
    let sender = Sender::start(settings.clone(), Box::new(|_, _| {})).expect("a thread");
    let report = Report {
        node: "web7".into(),
        boot: "5f2a".into(),
        at_us: i64::try_from(WALL_NS / 1000).expect("a time"),
        ..Report::default()
    };
    sender.send(report);
    let wait = |is_so: &dyn Fn(&FleetStatus) -> bool| {
        for _ in 0..500 {
            if is_so(&sender.status()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{:?}", sender.status());
    };
    wait(&|status| status.failed > 0 && status.waiting == 1 && status.trouble.is_some());
    std::fs::remove_file(&lake).expect("it goes");
    wait(&|status| status.sent == 1 && status.waiting == 0 && status.trouble.is_none());
    sender.stop();
    let days = std::fs::read_dir(&lake).expect("a bucket").count();
    assert_eq!(days, 1);
}

#[test]
fn a_program_that_is_not_there_is_named_with_what_to_do() {
    let stop = child::Stop::default();
    let program = Path::new("/nonexistent/sexton-fleet");
    let why = child::ship(program, Path::new("/tmp"), "s3://b", &stop).expect_err("it fails");
    assert!(why.contains("install sexton-fleet"), "{why}");
}

#[test]
fn a_clock_that_jumps_ahead_and_back_loses_no_report() {
    let settings = settings(Path::new("/a"), Path::new("/b"));
    let mut reporter = Reporter::new(&settings, at(0).1);
    let mut paths = Vec::new();
    // Minutes since the boot, and what the wall clock says.
    let mut minute = |boot: u64, wall: u64| {
        reporter.take(&sample(boot, 1.0));
        let report = reporter.turn(at(boot).0, at(wall).1);
        paths.extend(report.map(|report| (report.path(), report.numbers["watched_seconds"])));
    };
    (1..20).for_each(|boot| minute(boot, boot));
    (20..25).for_each(|boot| minute(boot, boot + 60));
    (25..190).for_each(|boot| minute(boot, boot));
    let mut unique: Vec<&String> = paths.iter().map(|(path, _)| path).collect();
    unique.sort();
    unique.dedup();
    assert_eq!((unique.len(), paths.len()), (5, 5), "{paths:?}");
    let watched: f64 = paths.iter().map(|(_, seconds)| seconds).sum();
    assert!(watched > 170.0 * 60.0, "{paths:?}");
}

#[test]
fn a_restart_tells_of_what_was_before_it_and_not_of_the_time_between() {
    let folder = tempfile::tempdir().expect("a folder");
    let boot = Ring::at(folder.path()).boot_of("5f2a").expect("a ring");
    let node = sexton_store::Node {
        name: "web7".into(),
        kernel: "6.1".into(),
        boot_id: "5f2a".into(),
    };
    let day = Duration::from_secs(86_400);
    let mut log = FindingsLog::open(&boot.findings, day, node.clone(), at(1).0).expect("a disk");
    let mut lives = Lives::default();
    let mut judge = |minutes: u64, findings: Vec<Finding>| -> Vec<Change> {
        let diagnosis = Diagnosis {
            findings,
            not_judged: Vec::new(),
            ..sexton_analysis::judge(&Records::default(), &sexton_analysis::Policy::default())
        };
        let (now, wall_ns) = at(minutes);
        let changes = lives.step(now, &diagnosis);
        log.add(&changes, &diagnosis, now, wall_ns).expect("a disk");
        changes
    };
    // One that was over before the hour, and one within it.
    let mut other = finding(Severity::Serious);
    other.subject = Subject::new(SubjectKind::Device, "eth1");
    judge(50, vec![other]);
    judge(55, Vec::new());
    judge(65, vec![finding(Severity::Critical)]);
    assert!(!judge(75, Vec::new()).is_empty(), "it is resolved");
    let limits = Limits::ring(1 << 24, day);
    let mut writer = BundleWriter::create(&boot.records, limits, node, at(1).0).expect("a disk");
    for minutes in (60..70).chain(80..85) {
        writer.append(&[sample(minutes, 1.0)]).expect("a disk");
    }
    writer.finish(at(85).0).expect("a disk");
    let settings = settings(Path::new("/a"), Path::new("/b"));
    let mut reporter = Reporter::new(&settings, at(100).1);
    reporter.read_back(&boot, at(100).0, at(100).1);
    for minutes in 100..120 {
        reporter.take(&sample(minutes, 1.0));
    }
    let diagnosis =
        sexton_analysis::judge(&Records::default(), &sexton_analysis::Policy::default());
    reporter.diagnosis = Some(diagnosis);
    let report = reporter.turn(at(120).0, at(120).1).expect("a report");
    // 60 to 69, 80 to 84, 100 to 119.
    assert_eq!(report.numbers["watched_seconds"], (9.0 + 4.0 + 19.0) * 60.0);
    assert_eq!(report.numbers["severity_rank"], 4.0);
    let rows: Vec<(&str, &str)> = report
        .findings
        .iter()
        .map(|row| (&*row.texts["life"], &*row.texts["severity"]))
        .collect();
    assert_eq!(rows, [("resolved", "critical")]);
}
