//! What the files of a unit say, weighed.

use sexton_model::audit::UnitVerdict;
use sexton_model::record::Record;

/// What rules ask of a record of `unit_file`.
pub(crate) struct UnitFile<'a>(pub(crate) &'a Record);

impl<'a> UnitFile<'a> {
    pub(crate) fn detail(&self, key: &str) -> Option<&'a str> {
        self.0.detail(key)
    }

    /// What a signature says, if nothing forbids it and it says to mask.
    pub(crate) fn offender(&self) -> Option<&'a str> {
        let is_free = self.detail("offender_veto").is_none();
        let is_mask = self.detail("offender_action") == Some("mask");
        self.detail("offender_why")
            .filter(|_| is_free && is_mask && !self.is_must())
    }

    /// What the shape says against it.
    pub(crate) fn unwanted_by_shape(&self) -> Option<&'a str> {
        let is_unwanted = self.detail("role") == Some("unwanted");
        self.detail("role_why").filter(|_| is_unwanted)
    }

    pub(crate) fn is_unwanted(&self) -> bool {
        self.offender().is_some() || self.unwanted_by_shape().is_some()
    }

    /// A shape that needs a unit is right against any signature: fatal ones are never masked
    /// by mistake.
    pub(crate) fn is_must(&self) -> bool {
        let is_base = self
            .detail("role_why")
            .is_some_and(|why| why.contains("Linux system"));
        self.detail("role") == Some("must") && !is_base
    }

    /// A signature only suspects it: what the machine is for is not known.
    fn is_unsure(&self) -> bool {
        self.detail("offender_unsure").is_some()
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.detail("fails").is_some()
    }

    pub(crate) fn is_endless(&self) -> bool {
        self.detail("endless").is_some()
    }

    pub(crate) fn runs_per_day(&self) -> u64 {
        let runs = self
            .detail("runs_per_day")
            .and_then(|runs| runs.parse().ok());
        runs.unwrap_or(0)
    }
}

/// What a unit is worth, and why, in one line. The record is one of `unit_file`.
pub fn verdict(record: &Record) -> (UnitVerdict, String) {
    let unit = UnitFile(record);
    if let Some(why) = unit.offender().or_else(|| unit.unwanted_by_shape()) {
        let evidence = unit.detail("offender_evidence").unwrap_or_default();
        let because = if evidence.is_empty() {
            String::new()
        } else {
            format!(" ({evidence})")
        };
        return (UnitVerdict::Unwanted, format!("{why}{because}"));
    }
    if let Some(why) = unit.detail("fails") {
        return (UnitVerdict::Broken, why.to_owned());
    }
    if let Some(why) = unit.detail("skipped") {
        return (UnitVerdict::Harmless, format!("it is skipped: {why}"));
    }
    match (unit.detail("role"), unit.detail("role_why")) {
        (Some("must"), Some(why)) => return (UnitVerdict::Needed, why.to_owned()),
        (Some("may"), Some(why)) if unit.detail("offender").is_none() || unit.is_unsure() => {
            return (UnitVerdict::Harmless, why.to_owned());
        }
        _ => {}
    }
    match (
        unit.detail("offender_action"),
        unit.detail("offender_veto"),
        unit.detail("offender_why"),
    ) {
        (Some("leave"), None, Some(why)) => (UnitVerdict::Harmless, why.to_owned()),
        (_, Some(veto), _) => (UnitVerdict::Harmless, format!("often unwanted, but {veto}")),
        (Some("bound"), None, Some(why)) if unit.is_unsure() => (
            UnitVerdict::Unknown,
            format!("it may be of no use: {why}; what this machine is for is not known"),
        ),
        (Some("bound"), None, Some(why)) => {
            (UnitVerdict::Unknown, format!("{why}; files cannot tell"))
        }
        _ if matches!(unit.detail("state"), Some("static" | "generated" | "alias")) => {
            (UnitVerdict::Harmless, "another unit starts it".to_owned())
        }
        _ => (UnitVerdict::Unknown, unknown(&unit)),
    }
}

/// Of a unit that nothing is known of: what can be said all the same.
fn unknown(unit: &UnitFile<'_>) -> String {
    let known = "no shape and no signature knows it";
    match (unit.detail("starts_per_day"), unit.detail("starts_by")) {
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
        let details = details
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).to_owned()));
        sink.event(Moment::from_ns(1), &subject, &UNIT_FILE, details.collect());
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
