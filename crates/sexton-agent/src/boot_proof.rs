//! After a reboot: is what was open before it really gone? Each finding that was open when the
//! earlier boot ended is held against what this boot shows: the rule was assessed and found
//! nothing, the unit is off or does not loop, the count of dying memory cgroups is flat.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sexton_analysis::rules;
use sexton_model::diagnosis::Diagnosis;
use sexton_model::fact::memcg::MEMCG_DYING;
use sexton_model::fact::unit::{UNIT_CONTEXT, UNIT_FILE};
use sexton_model::family::Family;
use sexton_model::finding::Severity;
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::timeline::Timeline;
use sexton_store::{Boot, Bundle, Ring};

use crate::findings::{Lived, lives_of};

/// A boot is looked at for this long before anything is called gone.
///
/// Chosen: twice the slowest restart loop that UNIT001 calls one within its usual window.
pub const WATCH: Duration = Duration::from_secs(600);

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

/// Holds what was open before against what this boot shows, which was watched for so long.
pub(crate) fn prove(
    earlier: &[Lived],
    timeline: &dyn Timeline,
    diagnosis: &Diagnosis,
    watched: Duration,
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
    watched: Duration,
) -> Result<String, String> {
    let again = diagnosis.findings.iter().find(|it| it.code == code);
    if let Some(again) = again {
        return Err(format!("{code} is back: {}", again.title));
    }
    if let Some(missing) = diagnosis.not_judged.iter().find(|it| it.code == code) {
        return Err(format!("{code} cannot be assessed: {}", missing.because));
    }
    let minutes = watched.as_secs() / 60;
    if watched < WATCH {
        let needed = WATCH.as_secs() / 60;
        return Err(format!(
            "watched for {minutes} of {needed} min since the boot"
        ));
    }
    let mut proof = Vec::new();
    if subject.kind == SubjectKind::Unit {
        proof.push(unit(subject, timeline));
    }
    if code.starts_with("MCG") {
        proof.push(flat_count(timeline)?);
    }
    proof.push(format!("no {code} in {minutes} min since the boot"));
    Ok(proof.join(", "))
}

/// What this boot says of the unit.
fn unit(subject: &Subject, timeline: &dyn Timeline) -> String {
    let mut state: Option<(Moment, String)> = None;
    let mut newer = |at: Moment, found: String| {
        if state.as_ref().is_none_or(|(known, _)| *known <= at) {
            state = Some((at, found));
        }
    };
    for record in timeline.of(&UNIT_CONTEXT) {
        if let Some(event) = Event::of(record, &UNIT_CONTEXT) {
            let units = event.says.units.iter();
            for found in units.filter(|it| it.name == *subject.name) {
                newer(record.at, found.state.clone());
            }
        }
    }
    for record in timeline.of(&UNIT_FILE).filter(|it| it.subject == *subject) {
        if let Some(event) = Event::of(record, &UNIT_FILE) {
            newer(record.at, event.says.state.clone().unwrap_or_default());
        }
    }
    match state {
        Some((_, state)) if !state.is_empty() => format!("{} is {state}", subject.name),
        _ => format!("{} is not installed", subject.name),
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
    use sexton_model::fact::unit::{UnitContext, UnitFile, UnitState};
    use sexton_model::record::Sink;
    use sexton_model::timeline::Records;

    const MINUTES: [u64; 4] = [1, 4, 8, 12];

    fn at(minute: u64) -> Moment {
        Moment::from_ns(minute * 60_000_000_000)
    }

    fn boot(dying: [f64; 4], file: Option<&str>, off: Option<&str>) -> Records {
        let mut out = Sink::new("memcg", at(1));
        let subject = Subject::new(SubjectKind::Unit, "ecs.service");
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
        for (minute, dying) in MINUTES.into_iter().zip(dying) {
            let mut out = Sink::new("memcg", at(minute));
            out.sample(&Subject::node(), &MEMCG_DYING, dying);
            records.extend(out.into_records());
        }
        Records::new(records)
    }

    /// What is said of a finding; rules count as assessed.
    fn check(code: &str, unit: &str, boot: &Records, minutes: u64) -> Result<String, String> {
        let mut diagnosis = judge(&Records::default(), &Policy::default());
        diagnosis.not_judged.clear();
        let subject = Subject::new(SubjectKind::Unit, unit);
        super::check(
            &subject,
            code,
            boot,
            &diagnosis,
            Duration::from_secs(minutes * 60),
        )
    }

    #[test]
    fn a_masked_unit_and_a_flat_count_are_proof() {
        let boot = boot([3.0, 4.0, 3.0, 5.0], None, Some("masked"));
        let proof = check("MCG001", "ecs.service", &boot, 12).expect("it is proved");
        assert_eq!(
            proof,
            "ecs.service is masked, 3 to 5 dying memory cgroups in 11 min, \
             no MCG001 in 12 min since the boot"
        );
    }

    #[test]
    fn a_unit_that_is_gone_is_said_to_be() {
        let boot = boot([0.0; 4], None, None);
        let proof = check("UNIT001", "ecs.service", &boot, 10).expect("it is proved");
        assert_eq!(
            proof,
            "ecs.service is not installed, no UNIT001 in 10 min since the boot"
        );
    }

    #[test]
    fn the_last_word_on_a_unit_counts() {
        let boot = boot([0.0; 4], Some("enabled"), Some("disabled"));
        let proof = check("UNIT001", "ecs.service", &boot, 10).expect("it is proved");
        assert!(proof.starts_with("ecs.service is enabled"), "{proof}");
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
    fn ten_minutes_are_waited_for() {
        let missing = check("UNIT001", "a.service", &boot([0.0; 4], None, None), 9);
        assert_eq!(
            missing,
            Err("watched for 9 of 10 min since the boot".to_owned())
        );
    }

    #[test]
    fn what_is_not_assessed_is_not_gone() {
        let diagnosis = judge(&Records::default(), &Policy::default());
        let subject = Subject::new(SubjectKind::Unit, "a.service");
        let records = Records::default();
        let missing = super::check(&subject, "UNIT001", &records, &diagnosis, WATCH);
        let missing = missing.expect_err("nothing was seen");
        assert!(
            missing.starts_with("UNIT001 cannot be assessed"),
            "{missing}"
        );
    }
}
