//! The space of filesystems: of this very system, and of one that does not run.

use sexton_host::Host;
use sexton_model::fact::filesystem as fact;
use sexton_model::gap::Why;
use sexton_model::record::Record;
use sexton_model::sight::Clarity;
use sexton_model::subject::SubjectKind;

use crate::node::{Node, open, poll, spec};

#[test]
fn each_local_filesystem_of_this_system_is_told_once() {
    let host = Host::live().expect("this system");
    let mut sensor = open("filesystems", &host).expect("it opens");
    let first = poll("filesystems", sensor.as_mut(), &host, 1_000);
    let of = |fact: &'static sexton_model::fact::Fact, records: &[Record]| {
        let own = records.iter().filter(|one| one.fact() == Some(fact));
        let own = own.map(|one| {
            assert_eq!(one.subject.kind, SubjectKind::Mount);
            (one.subject.name.to_string(), one.value())
        });
        own.collect::<Vec<_>>()
    };
    let used = of(&fact::FS_USED_RATIO, &first);
    assert!(!used.is_empty(), "no local filesystem");
    for (point, value) in &used {
        let value = value.expect("a sample");
        assert!((0.0..=1.0).contains(&value), "{point}: {value}");
    }
    let mut points: Vec<&String> = used.iter().map(|(point, _)| point).collect();
    points.sort();
    points.dedup();
    assert_eq!(points.len(), used.len());
    assert!(of(&fact::FS_SEEN.fact, &first).len() >= used.len());
    // Only what is new or changes is told as an event again; others may mount meanwhile.
    let second = poll("filesystems", sensor.as_mut(), &host, 31_000);
    let again = of(&fact::FS_SEEN.fact, &second);
    assert!(again.iter().all(|(point, _)| *point != "/"), "{again:?}");
}

#[test]
fn what_does_not_run_cannot_be_asked() {
    let node = Node::new("filesystems");
    let gap = open("filesystems", &node.host()).err().expect("a gap");
    assert_eq!(gap.why, Why::Unsupported);
    let sights = (spec("filesystems").examine)(&node.host());
    assert_eq!(sights[0].clarity, Clarity::Blind);
}
