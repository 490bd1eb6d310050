//! What differs between bad and good nodes. Pure: sets of nodes and numbers in, differences
//! out, strongest first.
//!
//! 1. Everything that a node may have is tested alone (Fisher), every number too
//!    (Mann-Whitney), and false discoveries are bounded (Benjamini-Hochberg).
//! 2. Pairs count where each of the two matters among the nodes that have the other.
//! 3. What tells bad from good nodes best comes first: what only goes with a cause can never
//!    tell more of the trouble than the cause itself (the data processing inequality).
//!    Whatever tells nothing more, once that is known, is folded under it.
//! 4. What appeared after the trouble did is no cause.

mod fold;
mod pairs;
mod screen;
mod spared;

use std::sync::Arc;

use crate::stats::bits::Bits;
use crate::stats::fisher::{self, Counts};
use crate::stats::odds::Odds;
use crate::stats::ranks::Shift;
use crate::stats::special::Factorials;

pub use spared::Exception;

/// The part of reported differences that may be false.
pub const MAX_Q: f64 = 0.05;
/// Nodes that must have a thing, and nodes that must not, before it is compared.
pub const MIN_SUPPORT: u64 = 5;
/// The least difference between the shares of bad and good nodes.
pub const MIN_SHARE_DIFFERENCE: f64 = 0.1;
/// The least factor between their odds.
pub const MIN_ODDS: f64 = 2.0;
/// The chance that a bad node has a greater number than a good one has to be so far from a half.
pub const MIN_SUPERIORITY: f64 = 0.15;

/// What an item is, in the order in which one of several that are on the same nodes is named
/// first: an image brings its units, a unit does not bring an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// What the node was booted from.
    Image,
    /// An installed package.
    Package,
    /// The state of a unit's file.
    UnitFile,
    /// The state of a unit.
    Unit,
    /// The kernel, and what else the node runs on.
    Attribute,
    /// A label of the node.
    Label,
    /// Where it is.
    Zone,
    /// Measured: a finding of sexton.
    Finding,
}

impl Kind {
    /// Whether it is measured: an effect is as likely as a cause.
    pub fn is_measured(self) -> bool {
        self == Self::Finding
    }
}

/// Something that nodes have or do not have.
#[derive(Debug, Clone)]
pub struct Item {
    /// What it is.
    pub kind: Kind,
    /// The column or the kind of thing: `unit`, `image`, `label_team`.
    pub fact: String,
    /// Which one: the name of a unit; empty for columns.
    pub subject: String,
    /// Its value.
    pub value: String,
    /// The places of nodes that have it.
    pub has: Bits,
    /// The places of nodes of which that is known; an index into the masks.
    pub mask: usize,
}

impl Item {
    /// As a line of text: `ecs.service active`, `zone = us-east-1a`.
    pub fn label(&self) -> String {
        match (self.kind, self.value.is_empty()) {
            (Kind::Unit, _) => format!("{} {}", self.subject, self.value),
            (Kind::UnitFile, _) => format!("{} file {}", self.subject, self.value),
            (Kind::Package, true) => format!("package {}", self.subject),
            (Kind::Package, false) => format!("package {} {}", self.subject, self.value),
            (Kind::Finding, _) => format!("finding {}", self.value),
            _ => format!("{} = {}", self.fact, self.value),
        }
    }
}

/// A number that nodes have; `NaN` where it is not known. By place.
#[derive(Debug, Clone)]
pub struct Measure {
    /// The fact.
    pub fact: String,
    /// The numbers of bad nodes that have one.
    pub bad: Vec<f64>,
    /// The numbers of good nodes that have one.
    pub good: Vec<f64>,
    /// The numbers of all places.
    pub values: Vec<f64>,
}

/// When things appeared, for the order of time.
pub trait Times: Sync {
    /// How often an item was there before the trouble, after it, on bad nodes that have it.
    fn order(&self, item: usize) -> Order;
}

/// On how many bad nodes something appeared before the trouble, and on how many after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Order {
    /// Before it.
    pub before: u64,
    /// After it.
    pub after: u64,
    /// Both were there in the first report.
    pub unknown: u64,
}

impl Order {
    fn is_effect(self) -> bool {
        self.after > self.before && self.after >= 3 && self.after > self.unknown
    }
}

/// Nodes to compare. Places are numbers of nodes: bad ones from 0 on, good ones from a
/// multiple of 64 on, so that both are counted in one pass.
pub struct Input<'a> {
    /// The places of bad nodes.
    pub bad: Bits,
    /// The places of good nodes.
    pub good: Bits,
    /// What nodes have.
    pub items: &'a [Item],
    /// Of which nodes that is known.
    pub masks: &'a [Bits],
    /// Numbers of nodes.
    pub measures: &'a [Measure],
    /// When things appeared.
    pub times: &'a dyn Times,
}

