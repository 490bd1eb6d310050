//! Sessions: their bounds, their thread and their end.

use std::io::Read;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc;
use std::time::Duration;

use sexton_testkit::TempTree;
use sexton_testkit::daemon::{self, FakeDaemon, Reply};

use super::{PATIENT, wait_until};
use crate::{Next, Pace, Reactor, Session, Speaks, Told};

const PACE: Pace = Pace {
    answer: PATIENT,
    tick: Duration::from_millis(10),
    silence: Duration::from_secs(60),
};

fn events(n: u64) -> Vec<u8> {
    let event = |i| daemon::event("start", &format!("c{i}"), i);
    daemon::events(&(1..=n).map(event).collect::<Vec<_>>())
}

/// A Docker daemon with this number of events in its past and in its stream.
fn docker(n_past: u64, n_live: u64) -> FakeDaemon {
    FakeDaemon::start(move |target| match target {
        _ if target.contains("until=") => Reply::End(events(n_past)),
        _ if target.starts_with("/events") => Reply::Hold(events(n_live)),
        _ if target.starts_with("/containers") => Reply::End(daemon::answer("[]")),
        _ => Reply::End(daemon::answer("OK")),
    })
}

fn begin(reactor: &mut Reactor, speaks: Speaks, socket: std::path::PathBuf) -> Session {
    Session::begin(reactor, speaks, socket, 0, 1, PACE).expect("a thread")
}

/// The next message, for which it waits.
fn next(session: &mut Session) -> Next {
    let mut found = Next::Nothing;
    wait_until("a message", || {
        found = session.next();
        !matches!(found, Next::Nothing)
    });
    found
}

#[test]
fn of_a_long_past_the_last_events_are_kept_and_the_others_counted() {
    let daemon = docker(3000, 0);
    let mut reactor = Reactor::default();
    let mut session = begin(&mut reactor, Speaks::Docker, daemon.socket());
    let Next::Told(Told::Past(past)) = next(&mut session) else {
        panic!("the past comes first");
    };
    assert_eq!((past.len(), past[0].identity.id.as_str()), (2048, "c953"));
    assert_eq!(session.take_lost(), 952);
}

#[test]
fn events_that_are_not_taken_are_counted() {
    let daemon = docker(0, 5000);
    let mut reactor = Reactor::default();
    let mut session = begin(&mut reactor, Speaks::Docker, daemon.socket());
    // The past and the list are messages, too.
    let mut n_lost = 0;
    wait_until("the events", || {
        n_lost += session.take_lost();
        n_lost == 5000 + 2 - 4096
    });
    let mut n = 0;
    while let Next::Told(_) = session.next() {
        n += 1;
    }
    assert_eq!(n, 4096);
}

/// A daemon that takes connections and says nothing.
fn mute() -> (TempTree, mpsc::Receiver<UnixStream>) {
    let folder = TempTree::new();
    let listener = UnixListener::bind(folder.path().join("sock")).expect("a socket");
    let (send, taken) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            send.send(stream.expect("a connection")).ok();
        }
    });
    (folder, taken)
}

/// Reads until the peer has closed.
fn wait_for_close(mut stream: UnixStream) {
    stream.set_read_timeout(Some(PATIENT)).expect("a timeout");
    stream.read_to_end(&mut Vec::new()).expect("its end");
}

#[test]
fn a_session_that_is_dropped_closes_its_connections() {
    for speaks in [Speaks::Docker, Speaks::Containerd, Speaks::Cri] {
        let (folder, taken) = mute();
        let mut reactor = Reactor::default();
        let session = begin(&mut reactor, speaks, folder.path().join("sock"));
        let stream = taken.recv_timeout(PATIENT).expect("a connection");
        wait_until("a question", || !session.waits().is_zero());
        drop(session);
        wait_for_close(stream);
    }
}

#[test]
fn a_session_ends_with_its_thread() {
    let (folder, taken) = mute();
    let mut reactor = Reactor::default();
    let mut session = begin(&mut reactor, Speaks::Cri, folder.path().join("sock"));
    let stream = taken.recv_timeout(PATIENT).expect("a connection");
    drop(reactor);
    wait_for_close(stream);
    assert!(matches!(next(&mut session), Next::Ended(_)));
}

#[test]
fn a_stuck_daemon_holds_up_no_other() {
    let (folder, _taken) = mute();
    let well = docker(1, 0);
    let mut reactor = Reactor::default();
    let mut stuck = begin(&mut reactor, Speaks::Containerd, folder.path().join("sock"));
    let mut heard = begin(&mut reactor, Speaks::Docker, well.socket());
    assert!(matches!(next(&mut heard), Next::Told(Told::Past(_))));
    assert!(matches!(stuck.next(), Next::Nothing));
}

#[test]
fn the_thread_is_one_and_stands_back() {
    let mut reactor = Reactor::default();
    let here = || async {
        let nice = rustix::process::getpriority_process(None).expect("a priority");
        (rustix::thread::gettid(), nice)
    };
    let before = rustix::process::getpriority_process(None).expect("a priority");
    let first = reactor.run(here()).expect("a thread");
    assert_eq!(first, reactor.run(here()).expect("the same thread"));
    assert_ne!(first.0, rustix::thread::gettid());
    assert_eq!(first.1, 10.max(before));
    // Lowering it has not lowered others.
    let after = rustix::process::getpriority_process(None).expect("a priority");
    assert_eq!(after, before);
}
