//! A bus that does not behave costs a deadline and a gap.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use sexton_host::FolderRoot;
use sexton_model::record::{Body, Record};
use sexton_testkit::TempTree;

use super::*;

const WITHIN: Duration = Duration::from_millis(300);

/// A socket whose every visitor is served so, and never let go.
fn serve(tree: &TempTree, name: &str, greet: fn(&mut UnixStream)) -> PathBuf {
    let path = tree.path().join(name);
    let listener = UnixListener::bind(&path).expect("a socket");
    thread::spawn(move || {
        let mut held = Vec::new();
        for visitor in listener.incoming() {
            let mut visitor = visitor.expect("a visitor");
            greet(&mut visitor);
            held.push(visitor);
        }
    });
    path
}

/// The first records that are not empty, and how long one poll took at most.
fn watch(bus: PathBuf, private: PathBuf) -> (Vec<Record>, Duration) {
    let host = Host::live().expect("a mount table");
    let mut units = Units::watch(Places {
        bus,
        private,
        within: WITHIN,
    });
    let until = Instant::now() + Duration::from_secs(20);
    let mut longest = Duration::ZERO;
    while Instant::now() < until {
        let began = Instant::now();
        let mut out = Sink::new(NAME, clock::now());
        units.poll(&host, &mut out);
        longest = longest.max(began.elapsed());
        let records = out.into_records();
        if !records.is_empty() {
            return (records, longest);
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("not a word within 20 s");
}

fn why(record: &Record) -> &Why {
    match &record.body {
        Body::Gap(gap) => &gap.why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bus_that_accepts_and_never_answers_is_an_overrun() {
    let tree = TempTree::new();
    let bus = serve(&tree, "bus", |_| {});
    let began = Instant::now();
    let (records, longest) = watch(bus, tree.path().join("none"));
    assert_eq!(why(&records[0]), &Why::Overrun);
    assert!(began.elapsed() >= WITHIN);
    assert!(longest < Duration::from_secs(1), "a poll took {longest:?}");
}

#[test]
fn a_bus_that_greets_and_then_falls_silent_is_an_overrun() {
    let tree = TempTree::new();
    let greet = |visitor: &mut UnixStream| {
        let mut said = [0; 64];
        assert!(visitor.read(&mut said).expect("a greeting") > 0);
        visitor.write_all(b"OK 1234\r\n").expect("an answer");
    };
    let bus = serve(&tree, "bus", greet);
    let (records, _) = watch(bus, tree.path().join("none"));
    assert_eq!(why(&records[0]), &Why::Overrun);
}

#[test]
fn a_bus_that_speaks_nonsense_is_malformed() {
    let tree = TempTree::new();
    let greet = |visitor: &mut UnixStream| {
        let mut said = [0; 64];
        assert!(visitor.read(&mut said).expect("a greeting") > 0);
        visitor.write_all(b"OK 1234\r\n").expect("an answer");
        visitor.write_all(&[0xff; 64]).expect("noise");
    };
    let bus = serve(&tree, "bus", greet);
    let (records, _) = watch(bus, tree.path().join("none"));
    assert_eq!(why(&records[0]), &Why::Malformed);
}

#[test]
fn a_refusal_is_denied_and_no_socket_unsupported() {
    let tree = TempTree::new();
    let bus = serve(&tree, "bus", |visitor| {
        visitor.write_all(b"REJECTED\r\n").expect("an answer");
    });
    let (records, _) = watch(bus, tree.path().join("none"));
    assert_eq!(why(&records[0]), &Why::Denied);
    let (records, _) = watch(tree.path().join("none"), tree.path().join("none"));
    assert_eq!(why(&records[0]), &Why::Unsupported);
}

#[test]
fn a_node_that_systemd_does_not_run_is_said() {
    let tree = TempTree::node("");
    let root = FolderRoot::open(tree.path()).expect("a folder");
    let host = Host::new(Box::new(root)).expect("a mount table");
    let gap = open(&host).err().expect("a gap");
    assert_eq!(gap.why, Why::Unsupported);
    assert_eq!(examine(&host).len(), 1);
}