impl Input<'_> {
    /// All places.
    pub fn considered(&self) -> Bits {
        self.bad.or(&self.good)
    }
}

/// One or two items that were tested, and all that are on the same nodes.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The items; two for a pair.
    pub parts: Vec<usize>,
    /// Items that are on exactly the same nodes, or exactly on the others.
    pub same: Vec<usize>,
    /// The places of nodes that have it.
    pub has: Bits,
    /// Of which nodes that is known.
    pub known: Arc<Bits>,
    /// How many bad and good nodes have it.
    pub counts: Counts,
    /// Twice the logarithm of how much likelier that makes what was seen.
    pub gain: f64,
    /// By Fisher's test.
    pub p: f64,
    /// After control of false discoveries.
    pub q: f64,
    /// When it appeared.
    pub order: Order,
}

impl Candidate {
    /// The odds ratio.
    pub fn odds(&self) -> Odds {
        Odds::of(self.counts)
    }

    /// Whether bad nodes have it more often.
    pub fn is_hit(&self) -> bool {
        self.counts.bad_share() >= self.counts.good_share()
    }

    fn is_strong(&self) -> bool {
        let odds = self.odds().ratio;
        (self.counts.bad_share() - self.counts.good_share()).abs() >= MIN_SHARE_DIFFERENCE
            && (odds >= MIN_ODDS || odds <= 1.0 / MIN_ODDS)
    }
}

/// A number that differs.
#[derive(Debug, Clone)]
pub struct Shifted {
    /// Which measure.
    pub measure: usize,
    /// How it differs.
    pub shift: Shift,
    /// After control of false discoveries.
    pub q: f64,
}

/// A difference that stands for itself, and what it explains.
#[derive(Debug, Clone)]
pub struct Difference {
    /// What differs.
    pub what: Candidate,
    /// What tells nothing more once that is known.
    pub folded: Vec<Candidate>,
    /// Numbers and findings that go with it.
    pub effects: Vec<Effect>,
    /// Groups that were spared, and how they differ from the rest.
    pub exceptions: Vec<Exception>,
}

/// What is measured and goes with a difference.
#[derive(Debug, Clone)]
pub enum Effect {
    /// A finding.
    Finding(Candidate),
    /// A number.
    Number(Shifted),
}

/// The whole answer.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// How many nodes are bad.
    pub n_bad: u64,
    /// How many are good.
    pub n_good: u64,
    /// How many things were compared one by one.
    pub n_tests: usize,
    /// How many pairs.
    pub n_pairs: usize,
    /// What differs, strongest first.
    pub differences: Vec<Difference>,
    /// What is measured, differs, and goes with none of these.
    pub unexplained: Vec<Effect>,
    /// Why nothing could have been found, if that is so.
    pub too_few: Option<TooFew>,
}

/// Too few nodes for any difference to be told from chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TooFew {
    /// The smallest q that a perfect difference could have.
    pub best_q: f64,
    /// How many nodes, of as many bad as good, would do.
    pub nodes_needed: u64,
}

impl Comparison {
    /// Whether anything differs.
    pub fn is_empty(&self) -> bool {
        self.differences.is_empty() && self.unexplained.is_empty()
    }
}

/// Compares.
pub fn compare(input: &Input<'_>) -> Comparison {
    let factorials = Factorials::up_to(input.considered().count());
    let mut screened = screen::screen(input, &factorials);
    let n_tests = screened.n_tests();
    let too_few = too_few(input, &factorials);
    let (n_pairs, pairs) = pairs::pairs(input, &screened.groups, n_tests, &factorials);
    let significant = screened.take_significant(input);
    let (differences, unexplained) = fold::fold(input, significant, pairs);
    Comparison {
        n_bad: input.bad.count(),
        n_good: input.good.count(),
        n_tests,
        n_pairs,
        differences,
        unexplained,
        too_few,
    }
}

fn too_few(input: &Input<'_>, factorials: &Factorials) -> Option<TooFew> {
    let (bad, good) = (input.bad.count(), input.good.count());
    // All that could differ, however few nodes have it.
    let n_things = (input.items.len() + input.measures.len()).max(1) as f64;
    let best_q = match bad.min(good) {
        0 => 1.0,
        _ => (fisher::smallest_p(bad, good, factorials) * n_things).min(1.0),
    };
    if best_q <= MAX_Q && bad.min(good) >= MIN_SUPPORT {
        return None;
    }
    let enough = (MIN_SUPPORT..).find(|half| {
        let factorials = Factorials::up_to(2 * half);
        fisher::smallest_p(*half, *half, &factorials) * n_things <= MAX_Q
    });
    Some(TooFew {
        best_q,
        nodes_needed: 2 * enough.unwrap_or(u64::MAX / 2),
    })
}
