//! What signatures say of what was recorded. Recordings hold what was seen; this fills in what
//! it means before anything else is asked, so that a new signature finds its trouble in an old
//! recording. What an older recording says of this itself stands.

mod units;

use std::ops::RangeInclusive;
use std::sync::Arc;

use sexton_model::fact::Fact;
use sexton_model::fact::exit::{CLIENT_ENDED, PROCESS_FAILED, ProcessExit};
use sexton_model::fact::klog::{KLOG_EVENT, KernelLine};
use sexton_model::fact::unit::{UNIT_FILE, UNIT_SHAPE};
use sexton_model::gap::Gap;
use sexton_model::moment::Moment;
use sexton_model::payload::Payload;
use sexton_model::record::{Body, Record};
use sexton_model::subject::Subject;
use sexton_model::text::unescape;
use sexton_model::timeline::{Records, Timeline};
use sexton_signatures::Signatures;

use units::Units;

/// A recording in which lines of the kernel's log, exits of processes and files of units have a
/// meaning.
pub(crate) struct Recognized<'a> {
    seen: &'a dyn Timeline,
    /// In place of those that were seen, in the order of time.
    recognized: Vec<Record>,
}

impl<'a> Recognized<'a> {
    pub(crate) fn new(seen: &'a dyn Timeline, signatures: &Signatures) -> Self {
        let units = Units::of(seen, signatures);
        let known = |record: &Record| match &units {
            Some(units) if is_of_units(record) => units.recognize(record),
            _ => recognize(record, signatures),
        };
        let events = seen.all().filter(|record| is_open(record));
        Self {
            seen,
            recognized: events
                .map(|record| known(record).unwrap_or_else(|| record.clone()))
                .collect(),
        }
    }
}

/// All records, with what signatures say of them.
pub fn recognize_all(seen: &dyn Timeline, signatures: &Signatures) -> Records {
    let recognized = Recognized::new(seen, signatures);
    Records::new(recognized.all().cloned().collect())
}

/// A record with what signatures say of it alone; `None` if they say nothing. Files of units are
/// judged together.
pub fn recognize(record: &Record, signatures: &Signatures) -> Option<Record> {
    if !is_open(record) {
        return None;
    }
    if let Some(line) = record.says(&KLOG_EVENT) {
        let (subject, line) = signatures.kernel_log.recognize(line)?;
        return Some(Record {
            subject,
            ..with(record, line)
        });
    }
    let exit = exit(record)?;
    let role = signatures.roles.of(
        &unescape(exit.comm.as_deref().unwrap_or_default()),
        &unescape(exit.cgroup.as_deref().unwrap_or_default()),
    )?;
    let role = Some(role.to_owned());
    Some(with(
        record,
        ProcessExit {
            role,
            ..exit.clone()
        },
    ))
}

/// Whether a record is of what signatures know, and does not say it itself.
fn is_open(record: &Record) -> bool {
    let line = record.says(&KLOG_EVENT);
    line.is_some_and(|line: &KernelLine| line.class.is_none() && line.line.is_some())
        || exit(record).is_some_and(|exit| exit.role.is_none())
        || is_of_units(record)
}

fn is_of_units(record: &Record) -> bool {
    let fact = record.fact();
    fact.is_some_and(|fact| *fact == UNIT_FILE.fact || *fact == UNIT_SHAPE.fact)
}

fn exit(record: &Record) -> Option<&ProcessExit> {
    let failed = record.says(&PROCESS_FAILED);
    failed.or_else(|| record.says(&CLIENT_ENDED))
}

/// The same record, but it says this.
fn with<T: Payload>(record: &Record, says: T) -> Record {
    let mut record = record.clone();
    if let Body::Event { payload, .. } = &mut record.body {
        *payload = Arc::new(says);
    }
    record
}

impl Timeline for Recognized<'_> {
    fn span(&self) -> Option<RangeInclusive<Moment>> {
        self.seen.span()
    }

    fn all<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Record> + 'a> {
        let mut recognized = self.recognized.iter();
        let seen = self.seen.all();
        Box::new(seen.map(move |record| match is_open(record) {
            true => recognized.next().unwrap_or(record),
            false => record,
        }))
    }

    fn of<'a>(&'a self, fact: &'static Fact) -> Box<dyn Iterator<Item = &'a Record> + 'a> {
        let of_fact = move |record: &&Record| record.fact() == Some(fact);
        Box::new(self.all().filter(of_fact))
    }

    fn gaps<'a>(&'a self) -> Box<dyn Iterator<Item = (Moment, &'a Subject, &'a Gap)> + 'a> {
        self.seen.gaps()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sexton_model::record::Sink;
    use sexton_model::timeline::Records;

    use super::*;
    use crate::{Policy, judge};

    fn recording(line: &str) -> Records {
        let mut out = Sink::new("klog", Moment::from_ns(1));
        let seen = KernelLine {
            line: Some(line.to_owned()),
            written_by: Some("kernel".to_owned()),
            level: Some("err".to_owned()),
            ..KernelLine::default()
        };
        out.event(Moment::from_ns(1), &Subject::node(), &KLOG_EVENT, seen);
        Records::new(out.into_records())
    }

    fn codes(records: &Records, policy: &Policy) -> Vec<&'static str> {
        let findings = judge(records, policy).findings;
        findings.iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn a_line_is_known_when_it_is_judged() {
        let lockup = "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [a:9]";
        assert_eq!(codes(&recording(lockup), &Policy::default()), ["KRN001"]);
    }

    /// The point of it all: the recording was made before the signature was written.
    #[test]
    fn a_later_signature_finds_its_trouble() {
        let line = "frob 0000:17:00.0 eth7: flux lost, resetting";
        let records = recording(line);
        assert_eq!(codes(&records, &Policy::default()), [""; 0]);
        let mut signatures = (*Signatures::built_in()).clone();
        let text = format!(
            "driver = 'frob'\n[[pattern]]\nid = 'frob-reset'\nclass = 'nic_reset'\n\
             wordings = ['flux lost, resetting']\nsource = 's'\nhits = [{{ line = '{line}', \
             captures = {{ bus = '0000:17:00.0', device = 'eth7' }} }}]\nmisses = ['x']\n"
        );
        let added = signatures.add_file(Path::new("frob.toml"), &text);
        added.expect("it is right");
        let mut policy = Policy::default();
        policy.judge_with(Arc::new(signatures));
        assert_eq!(codes(&records, &policy), ["NIC001"]);
        let finding = &judge(&records, &policy).findings[0];
        assert_eq!(finding.subject.to_string(), "device eth7");
    }
}
