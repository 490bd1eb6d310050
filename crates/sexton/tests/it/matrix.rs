//! Every bundle under `fixtures/` is judged by every rule. A new rule shows where it fires on
//! old nodes, and a new capture tests all rules.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sexton_analysis::{Cause, Policy, Rule, judge, rules::RULES};
use sexton_model::diagnosis::Diagnosis;
use sexton_model::fact::unit::{UNIT_SEEN, UnitSeen};
use sexton_model::finding::{Confidence, FindingId, Severity};
use sexton_model::record::{Record, Sink};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::timeline::{Records, Timeline};
use sexton_store::Bundle;
use sexton_testkit::check_snapshot;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// The bundles there are, by their place.
pub(crate) fn bundles() -> BTreeMap<String, Records> {
    let mut found = BTreeMap::new();
    let mut folders = vec![fixtures()];
    while let Some(folder) = folders.pop() {
        if folder.join("bundle.json").is_file() {
            let name = folder.strip_prefix(fixtures()).expect("it is below");
            let bundle = Bundle::open(&folder).expect("a bundle");
            found.insert(name.display().to_string(), bundle.load_to_judge());
            continue;
        }
        let entries = fs::read_dir(&folder).expect("a folder").flatten();
        folders.extend(
            entries
                .map(|entry| entry.path())
                .filter(|path| path.is_dir()),
        );
    }
    assert!(!found.is_empty(), "no bundle below fixtures");
    found
}

fn diagnose(records: &Records) -> Diagnosis {
    judge(records, &Policy::default())
}

#[test]
fn every_capture_is_judged_by_every_rule() {
    let mut table = String::new();
    for (name, records) in bundles() {
        let diagnosis = diagnose(&records);
        writeln!(table, "{name}: {}", diagnosis.state.name()).expect("a string takes all");
        for rule in RULES {
            let said = said_by(rule, &diagnosis);
            if !said.is_empty() {
                writeln!(table, "  {:<8} {}", rule.code, said.join("; ")).expect("a string");
            }
        }
    }
    check_snapshot!("matrix.txt", table);
}

/// What one rule found, or that it could not assess the node; nothing where it is silent.
fn said_by(rule: &Rule, diagnosis: &Diagnosis) -> Vec<String> {
    let found = diagnosis.findings.iter().filter(|f| f.code == rule.code);
    let found = found.map(|f| {
        let (severity, confidence) = (f.severity.name(), f.confidence.word());
        format!("{severity} {confidence} {}", f.subject)
    });
    let not_judged = diagnosis.not_judged.iter().any(|n| n.code == rule.code);
    found
        .chain(not_judged.then(|| "not assessed".to_owned()))
        .collect()
}

/// What is known to be so of each capture: its `capture.toml` says it, the judge must too.
#[test]
fn every_capture_is_judged_as_it_was() {
    for (name, records) in bundles() {
        let text = fs::read_to_string(fixtures().join(&name).join("capture.toml"));
        let capture: toml::Table = toml::from_str(&text.expect("its provenance")).expect("TOML");
        let expected = capture["expected"].as_table().expect("what is known");
        let diagnosis = diagnose(&records);
        let state = expected["state"].as_str().expect("a state");
        assert_eq!(diagnosis.state.name(), state, "{name}");
        let ids = |value: &toml::Value| -> Vec<String> {
            let all = value.as_array().expect("a list").iter();
            all.map(|id| id.as_str().expect("an id").to_owned())
                .collect()
        };
        let roots: Vec<String> = accused(&diagnosis)
            .keys()
            .map(ToString::to_string)
            .collect();
        assert_eq!(roots, ids(&expected["accused"]), "{name}: who is accused");
        for chain in expected["chains"].as_array().expect("chains") {
            let links = ids(chain);
            let is_part = |own: &Vec<FindingId>| {
                let own: Vec<&str> = own.iter().map(FindingId::as_str).collect();
                links.iter().all(|id| own.contains(&id.as_str()))
                    && own.first() == links.first().map(String::as_str).as_ref()
            };
            let found = diagnosis.chains.iter().any(is_part);
            assert!(found, "{name}: {links:?} in {:?}", diagnosis.chains);
        }
    }
}

