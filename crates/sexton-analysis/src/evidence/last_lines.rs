//! What the journal says of a unit that failed or was restarted: its last lines, and how it ended.

use sexton_model::fact::unit::{UNIT_LAST_LINES, UnitLastLines};
use sexton_model::finding::Evidence;
use sexton_model::record::Event;
use sexton_model::subject::Subject;

use crate::case::Case;

fn last<'a>(case: &'a Case<'_>, unit: &Subject) -> Option<Event<'a, UnitLastLines>> {
    let of_unit = case.events(&UNIT_LAST_LINES);
    of_unit.rev().find(|event| event.subject == unit)
}

/// The last lines of a unit, with the last of them as its own words.
pub(crate) fn evidence(case: &Case<'_>, unit: &Subject) -> Option<Evidence> {
    let last = last(case, unit)?;
    let quoted = last.says.lines.iter().map(|line| format!("\"{line}\""));
    let quoted: Vec<String> = quoted.collect();
    let words = quoted.last()?;
    let text = format!("it wrote last: {}", quoted.join(", "));
    let evidence = Evidence::speaks_for("journal", text).at(last.at);
    Some(evidence.quoting(words))
}

/// How its last run ended: `exit status 3`.
pub(crate) fn end(case: &Case<'_>, unit: &Subject) -> Option<String> {
    let says = last(case, unit)?.says;
    how(says.exit_code.as_deref(), says.exit_status.as_deref())
}

/// How a process ended, in systemd's terms: what happened, and the status or the signal's number.
pub(crate) fn how(code: Option<&str>, status: Option<&str>) -> Option<String> {
    match (code?, status?) {
        ("exited", status) => Some(format!("exit status {status}")),
        (how, signal) => Some(format!("{how} by signal {signal}")),
    }
}
