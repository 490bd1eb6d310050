//! `--signatures DIR`: signatures of this run, on a recording that was made before they were
//! written.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use sexton_host::{FolderRoot, Host};
use sexton_model::fact::klog::{KLOG_EVENT, KernelLine};
use sexton_model::fact::sexton::SEXTON_POLL_NS;
use sexton_model::moment::Moment;
use sexton_model::record::{Record, Sink};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_sensors::{SENSORS, unit_files};
use sexton_store::{BundleWriter, Limits, Node};
use sexton_testkit::TempTree;

use crate::command::{sexton, stderr, stdout};

const LINE: &str = "frob 0000:17:00.0 eth7: flux lost, resetting";

/// A recording of a kernel whose driver no signature of ours knows.
fn record(to: &Path) {
    let now = Moment::from_ns(90_000_000_000);
    let mut out = Sink::new("klog", now);
    let sensor = Subject::new(SubjectKind::Sensor, "klog");
    out.sample(&sensor, &SEXTON_POLL_NS, 1_000.0);
    let seen = KernelLine {
        level: Some("err".to_owned()),
        seq: Some(7),
        written_by: Some("kernel".to_owned()),
        line: Some(LINE.to_owned()),
        ..KernelLine::default()
    };
    out.event(now, &Subject::node(), &KLOG_EVENT, seen);
    write(to, &out.into_records(), now);
}

fn write(to: &Path, records: &[Record], now: Moment) {
    let node = Node {
        name: "synthetic".into(),
        kernel: "6.12".into(),
        boot_id: "00000000-0000-0000-0000-000000000612".into(),
    };
    let limits = Limits::ring(64 << 20, Duration::from_secs(86_400));
    let mut writer = BundleWriter::create(to, limits, node, now).expect("a bundle");
    writer.append(records).expect("room");
    writer.finish(now).expect("sealed");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain name")
}

fn codes(output: &std::process::Output) -> Vec<String> {
    let diagnosis: Value = serde_json::from_str(&stdout(output)).expect("JSON");
    let findings = diagnosis["findings"].as_array().expect("a list");
    let codes = findings
        .iter()
        .filter_map(|finding| finding["code"].as_str());
    codes.map(str::to_owned).collect()
}

