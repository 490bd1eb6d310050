use super::*;
use proptest::prelude::*;
use sexton_model::payload::{Payload, stored};

fn known() -> KernelLog {
    KernelLog::built_in().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_first_that_fits_an_example_is_its_own() {
    let signatures = known();
    for pattern in &signatures.patterns {
        signatures.prove(&pattern.id).expect("its proofs hold");
        for hit in &pattern.hits {
            let known = signatures.find(hit.line.as_bytes()).expect("it is found");
            assert_eq!(known.pattern.id, pattern.id, "{:?}", hit.line);
        }
    }
}

#[test]
fn no_example_is_of_two_classes() {
    let signatures = known();
    for pattern in &signatures.patterns {
        for hit in &pattern.hits {
            for known in signatures.all_that_fit(hit.line.as_bytes()) {
                assert_eq!(
                    known.pattern.class, pattern.class,
                    "{:?} also fits {}",
                    hit.line, known.pattern.id
                );
            }
        }
    }
}

#[test]
fn every_wording_has_an_example_and_every_class_a_pattern() {
    let signatures = known();
    for pattern in &signatures.patterns {
        for (wording, text) in pattern.parsed.iter().zip(&pattern.wordings) {
            let shown = pattern.hits.iter().any(|hit| {
                let line = hit.line.as_bytes();
                let rest = match pattern.at {
                    Place::Line => Some(line),
                    Place::Device => Prefix::of(line).map(|prefix| prefix.rest),
                };
                rest.is_some_and(|rest| wording.fit(rest).is_some())
            });
            assert!(shown, "{}: {text:?} has no example", pattern.id);
        }
    }
    for (class, _) in CLASSES {
        let used = signatures
            .patterns
            .iter()
            .any(|pattern| pattern.class == *class);
        assert!(used, "nothing is of the class {class}");
    }
}

fn check_refused(text: &str, complaint: &str) {
    let refused = KernelLog::default().add_file(Path::new("x.toml"), text);
    let error = refused.expect_err("it is wrong").to_string();
    assert!(
        error.contains("x.toml") && error.contains(complaint),
        "{error}"
    );
}

#[test]
fn what_is_wrong_is_refused() {
    let pattern = |more: &str| {
        format!(
            "driver = \"x\"\n[[pattern]]\nid = \"a\"\nclass = \"nic_reset\"\nwordings = [\"w\"]\nsource = \"s\"\nhits = [{{ line = \"x 1: w\", captures = {{ bus = \"1\" }} }}]\nmisses = [\"v\"]\n{more}\n"
        )
    };
    let right = KernelLog::default().add_file(Path::new("x.toml"), &pattern(""));
    right.expect("it is right");
    check_refused(&pattern("colour = 1"), "x.toml:9: unknown field `colour`");
    check_refused(
        &pattern("fields = { q = { trust = false } }"),
        "no wording captures",
    );
    check_refused(&pattern("").replace("nic_reset", "nic_rest"), "is no class");
    check_refused(&pattern("").replace("[\"v\"]", "[]"), "one of its proofs");
    check_refused(&pattern("").replace("[\"w\"]", "[\"{w\"]"), "not closed");
    check_refused(&pattern("").replace("x 1: w", "x 1: v"), "its hit");
    check_refused(&pattern("").replace("[\"v\"]", "[\"x 1: w\"]"), "its miss");
}

fn check(line: &str, subject: &str, expected: &[(&str, &str)], absent: &[&str]) {
    let ens5 = line.contains("0000:00:05.0").then(|| "ens5".to_owned());
    let seen = KernelLine {
        line: Some(line.to_owned()),
        seq: Some(7),
        device: ens5,
        ..KernelLine::default()
    };
    let (about, says) = known().recognize(&seen).expect("it is known");
    assert_eq!(about.to_string(), subject);
    let fields = says.fields();
    let get = |key: &str| stored(&fields, key).map(ToString::to_string);
    for (key, value) in expected {
        assert_eq!(get(key).as_deref(), Some(*value), "{key}");
    }
    for key in absent {
        assert_eq!(get(key), None, "{key}");
    }
}

#[test]
fn a_line_of_a_device_is_about_that_device() {
    check(
        "ena 0000:00:05.0 ens6: Trigger reset is on",
        "device ens6",
        &[
            ("id", "ena-trigger-reset"),
            ("class", "nic_reset"),
            ("driver", "ena"),
            ("seq", "7"),
            ("bus", "0000:00:05.0"),
            ("line", "ena 0000:00:05.0 ens6: Trigger reset is on"),
        ],
        &["doubtful", "queue"],
    );
}

#[test]
fn an_address_leads_to_the_interface() {
    let line = "ena 0000:00:05.0: Device reset completed successfully";
    check(line, "device ens5", &[("device", "ens5")], &[]);
    let other = "ena 0000:00:09.0: Device reset completed successfully";
    check(other, "node", &[("bus", "0000:00:09.0")], &["device"]);
}

#[test]
fn what_a_driver_says_wrongly_is_doubtful() {
    check(
        "ena 0000:00:05.0 ens5: [2/2] qid: 3, napi CPU: 11",
        "device ens5",
        &[("doubtful", "queue=3 cpu=11")],
        &["queue", "cpu"],
    );
}

#[test]
fn what_a_program_writes_is_marked_and_harmless() {
    check(
        "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [a\\033[31m:9]",
        "cpu 3",
        &[
            ("cpu", "3"),
            ("comm", r"a\033[31m"),
            (
                "line",
                r"watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [a\033[31m:9]",
            ),
        ],
        &["device", "driver"],
    );
}

proptest! {
    #[test]
    fn any_line_is_taken(text in prop::collection::vec(any::<u8>(), 0..120)) {
        thread_local!(static ALL: KernelLog = known());
        ALL.with(|all| { all.find(&text); });
    }
}
