//! UNIT004: an enabled unit has no use in this deployment
//!
//! Means: a known offender is enabled on a node whose deployment profile has no use for it,
//! or the profile itself excludes it. Where it also restarts without end or cannot start, it
//! will do harm; elsewhere it only costs.
//! Not this: a unit that some sign on the machine asks for; such a veto is shown.
//! By hand: `sexton image audit / --why UNIT`; the signature that is named says what for.
//! Next: `sexton image fix` where the image is made; `sexton fix --unit UNIT` on the node.

use sexton_model::fact::unit::UNIT_FILE;
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::text::shell_word;

use crate::case::Case;
use crate::evidence::unit_files::Weighed;
use crate::rule::{Cause, Findings, Rule};

const CODE: &str = "UNIT004";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::UnitUnwanted,
    title: "an enabled unit has no use in this deployment",
    sees: "unwanted units",
    needs: &["unit_files"],
    uses: &[],
    is_essential: false,
    least: None,
    cause: Cause::WhenNamed,
    offer: Offer::NOTHING,
    thresholds: &[],
    source: include_str!("unit004_unwanted.rs"),
    judge,
};

/// The last word of the files on each unit.
fn judge(case: &Case<'_>, out: &mut Findings) {
    for events in case.events_by_subject(&UNIT_FILE).into_values() {
        let Some(last) = events.last().map(|last| Weighed(*last)) else {
            continue;
        };
        match finding(last) {
            Some(found) => out.found(found),
            None => not_recorded(last)
                .into_iter()
                .for_each(|why| out.not_judged(CODE, why)),
        }
    }
}

/// What a signature asks for and the recording does not say.
fn not_recorded(unit: Weighed<'_>) -> Option<String> {
    let unknown = unit.unknown()?;
    let slug = unit.says().offender.as_deref().unwrap_or("unknown");
    let name = &unit.0.subject.name;
    Some(format!(
        "signature {slug} suspects {name}; the recording does not say whether {unknown}"
    ))
}

fn finding(unit: Weighed<'_>) -> Option<Finding> {
    let why = unit.offender().or_else(|| unit.unwanted_by_profile())?;
    let subject = unit.0.subject.clone();
    let name = subject.name.to_string();
    let shape = unit
        .says()
        .shape
        .as_deref()
        .unwrap_or("node of this deployment profile");
    let state = unit.says().state.as_deref().unwrap_or("on");
    let harms = unit.is_endless() || unit.is_broken();
    let mut together = vec![shell_word(&name)];
    let triggers = unit.says().offender_triggers.iter();
    together.extend(triggers.map(|trigger| shell_word(trigger)));
    together.dedup();
    let together = together.join(" ");
    Some(Finding {
        code: CODE,
        severity: if harms {
            Severity::Warning
        } else {
            Severity::Note
        },
        confidence: Confidence::LIKELY,
        title: format!("{name} is {state} but has no use on a {shape}"),
        figure: format!("{state}, not used here"),
        since: None,
        evidence: evidence(unit, why, shape, state),
        remedies: vec![
            Remedy::command(
                RemedyKind::Prevent,
                "Remove it from the next image",
                "sexton image fix ROOT",
            ),
            Remedy::command(
                RemedyKind::Stop,
                "Stop the unit and its triggers",
                format!("sudo systemctl stop {together}"),
            ),
            Remedy::command(
                RemedyKind::Prevent,
                "Keep the unit and its triggers from starting at boot",
                format!("sudo systemctl disable --now {together}"),
            ),
        ],
        touched: Vec::new(),
        episodes: Vec::new(),
        subject,
    })
}

fn evidence(unit: Weighed<'_>, why: &str, shape: &str, state: &str) -> Vec<Evidence> {
    let source = unit.says().offender.as_ref().map_or_else(
        || format!("deployment profile {shape}"),
        |slug| format!("signature {slug}"),
    );
    let mut evidence = vec![Evidence::speaks_for(source.clone(), why)];
    for text in &unit.says().offender_evidence {
        evidence.push(Evidence::speaks_for(source.clone(), text.as_str()));
    }
    evidence.push(Evidence::speaks_for(
        "unit_files",
        format!("its unit file state is {state}"),
    ));
    let risk = unit.says().offender_risk.as_deref();
    if let Some(risk) = risk.filter(|risk| *risk != "low") {
        let text = format!("risk of masking it where it is in use: {risk}");
        evidence.push(Evidence::against(source, text));
    }
    evidence
}
