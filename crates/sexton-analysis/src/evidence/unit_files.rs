//! What the files of a unit say, weighed.

use sexton_model::audit::UnitVerdict;
use sexton_model::fact::unit::{UNIT_FILE, UnitFile};
use sexton_model::record::{Event, Record};

/// The deployment profile of every system: what it needs, a signature may still accuse.
const BASE: &str = "base";

/// What rules ask of the files of a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weighed<'a>(pub(crate) Event<'a, UnitFile>);

impl<'a> Weighed<'a> {
    pub(crate) fn says(self) -> &'a UnitFile {
        self.0.says
    }

    /// What a signature says, if nothing forbids it and it says to mask.
    pub(crate) fn offender(self) -> Option<&'a str> {
        let says = self.says();
        let is_free = says.offender_veto.is_none();
        let is_mask = says.offender_action.as_deref() == Some("mask");
        let why = says.offender_why.as_deref();
        why.filter(|_| is_free && is_mask && !self.is_must())
    }

    /// What the profile says against it.
    pub(crate) fn unwanted_by_profile(self) -> Option<&'a str> {
        let why = self.says().role_why.as_deref();
        why.filter(|_| self.role() == Some("unwanted"))
    }

    pub(crate) fn is_unwanted(self) -> bool {
        self.offender().is_some() || self.unwanted_by_profile().is_some()
    }

    /// Whether the profile needs it, allows it, or does not want it.
    pub(crate) fn role(self) -> Option<&'a str> {
        self.says().role.as_deref()
    }

    /// A profile that needs a unit is right against any signature: fatal ones are never masked
    /// by mistake.
    fn is_must(self) -> bool {
        self.role() == Some("must") && self.says().role_shape.as_deref() != Some(BASE)
    }

    /// A signature only suspects it: what the node is for is not known.
    fn is_unsure(self) -> bool {
        self.says().offender_unsure == Some(true)
    }

    /// What a signature that suspects it asks for and the recording does not say.
    pub(crate) fn unknown(self) -> Option<&'a str> {
        let says = self.says();
        let is_free = says.offender_veto.is_none() && !self.is_must();
        says.offender_unknown.as_deref().filter(|_| is_free)
    }

    pub(crate) fn is_broken(self) -> bool {
        self.says().fails.is_some()
    }

    pub(crate) fn is_endless(self) -> bool {
        self.says().endless == Some(true)
    }
}

/// What a unit is worth, and why, in one line. The record is one of `unit_file`.
pub fn verdict(record: &Record) -> (UnitVerdict, String) {
    match Event::of(record, &UNIT_FILE) {
        Some(event) => weigh(Weighed(event)),
        None => (UnitVerdict::Unknown, "its files were not read".to_owned()),
    }
}

fn weigh(unit: Weighed<'_>) -> (UnitVerdict, String) {
    let says = unit.says();
    if let Some(why) = unit.offender().or_else(|| unit.unwanted_by_profile()) {
        let because = match says.offender_evidence.is_empty() {
            true => String::new(),
            false => format!(" ({})", says.offender_evidence.join("; ")),
        };
        return (UnitVerdict::Unwanted, format!("{why}{because}"));
    }
    if let Some(why) = &says.fails {
        return (UnitVerdict::Broken, why.clone());
    }
    if let Some(why) = &says.skipped {
        return (UnitVerdict::Harmless, format!("it is skipped: {why}"));
    }
    match (unit.role(), &says.role_why) {
        (Some("must"), Some(why)) => return (UnitVerdict::Needed, why.clone()),
        (Some("may"), Some(why)) if says.offender.is_none() || unit.is_unsure() => {
            return (UnitVerdict::Harmless, why.clone());
        }
        _ => {}
    }
    match (
        says.offender_action.as_deref(),
        &says.offender_veto,
        &says.offender_why,
    ) {
        (Some("leave"), None, Some(why)) => (UnitVerdict::Harmless, why.clone()),
        (_, Some(veto), _) => (UnitVerdict::Harmless, format!("often unwanted, but {veto}")),
        (Some("bound"), None, Some(why)) if unit.unknown().is_some() => (
            UnitVerdict::Unknown,
            format!(
                "it may be of no use: {why}; not seen: whether {}",
                unit.unknown().unwrap_or_default()
            ),
        ),
        (Some("bound"), None, Some(why)) if unit.is_unsure() => (
            UnitVerdict::Unknown,
            format!("it may be of no use: {why}; what this machine is for is not known"),
        ),
        (Some("bound"), None, Some(why)) => {
            (UnitVerdict::Unknown, format!("{why}; files cannot tell"))
        }
        _ if matches!(
            says.state.as_deref(),
            Some("static" | "generated" | "alias")
        ) =>
        {
            (UnitVerdict::Harmless, "another unit starts it".to_owned())
        }
        _ => (UnitVerdict::Unknown, unknown(says)),
    }
}