#[test]
fn a_signature_finds_its_trouble_in_an_older_recording() {
    let place = TempTree::new();
    let bundle = place.path().join("node.bundle");
    record(&bundle);
    let known = place.path().join("known/klog");
    fs::create_dir_all(&known).expect("a folder");
    let signature = format!(
        "driver = \"frob\"\n\n[[pattern]]\nid = \"frob-reset\"\nclass = \"nic_reset\"\n\
         wordings = [\"flux lost, resetting\"]\nsource = \"the frob driver\"\n\
         hits = [{{ line = \"{LINE}\", captures = {{ bus = \"0000:17:00.0\", device = \"eth7\" }} }}]\n\
         misses = [\"frob 0000:17:00.0 eth7: flux found\"]\n"
    );
    fs::write(known.join("frob.toml"), &signature).expect("written");
    let diagnose = ["diagnose", "--json", "--from", text(&bundle)];
    assert_eq!(codes(&sexton(&diagnose)), [""; 0]);
    let folder = place.path().join("known");
    let with = [&diagnose[..], &["--signatures", text(&folder)]].concat();
    let output = sexton(&with);
    assert_eq!(codes(&output), ["NIC001"], "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(1));
}

/// A node whose files the sensor read: `frobd.service` is enabled, its package is installed, and
/// `/etc/frob.conf` is there.
fn record_units(to: &Path) {
    let unit = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";
    let package = "Package: frob\nStatus: install ok installed\nVersion: 1\n\n";
    let units = "/usr/lib/systemd/system";
    let tree = TempTree::new()
        .file(&format!("{units}/multi-user.target"), "[Unit]\n")
        .file(&format!("{units}/frobd.service"), unit)
        .file("/etc/frob.conf", "flux = 1\n")
        .file("/var/lib/dpkg/status", package)
        .file("/bin/true", "")
        .link(&format!("{units}/default.target"), "multi-user.target")
        .link(
            "/etc/systemd/system/multi-user.target.wants/frobd.service",
            format!("{units}/frobd.service"),
        );
    let root = FolderRoot::open(tree.path()).expect("opens");
    let host = Host::unbooted(Box::new(root));
    let spec = SENSORS.iter().find(|spec| spec.name == unit_files::NAME);
    let mut sensor = (spec.expect("a sensor").open)(&host).expect("it opens");
    let now = Moment::from_ns(90_000_000_000);
    let mut out = Sink::new(unit_files::NAME, now);
    let itself = Subject::new(SubjectKind::Sensor, unit_files::NAME);
    out.sample(&itself, &SEXTON_POLL_NS, 1_000.0);
    sensor.poll(&host, &mut out);
    write(to, &out.into_records(), now);
}

/// What the files of units say is recorded, and not what signatures say of it.
#[test]
fn a_unit_signature_finds_its_trouble_in_an_older_recording() {
    let place = TempTree::new();
    let bundle = place.path().join("node.bundle");
    record_units(&bundle);
    let diagnose = ["diagnose", "--json", "--from", text(&bundle)];
    // The program of the unit is no program, which UNIT006 says.
    let unwanted = |output: &std::process::Output| -> Vec<String> {
        let codes = codes(output).into_iter();
        codes.filter(|code| code == "UNIT004").collect()
    };
    assert_eq!(unwanted(&sexton(&diagnose)), [""; 0]);
    let judge = |evidence: &str, veto: &str| {
        let file = place.path().join("frob.toml");
        let signature = format!(
            "title = \"frob\"\nunits = [\"frobd.service\"]\nwhy = \"it frobs\"\nrisk = \"low\"\n\
             source = [\"a test\"]\nevidence = [{evidence}]\nveto = [{veto}]\n"
        );
        fs::write(&file, signature).expect("written");
        sexton(&[&diagnose[..], &["--signatures", text(&file)]].concat())
    };
    let found = |evidence: &str, veto: &str| unwanted(&judge(evidence, veto));
    let package = "{ package = \"frob\" }";
    assert_eq!(found(package, ""), ["UNIT004"]);
    assert_eq!(found("{ package = \"grob\" }", ""), [""; 0]);
    assert_eq!(found(package, "{ enabled = \"frob*\" }"), [""; 0]);
    assert_eq!(found("{ path = \"/etc/frob.conf\" }", ""), ["UNIT004"]);
    assert_eq!(found("", "{ path = \"/etc/grob.conf\" }"), ["UNIT004"]);
    assert_eq!(found("", "{ path = \"/etc/*.conf\" }"), [""; 0]);
    // No content of files is recorded: that is said, and nothing is accused.
    let output = judge(
        "{ text = { path = \"/etc/frob.conf\", has = \"flux\" } }",
        "",
    );
    assert_eq!(unwanted(&output), [""; 0]);
    let said = "signature frob suspects frobd.service; the recording does not say whether \
                /etc/frob.conf holds flux";
    assert!(stdout(&output).contains(said), "{}", stdout(&output));
}

/// The same on every command that judges: nothing is watched or opened before.
#[test]
fn what_is_wrong_is_named_with_file_and_line() {
    let place = TempTree::new();
    let file = place.path().join("x.toml");
    fs::write(&file, "title = \"x\"\nunits = [\"x\"]\ncolour = 1\n").expect("written");
    for command in [
        &["diagnose"][..],
        &["check"],
        &["serve"],
        &["fix"],
        &["image", "audit", "/"],
    ] {
        let arguments = [command, &["--signatures", text(place.path())]].concat();
        let output = sexton(&arguments);
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        let expected = format!("{}:3: unknown field `colour`", file.display());
        assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
    }
    let none = place.path().join("none");
    let output = sexton(&["diagnose", "--signatures", text(&none)]);
    assert!(
        stderr(&output).contains("cannot read"),
        "{}",
        stderr(&output)
    );
    fs::create_dir(&none).expect("a folder");
    let output = sexton(&["diagnose", "--signatures", text(&none)]);
    assert!(stderr(&output).contains("has no file of signatures"));
}