/// Who is accused of being what all began with, and how surely.
fn accused(diagnosis: &Diagnosis) -> BTreeMap<FindingId, Confidence> {
    let mut accused = BTreeMap::new();
    for chain in &diagnosis.chains {
        if let Some(first) = chain.first().and_then(|id| diagnosis.finding(id))
            && first.severity > Severity::Note
            && RULES
                .iter()
                .any(|rule| rule.code == first.code && rule.cause != Cause::Never)
        {
            accused.insert(first.id(), first.confidence);
        }
    }
    accused
}

/// Who has a part in it that can begin a chain, and how surely: who is the root without all
/// else, and whoever is one once a link between them is not seen any more. By who it is: what
/// systemd restarts is told by its loop without systemd's own word.
fn suspects(diagnosis: &Diagnosis) -> BTreeMap<String, Confidence> {
    let mut all = BTreeMap::new();
    let is_cause = |code: &str| {
        RULES
            .iter()
            .any(|rule| rule.code == code && rule.cause != Cause::Never)
    };
    for finding in diagnosis.findings.iter().filter(|one| is_cause(one.code)) {
        let sure = all
            .entry(party(&finding.subject))
            .or_insert(finding.confidence);
        *sure = finding.confidence.max(*sure);
    }
    all
}

/// Whose name it is: a socket and the template that it starts are one.
fn party(subject: &Subject) -> String {
    let name = subject.to_string();
    let socket = name
        .strip_suffix("@.service")
        .map(|stem| format!("{stem}.socket"));
    socket.unwrap_or(name)
}

#[test]
fn less_sight_accuses_nobody_else_and_is_never_surer() {
    for (name, records) in bundles() {
        let whole = diagnose(&records);
        let mut sensors: Vec<String> = records.iter().map(|r| r.sensor.to_string()).collect();
        sensors.sort();
        sensors.dedup();
        for sensor in sensors {
            let rest = records
                .iter()
                .filter(|record| record.sensor != sensor.as_str());
            let part = diagnose(&Records::new(rest.cloned().collect()));
            let known = suspects(&whole);
            for (id, confidence) in accused(&part) {
                let who = party(&part.finding(&id).expect("it is accused").subject);
                let before = known.get(&who);
                let before = before.unwrap_or_else(|| panic!("{name} without {sensor}: {who}"));
                assert!(
                    confidence <= *before,
                    "{name} without {sensor} is surer of {who}"
                );
            }
        }
    }
}

#[test]
fn the_order_of_records_changes_nothing() {
    for (name, records) in bundles() {
        let whole = format!("{:?}", diagnose(&records));
        let mut reversed: Vec<Record> = records.iter().cloned().collect();
        reversed.reverse();
        let again = format!("{:?}", diagnose(&Records::new(reversed)));
        assert!(whole == again, "{name} depends on the order of records");
    }
}

#[test]
fn healthy_units_beside_it_change_nothing() {
    for (name, records) in bundles() {
        let whole = diagnose(&records);
        let mut more: Vec<Record> = records.iter().cloned().collect();
        let start = *records.span().expect("records").start();
        for i in 0..23 {
            let mut out = Sink::new("units", start);
            let unit = Subject::new(SubjectKind::Unit, format!("quiet{i}.service"));
            let seen = UnitSeen {
                active: Some("active".into()),
                ..UnitSeen::default()
            };
            out.event(start, &unit, &UNIT_SEEN, seen);
            more.extend(out.into_records());
        }
        let again = diagnose(&Records::new(more));
        assert_eq!(again.chains, whole.chains, "{name}");
        assert_eq!(again.confidence, whole.confidence, "{name}");
    }
}

#[test]
fn chains_have_no_ring_and_leave_nobody_out() {
    for (name, records) in bundles() {
        let diagnosis = diagnose(&records);
        for chain in &diagnosis.chains {
            let mut ids = chain.clone();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), chain.len(), "{name}: a ring in {chain:?}");
        }
        for finding in &diagnosis.findings {
            let id = finding.id();
            assert!(
                diagnosis.chains.iter().any(|chain| chain.contains(&id)),
                "{name}: {id}"
            );
        }
    }
}