/// Of a unit that nothing is known of: what can be said all the same.
fn unknown(says: &UnitFile) -> String {
    let known = "no shape and no signature knows it";
    match (says.starts_per_day, &says.starts_by) {
        (Some(n), Some(by)) => format!("{known}; at most {n} starts a day by {by}"),
        _ => known.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use sexton_model::fact::unit::UNIT_FILE;
    use sexton_model::finding::Severity;
    use sexton_model::moment::Moment;
    use sexton_model::record::Sink;
    use sexton_model::subject::{Subject, SubjectKind};
    use sexton_model::timeline::Records;

    use super::*;
    use crate::{Policy, judge};

    fn records(details: &[(&'static str, &str)]) -> Vec<Record> {
        let mut sink = Sink::new("unit_files", Moment::from_ns(1));
        let subject = Subject::new(SubjectKind::Unit, "x.service");
        let event = crate::testing::event(&UNIT_FILE, details);
        sink.event(Moment::from_ns(1), &subject, &UNIT_FILE, event);
        sink.into_records()
    }

    /// The verdict, and the codes of what is found with how bad it is.
    #[track_caller]
    fn check(details: &[(&'static str, &str)], verdict: UnitVerdict, found: &[(&str, Severity)]) {
        let records = records(details);
        assert_eq!(super::verdict(&records[0]).0, verdict, "{details:?}");
        let diagnosis = judge(&Records::new(records), &Policy::default());
        let findings: Vec<(&str, Severity)> = diagnosis
            .findings
            .iter()
            .map(|finding| (finding.code, finding.severity))
            .collect();
        assert_eq!(findings, found, "{details:?}");
    }

    const ON: (&str, &str) = ("state", "enabled");
    const OFFENDER: [(&str, &str); 3] = [
        ("offender", "x"),
        ("offender_why", "it loops"),
        ("offender_action", "mask"),
    ];
    const ENDLESS: [(&str, &str); 2] = [("endless", "yes"), ("runs_per_day", "8640")];

    #[test]
    fn an_offender_counts_more_when_it_loops() {
        let only = [&[ON][..], &OFFENDER].concat();
        check(&only, UnitVerdict::Unwanted, &[("UNIT004", Severity::Note)]);
        let loops = [&only[..], &ENDLESS].concat();
        let both = [
            ("UNIT004", Severity::Warning),
            ("UNIT005", Severity::Warning),
        ];
        check(&loops, UnitVerdict::Unwanted, &both);
    }

    #[test]
    fn a_veto_and_a_need_protect() {
        let vetoed = [&[ON, ("offender_veto", "x is enabled")][..], &OFFENDER].concat();
        check(&vetoed, UnitVerdict::Harmless, &[]);
        let needed = [
            &[ON, ("role", "must"), ("role_why", "a Docker host needs it")][..],
            &OFFENDER,
            &ENDLESS,
        ]
        .concat();
        check(&needed, UnitVerdict::Needed, &[]);
    }

    #[test]
    fn broken_skipped_and_unknown() {
        check(
            &[ON, ("fails", "no such file")],
            UnitVerdict::Broken,
            &[("UNIT006", Severity::Note)],
        );
        let loops = [&[ON, ("fails", "no such file")][..], &ENDLESS].concat();
        let both = [
            ("UNIT005", Severity::Warning),
            ("UNIT006", Severity::Warning),
        ];
        check(&loops, UnitVerdict::Broken, &both);
        check(&[ON, ("skipped", "x")], UnitVerdict::Harmless, &[]);
        let unsure = [
            ("offender", "x"),
            ("offender_why", "it loops"),
            ("offender_action", "bound"),
            ("offender_unsure", "yes"),
        ];
        let suspected = [&[ON][..], &unsure, &ENDLESS].concat();
        check(
            &suspected,
            UnitVerdict::Unknown,
            &[("UNIT005", Severity::Note)],
        );
        let unknown = [&[ON][..], &ENDLESS].concat();
        check(
            &unknown,
            UnitVerdict::Unknown,
            &[("UNIT005", Severity::Note)],
        );
        let allowed = [&[ON, ("role", "may"), ("role_why", "x")][..], &ENDLESS].concat();
        check(&allowed, UnitVerdict::Harmless, &[]);
    }
}
