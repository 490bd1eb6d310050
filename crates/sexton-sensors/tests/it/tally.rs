//! Memory cgroups counted without a walk of all of them.

use sexton_host::{FolderRoot, Host};
use sexton_model::gate::{Live, Tally};
use sexton_sensors::memcg::tally;
use sexton_testkit::{TempTree, fixture};

/// Counts no more live ones than this.
fn count(folder: &std::path::Path, enough: u64) -> Tally {
    let root = FolderRoot::open(folder).expect("the folder is there");
    let host = Host::new(Box::new(root)).expect("it has a mount table");
    tally(&host, |_| enough)
}

#[test]
fn v2_counts_by_itself() {
    let tally = count(&fixture("6.12-debian13/cgroup-v2"), 0);
    assert_eq!(tally.total, Some(5 + 7));
    assert_eq!(tally.live, Some(Live::Exactly(5)));
}

#[test]
fn v1_counts_directories_until_there_are_enough() {
    let node = fixture("6.18-debian12/cgroup-hybrid");
    let all = count(&node, u64::MAX);
    assert_eq!((all.total, all.live), (Some(37), Some(Live::Exactly(17))));
    let some = count(&node, 5);
    assert_eq!((some.total, some.live), (Some(37), Some(Live::AtLeast(5))));
}

#[test]
fn a_part_of_a_node_is_not_the_node() {
    let tally = count(&fixture("6.18-debian12/cgroup-part"), 5);
    assert_eq!((tally.total, tally.live), (None, None));
    assert!(!tally.gaps.is_empty());
}

#[test]
fn what_is_not_there_is_not_zero() {
    let node = TempTree::node("").file("/proc/self/cgroup", "0::/\n");
    let tally = count(node.path(), 5);
    assert_eq!((tally.total, tally.live), (None, None));
    assert!(!tally.gaps.is_empty());
}
