//! After a reboot: is what was open before it really gone? Each finding that was open when the
//! earlier boot ended is held against what this boot shows: the rule was assessed for ten minutes
//! and found nothing, the unit is off or on without the finding, the count of dying memory
//! cgroups is flat.
//!
//! Time counts only between two verdicts that both assessed the rule: not while no agent ran, and
//! not while its sensors were blind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sexton_analysis::rules;
use sexton_model::diagnosis::Diagnosis;
use sexton_model::fact::memcg::MEMCG_DYING;
use sexton_model::fact::unit::{UNIT_CHANGED, UNIT_CONTEXT, UNIT_FILE, UNIT_SEEN, UNIT_SHAPE};
use sexton_model::family::Family;
use sexton_model::finding::Severity;
use sexton_model::moment::Moment;
use sexton_model::record::{Event, Record};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::timeline::Timeline;
use sexton_store::{Boot, Bundle, Ring};

use crate::findings::{Lived, lives_of};

/// A rule is assessed for this long before what it found is called gone.
///
/// Chosen: twice the slowest restart loop that UNIT001 calls one within its usual window.
pub const WATCH: Duration = Duration::from_secs(600);

/// Verdicts that are further apart say nothing of the time between them.
const APART: Duration = Duration::from_secs(90);

/// The sensor that says which units are off.
const UNIT_FILES: &str = "unit_files";

/// A boot that was shorter than this proves nothing of the ones before it.
const SHORT: Duration = WATCH;

/// Boots that are looked back at most, and findings of theirs.
const MAX_BOOTS: usize = 8;
const MAX_FINDINGS: usize = 64;

/// Dying memory cgroups may grow by this many while a boot is watched: a few come and go on any
/// node.
const FLAT: f64 = 16.0;

/// What became of a finding that was open before the reboot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BootProof {
    /// `CODE:subject`.
    pub id: String,
    /// The code of its rule.
    pub code: String,
    /// Whether it is proved to be gone.
    pub is_proved: bool,
    /// The proof, or what is missing.
    pub text: String,
}

impl BootProof {
    /// The family of its rule.
    pub fn family(&self) -> Option<Family> {
        rules::by_code(&self.code).map(|rule| rule.family)
    }
}

/// For how long rules were assessed and found nothing, since this agent started.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    last: Option<Moment>,
    /// Rules that the last verdict assessed and that found nothing.
    quiet: BTreeSet<&'static str>,
    time: BTreeMap<&'static str, Duration>,
    /// What could not be read of files of units, and when. It is remembered here, because the
    /// judge forgets it before the proof.
    unread: Option<(Moment, String)>,
}

impl Watched {
    /// Takes a verdict and what it was made of.
    pub(crate) fn take(&mut self, at: Moment, diagnosis: &Diagnosis, timeline: &dyn Timeline) {
        let unread = timeline
            .gaps()
            .filter(|(_, _, gap)| gap.sensor == UNIT_FILES);
        if let Some((at, _, gap)) = unread.max_by_key(|(at, ..)| *at) {
            self.unread = Some((at, gap.text.clone()));
        }
        let passed = self.last.replace(at).map(|last| at.since(last));
        let passed = passed.filter(|passed| *passed <= APART).unwrap_or_default();
        let mut quiet = BTreeSet::new();
        for code in rules::RULES.iter().map(|rule| rule.code) {
            let is_found = diagnosis.findings.iter().any(|it| it.code == code);
            let is_blind = diagnosis.not_judged.iter().any(|it| it.code == code);
            if is_found {
                self.time.remove(code);
            } else if !is_blind {
                quiet.insert(code);
                if self.quiet.contains(code) {
                    *self.time.entry(code).or_default() += passed;
                }
            }
        }
        self.quiet = quiet;
    }

    fn of(&self, code: &str) -> Duration {
        self.time.get(code).copied().unwrap_or_default()
    }
}

