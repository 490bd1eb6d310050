//! `sexton profile record` of real programs: one that spends known shares in known functions, one
//! whose children live for milliseconds, one that runs already, and one of a user without
//! privileges.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, Output};

use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton::binary;
use sexton_kernel_tests::spinner::Spinner;
use sexton_kernel_tests::storm::Storm;

const USER: u32 = 65_534;

fn needs() {
    require(Need::Root);
    require(Need::Sexton);
    require(Need::Program("cc"));
}

fn sexton() -> Command {
    Command::new(binary().expect("it is built"))
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// The share of samples below a function, as `profile top` prints it.
fn share(bundle: &Path, function: &str) -> f64 {
    let all = ["profile", "top", "-n", "10000"];
    let output = sexton().args(all).arg(bundle).output();
    let output = output.expect("it is there");
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let is_it = |line: &&str| line.split_whitespace().any(|word| word == function);
    let line = text.lines().find(is_it);
    let line = line.unwrap_or_else(|| panic!("no {function} in {text}"));
    let total = line.split_whitespace().nth(1).expect("a column");
    total.trim_end_matches('%').parse().expect("a number")
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn a_program_is_recorded_from_its_start_to_its_end() {
    needs();
    let spinner = Spinner::build("record");
    let bundle = spinner.folder().join("bundle");
    let recorded = sexton()
        .args(["profile", "record", "-o"])
        .arg(&bundle)
        .arg("--")
        .arg(spinner.path())
        .args(["shares", "2000"])
        .output()
        .expect("it is there");
    assert_eq!(recorded.status.code(), Some(0), "{}", said(&recorded));
    for (function, expected) in [("alpha", 61.0), ("beta", 29.0), ("gamma_", 10.0)] {
        let found = share(&bundle, function);
        assert!((found - expected).abs() < 6.0, "{function}: {found} %");
    }
    for view in [&["heatmap"][..], &["flame", "--format", "text"], &["top"]] {
        let shown = sexton().arg("profile").args(view).arg(&bundle).output();
        let shown = shown.expect("it is there");
        assert_eq!(shown.status.code(), Some(0), "{view:?}: {}", said(&shown));
    }
    let again = sexton()
        .args(["profile", "record", "-o"])
        .arg(&bundle)
        .args(["--", "true"])
        .output()
        .expect("it is there");
    assert_eq!(again.status.code(), Some(2));
    assert!(
        said(&again).contains("is there already"),
        "{}",
        said(&again)
    );
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn children_that_live_for_milliseconds_have_names() {
    needs();
    let storm = Storm::build("record");
    let bundle = storm.folder().join("bundle");
    let recorded = sexton()
        .args(["profile", "record", "-o"])
        .arg(&bundle)
        .arg("--")
        .arg(storm.path())
        .args(["exec", "1500", "2000"])
        .output()
        .expect("it is there");
    assert_eq!(recorded.status.code(), Some(0), "{}", said(&recorded));
    let found = share(&bundle, "in_program");
    assert!(found > 30.0, "{found} % in the children's function");
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn a_process_that_runs_is_recorded_until_it_exits() {
    needs();
    let spinner = Spinner::build("record-pid");
    let bundle = spinner.folder().join("bundle");
    let spinning = spinner.start(1, &["shares", "2000"]);
    let recorded = sexton()
        .args(["profile", "record", "-o"])
        .arg(&bundle)
        .arg(spinning.pid().to_string())
        .output()
        .expect("it is there");
    spinning.join();
    assert_eq!(recorded.status.code(), Some(0), "{}", said(&recorded));
    assert!((share(&bundle, "alpha") - 61.0).abs() < 8.0);
    let gone = sexton()
        .args(["profile", "record", "-o"])
        .arg(spinner.folder().join("none"))
        .arg(i32::MAX.to_string())
        .output()
        .expect("it is there");
    assert_eq!(gone.status.code(), Some(2));
    assert!(said(&gone).contains("no such process"), "{}", said(&gone));
    assert!(!spinner.folder().join("none").exists());
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn without_root_own_programs_are_recorded_and_others_refused() {
    needs();
    let spinner = Spinner::build("record-user");
    let place = spinner.folder();
    let open = fs::Permissions::from_mode(0o755);
    let own = place.join("own");
    fs::create_dir(&own).expect("made");
    chown(&own, Some(USER), Some(USER)).expect("given away");
    // The build may lie where only its owner gets to.
    let sexton = place.join("sexton");
    fs::copy(binary().expect("it is built"), &sexton).expect("copied");
    for path in [place, &sexton, &spinner.path()] {
        fs::set_permissions(path, open.clone()).expect("our own");
    }
    let as_user = |arguments: &[&str], rest: &[&Path]| {
        let output = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
            .arg(&sexton)
            .args(["profile", "record"])
            .args(arguments)
            .args(rest)
            .output();
        output.expect("setpriv is there")
    };
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").expect("it is there");
    let level: i32 = level.trim().parse().expect("a number");
    let bundle = own.join("bundle");
    let output = format!("-o{}", bundle.display());
    let path = spinner.path();
    let recorded = as_user(
        &[&output, "--"],
        &[&path, "shares".as_ref(), "1000".as_ref()],
    );
    let text = said(&recorded);
    if level > 2 {
        assert_eq!(recorded.status.code(), Some(2), "{text}");
        assert!(text.contains("perf_event_paranoid=2"), "{text}");
        return;
    }
    assert_eq!(recorded.status.code(), Some(0), "{text}");
    assert_eq!(text.contains("no kernel functions"), level == 2, "{text}");
    assert!((share(&bundle, "alpha") - 61.0).abs() < 8.0);
    let output = format!("-o{}", own.join("none").display());
    let refused = as_user(&[&output, "1"], &[]);
    assert_eq!(refused.status.code(), Some(2));
    let text = said(&refused);
    assert!(text.contains("run as root"), "{text}");
}
