//! UNIT006: a unit cannot start here
//!
//! Means: the unit is started at boot and will fail: its program or interpreter, a mandatory
//! environment file, its user or a unit that it requires is missing.
//! Not this: a unit whose condition does not hold; systemd skips that one quietly.
//! By hand: `systemd-analyze verify UNIT` on the node.
//! Next: install what is missing, or turn the unit off.

use sexton_model::fact::unit::UNIT_FILE;
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;

use crate::case::Case;
use crate::evidence::unit_files::Weighed;
use crate::rule::{Cause, Findings, Rule};
use crate::words::unit_name::systemctl;

const CODE: &str = "UNIT006";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::UnitLoop,
    title: "a unit cannot start here",
    sees: "units that cannot start",
    needs: &["unit_files"],
    uses: &[],
    is_essential: false,
    least: None,
    cause: Cause::Never,
    offer: Offer::NOTHING,
    thresholds: &[],
    source: include_str!("unit006_cannot_start.rs"),
    judge,
};

/// The last word of the files on each unit.
fn judge(case: &Case<'_>, out: &mut Findings) {
    for events in case.events_by_subject(&UNIT_FILE).into_values() {
        let found = events.last().and_then(|last| finding(Weighed(*last)));
        found.into_iter().for_each(|found| out.found(found));
    }
}

fn finding(unit: Weighed<'_>) -> Option<Finding> {
    let why = unit.says().fails.as_deref()?;
    let subject = unit.0.subject.clone();
    let name = subject.name.to_string();
    let package = unit.says().package.as_deref().unwrap_or("no package");
    Some(Finding {
        code: CODE,
        severity: if unit.is_endless() {
            Severity::Warning
        } else {
            Severity::Note
        },
        confidence: Confidence::LIKELY,
        title: format!("{name} cannot start: {why}"),
        figure: why.to_owned(),
        since: None,
        evidence: vec![
            Evidence::speaks_for("unit_files", why),
            Evidence::speaks_for("unit_files", format!("its unit file belongs to {package}")),
        ],
        remedies: vec![
            Remedy::advice(RemedyKind::Stop, "Install what is missing"),
            Remedy::command(
                RemedyKind::Prevent,
                "Or disable the unit",
                systemctl("disable", &name),
            ),
        ],
        touched: Vec::new(),
        episodes: Vec::new(),
        subject,
    })
}