/// What was open when the boots before this one ended. Short boots prove nothing, so it is
/// looked further back until one was watched for long enough.
pub(crate) fn open_before(ring: &Ring, current: &Boot) -> Vec<Lived> {
    let boots = ring.boots().unwrap_or_default();
    let earlier = boots
        .iter()
        .rev()
        .filter(|boot| boot.sequence < current.sequence);
    let mut open: BTreeMap<String, Lived> = BTreeMap::new();
    for boot in earlier.take(MAX_BOOTS) {
        if let Ok((lives, _)) = lives_of(&boot.findings) {
            let graver = |lived: &Lived| lived.life.finding.severity >= Severity::Warning;
            let left = lives.into_iter().filter(|it| it.life.resolved.is_none());
            for lived in left.filter(graver).take(MAX_FINDINGS) {
                open.entry(lived.life.finding.id().to_string())
                    .or_insert(lived);
            }
        }
        let span = Bundle::open(&boot.records).ok().and_then(|it| it.span());
        if span.is_some_and(|span| span.end().since(*span.start()) >= SHORT) {
            break;
        }
    }
    open.into_values().take(MAX_FINDINGS).collect()
}

/// Holds what was open before against what this boot shows.
pub(crate) fn prove(
    earlier: &[Lived],
    timeline: &dyn Timeline,
    diagnosis: &Diagnosis,
    watched: &Watched,
) -> Vec<BootProof> {
    let proofs = earlier.iter().map(|lived| {
        let finding = &lived.life.finding;
        let checked = check(&finding.subject, finding.code, timeline, diagnosis, watched);
        let (is_proved, text) = match checked {
            Ok(text) => (true, text),
            Err(text) => (false, text),
        };
        BootProof {
            id: finding.id().to_string(),
            code: finding.code.to_owned(),
            is_proved,
            text,
        }
    });
    proofs.collect()
}

/// The proof, or what is missing.
fn check(
    subject: &Subject,
    code: &str,
    timeline: &dyn Timeline,
    diagnosis: &Diagnosis,
    watched: &Watched,
) -> Result<String, String> {
    let again = diagnosis.findings.iter().find(|it| it.code == code);
    if let Some(again) = again {
        return Err(format!("{code} is back: {}", again.title));
    }
    if let Some(missing) = diagnosis.not_judged.iter().find(|it| it.code == code) {
        return Err(format!("{code} cannot be assessed: {}", missing.because));
    }
    let quiet = watched.of(code);
    let minutes = quiet.as_secs() / 60;
    if quiet < WATCH {
        let needed = WATCH.as_secs() / 60;
        return Err(format!(
            "{code} was assessed without a finding for {minutes} of {needed} min"
        ));
    }
    let mut proof = Vec::new();
    if subject.kind == SubjectKind::Unit {
        let unread = watched.unread.as_ref();
        proof.push(unit(subject, timeline, unread)?);
    }
    if code.starts_with("MCG") {
        proof.push(flat_count(timeline)?);
    }
    proof.push(format!(
        "{code} assessed for {minutes} min without a finding"
    ));
    Ok(proof.join(", "))
}

/// What this boot says of the unit: that it is off, or that it is on. Where no file of it was
/// looked for, nothing is said.
fn unit(
    subject: &Subject,
    timeline: &dyn Timeline,
    unread: Option<&(Moment, String)>,
) -> Result<String, String> {
    let name = &*subject.name;
    let Some(look) = timeline.of(&UNIT_SHAPE).map(|record| record.at).max() else {
        let why = unread.map_or("files of units were not looked at", |(_, why)| why.as_str());
        return Err(format!("cannot tell whether {name} is on: {why}"));
    };
    let of_look = |record: &&Record| record.at == look;
    let mut files = timeline.of(&UNIT_FILE).filter(of_look);
    if let Some(record) = files.find(|record| record.subject == *subject) {
        let file = Event::of(record, &UNIT_FILE).and_then(|event| event.says.state.clone());
        let file = file.filter(|state| !state.is_empty());
        return Ok(on(subject, file.as_deref().unwrap_or("on"), timeline));
    }
    let parts = timeline.of(&UNIT_CONTEXT).filter(of_look);
    for event in parts.filter_map(|record| Event::of(record, &UNIT_CONTEXT)) {
        if let Some(unit) = event.says.units.iter().find(|unit| unit.name == name) {
            return Ok(match &unit.alias_of {
                Some(other) => format!("{name} is another name of {other}"),
                None => format!("{name} is {}", unit.state),
            });
        }
    }
    match unread.filter(|(at, _)| *at >= look) {
        Some((_, why)) => Err(format!("cannot tell whether {name} is installed: {why}")),
        None => Ok(format!("{name} is not installed")),
    }
}

