//! What was reclaimed for lack of memory has to be read again: that keeps the disk busy.

use std::time::Duration;

use sexton_model::finding::{Confidence, Evidence, Finding};
use sexton_model::subject::{Subject, SubjectKind};

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::evidence::memory_load::Strain;
use crate::evidence::span;
use crate::words::figures::{bytes, percent};

pub(super) static LINK: LinkRule = LinkRule {
    cause: "MEM002",
    effect: "IO001",
    meet,
};

/// Sensors look at different moments.
const SLACK: Duration = Duration::from_secs(5);

/// At least this part of what disks read had been in memory before.
const MOST: f64 = 0.5;

fn meet(case: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let mut pairs = cause
        .episodes
        .iter()
        .flat_map(|one| effect.episodes.iter().map(move |other| (one, other)));
    let Some((one, other)) = pairs.find(|(one, other)| span::overlap(one, other, SLACK)) else {
        return Meeting::Strangers;
    };
    let both = (one.from.max(other.from), one.to.min(other.to));
    let strain = Strain::within(case, &Subject::node(), both);
    let text = format!(
        "{} of what disks read had been in memory before: {} of {}/s",
        percent(strain.reread_part()),
        bytes(strain.reread),
        bytes(strain.read)
    );
    if strain.reread_part() < MOST {
        return Meeting::Apart(vec![Evidence::against("memory: /proc/vmstat", text)]);
    }
    let evidence = Evidence::speaks_for("memory: /proc/vmstat", text).value(strain.reread_part());
    // The one that is short of memory is the one that uses the disk.
    let is_party = |subject: &&Subject| {
        matches!(
            subject.kind,
            SubjectKind::Process | SubjectKind::Unit | SubjectKind::Container | SubjectKind::Cgroup
        )
    };
    let mut parties = effect.touched.iter().filter(is_party);
    let sure = match parties.any(|party| cause.touches(party)) {
        true => Confidence::CERTAIN,
        false => Confidence::LIKELY,
    };
    Meeting::Joined(sure, vec![evidence])
}

#[cfg(test)]
mod tests {
    use sexton_model::fact::memory::{MEMORY_READ_IN_BYTES, MEMORY_REFAULT_BYTES};
    use sexton_model::record::Sink;
    use sexton_model::timeline::Records;

    use super::super::tests::found;
    use super::*;
    use crate::policy::Policy;
    use crate::testing::at;

    /// A unit that is short of memory from 100 s to 120 s, while this part of what is read had
    /// been in memory, and a disk that is saturated from then on.
    fn met(reread: f64, (from, to): (u64, u64)) -> Meeting {
        let mut out = Vec::new();
        for i in 0..11 {
            let mut sink = Sink::new("memory", at(100 + 2 * i));
            let read = i as f64 * 1e8;
            sink.sample(&Subject::node(), &MEMORY_READ_IN_BYTES, read);
            sink.sample(&Subject::node(), &MEMORY_REFAULT_BYTES, read * reread);
            out.extend(sink.into_records());
        }
        let (records, policy) = (Records::new(out), Policy::default());
        let case = Case::new(&records, &policy);
        let unit = Subject::new(SubjectKind::Unit, "db.service");
        let cause = found("MEM002", unit, 100, 120);
        let disk = Subject::new(SubjectKind::Device, "vda");
        meet(&case, &cause, &found("IO001", disk, from, to))
    }

    #[test]
    fn what_is_read_again_keeps_the_disk_busy() {
        assert!(matches!(met(0.9, (102, 118)), Meeting::Joined(..)));
        assert!(matches!(met(0.1, (102, 118)), Meeting::Apart(_)));
        assert!(matches!(met(0.9, (300, 320)), Meeting::Strangers));
    }
}
