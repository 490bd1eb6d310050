//! Which instant of a night is judged again.

use std::collections::BTreeSet;
use std::time::Duration;

use sexton_model::finding::Severity;
use sexton_model::moment::Moment;

use super::lives::Lived;

/// How long after the gravest of it was worst.
const AFTER: Duration = Duration::from_secs(300);

/// The instant at which most of what was found was open, soon after this finding was worst. Later
/// the cause may be over, and with it the chain: a unit that was stopped is no root any more while
/// the reset that it led to is still shown. Earlier, what it led to may not be found yet.
pub fn fullest(gravest: &Lived, lives: &[Lived]) -> Moment {
    let worst_at = gravest.life.worst_at;
    let latest = worst_at.after(AFTER);
    let beside: Vec<&Lived> = lives
        .iter()
        .filter(|lived| lived.bundle == gravest.bundle && lived.life.worst > Severity::Note)
        .collect();
    let opened = beside.iter().map(|lived| lived.life.opened);
    let mut instants: BTreeSet<Moment> = opened
        .filter(|at| (worst_at..=latest).contains(at) && is_open(gravest, *at))
        .collect();
    instants.insert(worst_at);
    let n_open = |at: &Moment| beside.iter().filter(|lived| is_open(lived, *at)).count();
    // Of several as good ones the last, which has the most evidence.
    let fullest = instants.into_iter().max_by_key(n_open);
    fullest.unwrap_or(worst_at)
}

/// Whether it was seen then. The log has turns only: what has no end was seen until now.
fn is_open(lived: &Lived, at: Moment) -> bool {
    let life = &lived.life;
    life.opened <= at && (life.resolved.is_none() || at <= life.last_seen)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sexton_analysis::live::Life;
    use sexton_model::finding::{Confidence, Finding};
    use sexton_model::subject::Subject;

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_ns(seconds * 1_000_000_000)
    }

    /// A finding of these seconds; open ones have no last.
    fn lived(code: &'static str, worst: Severity, opened: u64, last_seen: Option<u64>) -> Lived {
        let finding = Finding {
            code,
            subject: Subject::node(),
            severity: worst,
            confidence: Confidence::CERTAIN,
            title: String::new(),
            figure: String::new(),
            since: None,
            evidence: Vec::new(),
            remedies: Vec::new(),
            touched: Vec::new(),
            episodes: Vec::new(),
        };
        Lived {
            life: Life {
                finding,
                opened: at(opened),
                worst,
                worst_at: at(opened),
                last_seen: at(last_seen.unwrap_or(opened)),
                resolved: last_seen.map(|last| at(last + 60)),
            },
            bundle: Path::new("boots/0001").to_owned(),
            opened_ns: 0,
            last_seen_ns: 0,
            over_ns: None,
            is_ended_by_reboot: false,
        }
    }

    /// The instant that is judged of these; the first is the gravest.
    fn check(lives: &[Lived], expected: u64) {
        assert_eq!(fullest(&lives[0], lives), at(expected));
    }

    use Severity::{Note, Serious, Warning};

    #[test]
    fn a_cause_that_was_stopped_is_still_there() {
        // Whether the reset is still shown or has been over for hours makes no difference.
        for last in [None, Some(1_600)] {
            let reset = lived("NIC001", Serious, 1_000, last);
            let unit = lived("UNIT001", Warning, 700, Some(1_030));
            check(&[reset, unit], 1_000);
        }
    }

    #[test]
    fn what_is_found_a_little_later_belongs_to_it() {
        let core = lived("CPU001", Serious, 1_000, Some(1_700));
        let pile = lived("MCG001", Warning, 1_090, Some(1_500));
        let much_later = lived("IO001", Warning, 1_400, None);
        check(&[core, pile, much_later], 1_090);
    }

    #[test]
    fn neither_notes_nor_other_boots_nor_its_own_end_lead_away() {
        let core = lived("CPU001", Serious, 1_000, Some(1_060));
        let note = lived("CPU003", Note, 1_030, None);
        let late = lived("MEM001", Warning, 1_090, None);
        let mut elsewhere = lived("TASK001", Warning, 1_030, None);
        elsewhere.bundle = Path::new("boots/0002").to_owned();
        check(&[core, note, late, elsewhere], 1_000);
    }
}
