//! A bus that does not behave costs a deadline and a gap.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::Instant;

use sexton_host::{FolderRoot, clock};
use sexton_model::record::{Body, Record};
use sexton_testkit::TempTree;

use super::*;

const WITHIN: Duration = Duration::from_millis(300);

/// A handshake that is agreed to, with the id of a bus.
const OK: &[u8] = b"OK 0123456789abcdef0123456789abcdef\r\n";

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
    first_words(Units::watch(&Places {
        bus,
        private,
        users: "/nonexistent".into(),
        within: WITHIN,
    }))
}

fn first_words(mut units: Units) -> (Vec<Record>, Duration) {
    let host = Host::live().expect("a mount table");
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
        visitor.write_all(OK).expect("an answer");
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
        visitor.write_all(OK).expect("an answer");
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

/// A folder of a user with a socket of ours, which any visitor finds silent.
fn users_of(tree: &TempTree, user: u32, greet: fn(&mut UnixStream)) -> Units {
    let folder = tree.path().join(format!("users/{user}/systemd"));
    std::fs::create_dir_all(&folder).expect("a folder");
    serve(tree, &format!("users/{user}/systemd/private"), greet);
    // The node's own manager never answers, and is not heard of before these are.
    let bus = serve(tree, "bus", |_| {});
    Units::watch(&Places {
        bus,
        private: tree.path().join("none"),
        users: tree.path().join("users"),
        within: Duration::from_secs(15),
    })
}

#[test]
fn a_socket_in_a_users_folder_that_somebody_else_serves_is_not_spoken_to() {
    let tree = TempTree::new();
    let stranger = sexton_host::machine::effective_user() + 1;
    let units = users_of(&tree, stranger, |visitor| {
        let said = visitor.read(&mut [0; 64]).expect("the end");
        assert_eq!(said, 0, "a word was said");
    });
    let (records, _) = first_words(units);
    assert_eq!(why(&records[0]), &Why::Malformed);
}

#[test]
fn a_manager_of_a_user_that_speaks_nonsense_is_malformed() {
    let tree = TempTree::new();
    let units = users_of(&tree, sexton_host::machine::effective_user(), |visitor| {
        let mut said = [0; 64];
        assert!(visitor.read(&mut said).expect("a greeting") > 0);
        visitor.write_all(&[0xff; 8192]).expect("noise");
    });
    let (records, _) = first_words(units);
    assert_eq!(why(&records[0]), &Why::Malformed);
}

#[test]
fn a_user_who_has_left_is_no_gap() {
    let tree = TempTree::new();
    let folder = tree.path().join("users/7/systemd");
    std::fs::create_dir_all(&folder).expect("a folder");
    // Nobody listens any more.
    drop(UnixListener::bind(folder.join("private")).expect("a socket"));
    let host = Host::live().expect("a mount table");
    let sensor = Subject::new(SubjectKind::Sensor, NAME);
    let mut users = Users::new(&tree.path().join("users"), WITHIN);
    for _ in 0..20 {
        let mut out = Sink::new(NAME, clock::now());
        users.poll(&host, &sensor, &mut out);
        assert!(out.into_records().is_empty());
        thread::sleep(Duration::from_millis(20));
    }
}
