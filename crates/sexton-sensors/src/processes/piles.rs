//! Which parents have defunct children, and whether these last.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use sexton_model::moment::Moment;

use super::scan::{Id, Scan};

/// Fewer defunct children of one parent are not worth a record: a shell pipeline or a make
/// has as many for a moment.
const LEAST_TOLD: u64 = 10;

/// One that is defunct in two scans this far apart lasts. A parent that reaps does so within
/// milliseconds of SIGCHLD, a slow one at its next turn.
const LASTING: Duration = Duration::from_secs(2);

/// Defunct processes that are remembered.
const MAX_KNOWN: usize = 131_072;

/// Defunct processes from scan to scan.
#[derive(Debug, Default)]
pub(super) struct Piles {
    /// When each was first found defunct.
    known: HashMap<Id, Moment>,
    /// The parents that were told.
    told: BTreeSet<u32>,
    lasts: bool,
}

/// The defunct children of one parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pile {
    pub(super) parent: u32,
    pub(super) n: u64,
    pub(super) n_lasting: u64,
    pub(super) oldest: Moment,
}

impl Piles {
    /// Whether some parent was told in the last scan.
    pub(super) fn any(&self) -> bool {
        !self.told.is_empty()
    }

    /// Whether some of their children last.
    pub(super) fn lasts(&self) -> bool {
        self.lasts
    }

    /// What to tell after a scan: the parents with enough defunct children, and those that
    /// had enough before.
    pub(super) fn update(&mut self, now: Moment, scan: &Scan) -> Vec<Pile> {
        self.remember(now, scan);
        let mut piles: BTreeMap<u32, Pile> = BTreeMap::new();
        for defunct in &scan.defunct {
            let since = self.known.get(&defunct.id).copied().unwrap_or(now);
            let pile = piles.entry(defunct.parent).or_insert(Pile {
                parent: defunct.parent,
                n: 0,
                n_lasting: 0,
                oldest: since,
            });
            pile.n += 1;
            pile.n_lasting += u64::from(now.since(since) >= LASTING);
            pile.oldest = pile.oldest.min(since);
        }
        // A scan that left some out does not show that they are fewer.
        let before = match scan.n_left_out {
            0 => std::mem::take(&mut self.told),
            _ => BTreeSet::new(),
        };
        for parent in before {
            piles.entry(parent).or_insert(Pile {
                parent,
                n: 0,
                n_lasting: 0,
                oldest: now,
            });
        }
        let is_told = |pile: &Pile| pile.n >= LEAST_TOLD || pile.n == 0;
        let told: Vec<Pile> = piles.into_values().filter(is_told).collect();
        self.told.extend(
            told.iter()
                .filter(|pile| pile.n > 0)
                .map(|pile| pile.parent),
        );
        self.lasts = told.iter().any(|pile| pile.n_lasting > 0);
        told
    }

    fn remember(&mut self, now: Moment, scan: &Scan) {
        let mut known = std::mem::take(&mut self.known);
        let seen = scan.defunct.iter().map(|defunct| {
            let since = known.get(&defunct.id).copied().unwrap_or(now);
            (defunct.id, since)
        });
        let seen: HashMap<Id, Moment> = seen.collect();
        if scan.n_left_out > 0 && known.len() < MAX_KNOWN {
            known.extend(seen);
            self.known = known;
        } else {
            self.known = seen;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scan::Defunct;
    use super::*;

    fn at(second: u64) -> Moment {
        Moment::from_ns(second * 1_000_000_000)
    }

    /// Children of process 7.
    fn scan(pids: std::ops::Range<u32>) -> Scan {
        let defunct = |pid| Defunct {
            id: Id { pid, started: 5 },
            parent: 7,
        };
        Scan {
            defunct: pids.map(defunct).collect(),
            ..Scan::default()
        }
    }

    fn counts(piles: &[Pile]) -> Vec<(u64, u64)> {
        piles.iter().map(|pile| (pile.n, pile.n_lasting)).collect()
    }

    #[test]
    fn what_is_still_defunct_lasts() {
        let mut piles = Piles::default();
        assert_eq!(counts(&piles.update(at(10), &scan(100..400))), [(300, 0)]);
        let told = piles.update(at(15), &scan(150..420));
        assert_eq!(counts(&told), [(270, 250)]);
        assert_eq!(told[0].oldest, at(10));
        assert!(piles.lasts());
    }

    #[test]
    fn one_burst_after_another_does_not_last() {
        let mut piles = Piles::default();
        piles.update(at(10), &scan(100..400));
        assert_eq!(counts(&piles.update(at(15), &scan(400..700))), [(300, 0)]);
        assert_eq!(counts(&piles.update(at(20), &scan(0..0))), [(0, 0)]);
        assert!(!piles.any());
        assert!(piles.update(at(25), &scan(0..0)).is_empty());
    }

    #[test]
    fn a_few_are_not_told() {
        assert!(Piles::default().update(at(10), &scan(1..6)).is_empty());
    }

    #[test]
    fn a_scan_that_ended_early_takes_nothing_back() {
        let mut piles = Piles::default();
        piles.update(at(10), &scan(100..400));
        let part = Scan {
            n_left_out: 9,
            ..scan(0..0)
        };
        assert!(piles.update(at(15), &part).is_empty());
        let told = piles.update(at(20), &scan(100..400));
        assert_eq!(counts(&told), [(300, 300)]);
    }
}
