//! UNIT004: an enabled unit has no use in this deployment
//!
//! Means: a known offender is enabled on a machine of a shape that has no use for it, or the
//! shape itself does not want it. Where it also restarts without end or cannot start, it
//! will do harm; elsewhere it only costs.
//! Not this: a unit that some sign on the machine asks for; such a veto is shown.
//! By hand: `sexton image audit / --why UNIT`; the signature that is named says what for.
//! Next: `sexton image fix` where the image is made; `sexton fix --unit UNIT` on the node.

use sexton_model::fact::unit::UNIT_FILE;
use sexton_model::finding::{Confidence, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::text::shell_word;

use crate::case::Case;
use crate::rule::{Findings, Rule};
use crate::unit_files::UnitFile;

const CODE: &str = "UNIT004";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    title: "an enabled unit has no use in this deployment",
    needs: &["unit_files"],
    uses: &[],
    is_essential: false,
    is_cause: true,
    thresholds: &[],
    source: include_str!("unit004_unwanted.rs"),
    judge,
};

/// The last word of the files on each unit.
fn judge(case: &Case<'_>, out: &mut Findings) {
    for records in case.by_subject(&UNIT_FILE).into_values() {
        if let Some(record) = records.last() {
            finding(&UnitFile(record))
                .into_iter()
                .for_each(|found| out.found(found));
        }
    }
}

fn finding(unit: &UnitFile<'_>) -> Option<Finding> {
    let why = unit.offender().or_else(|| unit.unwanted_by_shape())?;
    let subject = unit.0.subject.clone();
    let name = subject.name.to_string();
    let shape = unit.detail("shape").unwrap_or("machine of this shape");
    let state = unit.detail("state").unwrap_or("on");
    let harms = unit.is_endless() || unit.is_broken();
    let mut together = vec![shell_word(&name)];
    let triggers = unit.detail("offender_triggers").unwrap_or_default();
    together.extend(triggers.split_whitespace().map(shell_word));
    together.dedup();
    Some(Finding {
        code: CODE,
        severity: if harms {
            Severity::Warning
        } else {
            Severity::Note
        },
        confidence: Confidence::LIKELY,
        title: format!("{name} has no use on a {shape}: {why}"),
        figure: format!("{state} for nothing"),
        since: None,
        evidence: evidence(unit, why, shape, state),
        remedies: vec![
            Remedy::command(
                RemedyKind::Prevent,
                "keep it out of the next image",
                "sexton image fix ROOT",
            ),
            Remedy::command(
                RemedyKind::Stop,
                "turn it off here, with all that starts it",
                format!("sudo systemctl mask --now {}", together.join(" ")),
            ),
        ],
        touched: Vec::new(),
        episodes: Vec::new(),
        subject,
    })
}

fn evidence(unit: &UnitFile<'_>, why: &str, shape: &str, state: &str) -> Vec<Evidence> {
    let signature = unit.detail("offender");
    let source = signature.map_or_else(
        || format!("shape {shape}"),
        |slug| format!("signature {slug}"),
    );
    let mut evidence = vec![Evidence::speaks_for(source.clone(), why)];
    let signs = unit.detail("offender_evidence").unwrap_or_default();
    for text in signs.split("; ").filter(|text| !text.is_empty()) {
        evidence.push(Evidence::speaks_for(source.clone(), text));
    }
    evidence.push(Evidence::speaks_for(
        "unit_files",
        format!("its state is {state}"),
    ));
    if let Some(risk) = unit.detail("offender_risk").filter(|risk| *risk != "low") {
        let text = format!("where it is wanted after all, masking it is of {risk} risk");
        evidence.push(Evidence::against(source, text));
    }
    evidence
}