/// A unit that a boot starts: the state of its file, and its own where systemd was asked.
fn on(subject: &Subject, file: &str, timeline: &dyn Timeline) -> String {
    let seen = timeline.of(&UNIT_SEEN).chain(timeline.of(&UNIT_CHANGED));
    let seen = seen.filter(|record| record.subject == *subject);
    let last = seen.max_by_key(|record| record.at);
    let says = last.and_then(|it| it.says(&UNIT_SEEN).or(it.says(&UNIT_CHANGED)));
    match says.and_then(|says| says.active.as_deref()) {
        Some(active) => format!("{} is {file} and {active}", subject.name),
        None => format!("{} is {file}", subject.name),
    }
}

/// That dying memory cgroups do not grow.
fn flat_count(timeline: &dyn Timeline) -> Result<String, String> {
    let counts = timeline
        .of(&MEMCG_DYING)
        .filter(|record| record.subject == Subject::node());
    let counts: Vec<(Moment, f64)> = counts
        .filter_map(|record| Some((record.at, record.value()?)))
        .collect();
    let ([first, ..], Some(last)) = (counts.as_slice(), counts.last()) else {
        return Err("dying memory cgroups were not counted".to_owned());
    };
    let minutes = last.0.since(first.0).as_secs() / 60;
    let text = format!(
        "{:.0} to {:.0} dying memory cgroups in {minutes} min",
        first.1, last.1
    );
    match last.1 - first.1 <= FLAT {
        true => Ok(text),
        false => Err(format!("the count still grows: {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sexton_analysis::{Policy, judge};
    use sexton_model::fact::unit::{UnitContext, UnitFile, UnitSeen, UnitShape, UnitState};
    use sexton_model::finding::{Confidence, Finding};
    use sexton_model::gap::{Gap, Why};
    use sexton_model::record::Sink;
    use sexton_model::timeline::Records;

    const MINUTES: [u64; 4] = [1, 4, 8, 12];

    fn at(minute: u64) -> Moment {
        Moment::from_ns(minute * 60_000_000_000)
    }

    fn boot(dying: [f64; 4], file: Option<&str>, off: Option<&str>) -> Records {
        let mut out = Sink::new("unit_files", at(1));
        let subject = Subject::new(SubjectKind::Unit, "ecs.service");
        out.event(at(1), &Subject::node(), &UNIT_SHAPE, UnitShape::default());
        if let Some(state) = file {
            let state = Some(state.to_owned());
            out.event(
                at(1),
                &subject,
                &UNIT_FILE,
                UnitFile {
                    state,
                    ..UnitFile::default()
                },
            );
        }
        if let Some(state) = off {
            let units = vec![UnitState {
                name: "ecs.service".into(),
                state: state.into(),
                ..UnitState::default()
            }];
            let says = UnitContext {
                units,
                ..UnitContext::default()
            };
            out.event(at(1), &Subject::node(), &UNIT_CONTEXT, says);
        }
        let mut records = out.into_records();
        records.extend(counts(dying));
        Records::new(records)
    }

    fn counts(dying: [f64; 4]) -> Vec<Record> {
        let mut records = Vec::new();
        for (minute, dying) in MINUTES.into_iter().zip(dying) {
            let mut out = Sink::new("memcg", at(minute));
            out.sample(&Subject::node(), &MEMCG_DYING, dying);
            records.extend(out.into_records());
        }
        records
    }

    /// What is said of a finding; rules count as assessed.
    fn check(code: &str, unit: &str, boot: &Records, minutes: u64) -> Result<String, String> {
        let mut diagnosis = judge(&Records::default(), &Policy::default());
        diagnosis.not_judged.clear();
        let subject = Subject::new(SubjectKind::Unit, unit);
        super::check(&subject, code, boot, &diagnosis, &quiet(minutes))
    }

    /// All rules were assessed for so long and found nothing.
    fn quiet(minutes: u64) -> Watched {
        let time = Duration::from_secs(minutes * 60);
        Watched {
            time: rules::RULES.iter().map(|rule| (rule.code, time)).collect(),
            ..Watched::default()
        }
    }

    #[test]
    fn a_masked_unit_and_a_flat_count_are_proof() {
        let boot = boot([3.0, 4.0, 3.0, 5.0], None, Some("masked"));
        let proof = check("MCG001", "ecs.service", &boot, 12).expect("it is proved");
        assert_eq!(
            proof,
            "ecs.service is masked, 3 to 5 dying memory cgroups in 11 min, \
             MCG001 assessed for 12 min without a finding"
        );
    }

    #[test]
    fn a_unit_that_is_gone_is_said_to_be() {
        let boot = boot([0.0; 4], None, None);
        let proof = check("UNIT001", "ecs.service", &boot, 10).expect("it is proved");
        assert_eq!(
            proof,
            "ecs.service is not installed, UNIT001 assessed for 10 min without a finding"
        );
    }

    #[test]
    fn a_unit_that_is_on_is_proved_by_its_rule_alone() {
        let boot = boot([0.0; 4], Some("enabled"), None);
        let proof = check("UNIT001", "ecs.service", &boot, 10).expect("it is proved");
        assert_eq!(
            proof,
            "ecs.service is enabled, UNIT001 assessed for 10 min without a finding"
        );
        let missing = check("UNIT001", "ecs.service", &boot, 9).expect_err("too early");
        assert_eq!(
            missing,
            "UNIT001 was assessed without a finding for 9 of 10 min"
        );
    }

    #[test]
    fn the_state_of_a_unit_that_is_on_is_told() {
        let subject = Subject::new(SubjectKind::Unit, "ecs.service");
        let mut records: Vec<Record> = boot([0.0; 4], Some("enabled"), None)
            .iter()
            .cloned()
            .collect();
        let mut out = Sink::new("units", at(2));
        let seen = UnitSeen {
            active: Some("active".into()),
            ..UnitSeen::default()
        };
        out.event(at(2), &subject, &UNIT_SEEN, seen);
        records.extend(out.into_records());
        let text = unit(&subject, &Records::new(records), None);
        assert_eq!(text, Ok("ecs.service is enabled and active".to_owned()));
    }

    #[test]
    fn the_last_look_at_the_files_counts() {
        let subject = Subject::new(SubjectKind::Unit, "ecs.service");
        let mut records: Vec<Record> = boot([0.0; 4], Some("enabled"), None)
            .iter()
            .cloned()
            .collect();
        let mut out = Sink::new("unit_files", at(5));
        out.event(at(5), &Subject::node(), &UNIT_SHAPE, UnitShape::default());
        records.extend(out.into_records());
        let text = unit(&subject, &Records::new(records), None);
        assert_eq!(text, Ok("ecs.service is not installed".to_owned()));
    }

    /// No record of a unit is no proof that it is not there.
    #[test]
    fn what_no_sensor_looked_at_is_not_proved() {
        let subject = Subject::new(SubjectKind::Unit, "ecs.service");
        let unseen = Records::new(counts([0.0; 4]));
        let missing = check("UNIT001", "ecs.service", &unseen, 10);
        let text = "cannot tell whether ecs.service is on: files of units were not looked at";
        assert_eq!(missing, Err(text.to_owned()));
        let blind = |at: Moment, records: Vec<Record>| {
            let mut out = Sink::new("unit_files", at);
            let gap = Gap::new("unit_files", Why::Denied, "cannot read /etc/systemd/system");
            out.gap(&Subject::node(), gap);
            let records = Records::new([records, out.into_records()].concat());
            let diagnosis = judge(&Records::default(), &Policy::default());
            let mut watched = Watched::default();
            watched.take(at, &diagnosis, &records);
            // Ten minutes later the judge has no such gap any more.
            watched.take(at, &diagnosis, &Records::default());
            unit(&subject, &records, watched.unread.as_ref())
        };
        let text = "cannot tell whether ecs.service is on: cannot read /etc/systemd/system";
        assert_eq!(blind(at(1), Vec::new()), Err(text.to_owned()));
        let looked: Vec<Record> = boot([0.0; 4], None, None).iter().cloned().collect();
        let text = "cannot tell whether ecs.service is installed: cannot read /etc/systemd/system";
        assert_eq!(blind(at(1), looked.clone()), Err(text.to_owned()));
        let text = "ecs.service is not installed";
        assert_eq!(blind(at(0), looked), Ok(text.to_owned()), "an earlier look");
    }

    /// Verdicts at these seconds, each with what they say of UNIT001, and the time that counts.
    fn watched(verdicts: &[(u64, Word)]) -> u64 {
        let mut watched = Watched::default();
        for (second, word) in verdicts {
            let mut diagnosis = judge(&Records::default(), &Policy::default());
            if *word != Word::Blind {
                diagnosis.not_judged.clear();
            }
            if *word == Word::Found {
                diagnosis.findings.push(finding());
            }
            let at = Moment::from_ns(second * 1_000_000_000);
            watched.take(at, &diagnosis, &Records::default());
        }
        watched.of("UNIT001").as_secs()
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Word {
        Quiet,
        Blind,
        Found,
    }

    fn finding() -> Finding {
        Finding {
            code: "UNIT001",
            subject: Subject::new(SubjectKind::Unit, "ecs.service"),
            severity: Severity::Serious,
            confidence: Confidence::CERTAIN,
            title: "it loops".into(),
            figure: String::new(),
            since: None,
            evidence: Vec::new(),
            remedies: Vec::new(),
            touched: Vec::new(),
            episodes: Vec::new(),
        }
    }

    #[test]
    fn only_time_that_was_watched_counts() {
        use Word::{Blind, Found, Quiet};
        let every_30_s: Vec<(u64, Word)> = (0..=20).map(|n| (n * 30, Quiet)).collect();
        assert_eq!(watched(&every_30_s), 600);
        assert_eq!(
            watched(&[(3_610, Quiet)]),
            0,
            "the first verdict proves nothing"
        );
        assert_eq!(watched(&[(0, Quiet), (30, Quiet), (3_600, Quiet)]), 30);
        assert_eq!(watched(&[(0, Blind), (30, Blind), (60, Quiet)]), 0);
        assert_eq!(
            watched(&[
                (0, Quiet),
                (30, Quiet),
                (60, Blind),
                (90, Quiet),
                (120, Quiet)
            ]),
            60
        );
        assert_eq!(
            watched(&[
                (0, Quiet),
                (30, Quiet),
                (60, Found),
                (90, Quiet),
                (120, Quiet)
            ]),
            30,
            "it starts over"
        );
    }

    #[test]
    fn what_grows_is_not_gone() {
        let boot = boot([0.0, 10.0, 20.0, 30.0], None, Some("masked"));
        let missing = check("MCG001", "ecs.service", &boot, 12).expect_err("it grows");
        assert_eq!(
            missing,
            "the count still grows: 0 to 30 dying memory cgroups in 11 min"
        );
    }

    #[test]
    fn what_is_not_assessed_is_not_gone() {
        let diagnosis = judge(&Records::default(), &Policy::default());
        let subject = Subject::new(SubjectKind::Unit, "a.service");
        let records = Records::default();
        let missing = super::check(&subject, "UNIT001", &records, &diagnosis, &quiet(10));
        let missing = missing.expect_err("nothing was seen");
        assert!(
            missing.starts_with("UNIT001 cannot be assessed"),
            "{missing}"
        );
    }
}
