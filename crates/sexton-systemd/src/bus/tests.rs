//! A manager that behaves, and others that do not.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use tempfile::TempDir;
use zbus::wire::serialized::Context;
use zbus::wire::{Endian, to_bytes};
use zbus::{ObjectPath, Type, Variant};

use super::message::{Message, length};
use super::*;

const WITHIN: Duration = Duration::from_millis(300);
const OK: &[u8] = b"OK 0123456789abcdef0123456789abcdef\r\n";

/// A socket whose one visitor is served so.
fn serve(serve: impl FnOnce(UnixStream) + Send + 'static) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    thread::spawn(move || serve(listener.accept().expect("a visitor").0));
    (folder, path)
}

fn private(path: PathBuf) -> Result<Session, BusError> {
    let user = sexton_host::machine::effective_user();
    let (session, mut errors) = Manager::of_user(user, path, WITHIN).connect();
    session.ok_or_else(|| errors.remove(0))
}

/// Agrees to the handshake.
fn greet(visitor: &mut UnixStream) {
    let mut said = [0; 64];
    assert!(visitor.read(&mut said).expect("a handshake") > 0);
    visitor.write_all(OK).expect("an answer");
}

/// The bytes of a message of a kind, with the fields and the body that are given.
fn encode<T: Serialize + Type>(kind: u8, mut fields: Vec<(u8, Variant<'_>)>, body: &T) -> Vec<u8> {
    let context = |at| Context::new(Endian::Little, at);
    let body = to_bytes(context(0), body).expect("a body");
    if !body.bytes().is_empty() {
        fields.push((8, Variant::Signature(T::SIGNATURE.clone())));
    }
    let fields = to_bytes(context(12), &fields).expect("fields");
    let mut bytes = vec![b'l', kind, 0, 1];
    let len = u32::try_from(body.bytes().len()).expect("a small body");
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(&1u32.to_le_bytes());
    bytes.extend_from_slice(fields.bytes());
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.extend_from_slice(body.bytes());
    bytes
}

fn path(path: &'static str) -> ObjectPath<'static> {
    ObjectPath::try_from(path).expect("a path")
}

fn signal<T: Serialize + Type>(sender: &str, interface: &str, member: &str, body: &T) -> Vec<u8> {
    let fields = vec![
        (1, Variant::ObjectPath(path("/org/freedesktop/systemd1"))),
        (2, Variant::from(interface)),
        (3, Variant::from(member)),
        (7, Variant::from(sender)),
    ];
    encode(4, fields, body)
}

fn unit_new(sender: &str, name: &str) -> Vec<u8> {
    let interface = "org.freedesktop.systemd1.Manager";
    signal(sender, interface, "UnitNew", &(name, path("/a")))
}

/// What a systemd on a bus answers to a call.
fn answer(call: &Message, serial: u32) -> Vec<u8> {
    let to = || vec![(5, Variant::U32(serial))];
    let row = |name: &'static str| {
        let states = ("loaded", "active", "running");
        let (load, active, sub) = states;
        (
            name,
            "",
            load,
            active,
            sub,
            "",
            path("/a"),
            0u32,
            "",
            path("/a"),
        )
    };
    let bus = "org.freedesktop.DBus";
    match call.member.as_str() {
        "Hello" => encode(2, to(), &":1.7"),
        "GetNameOwner" => encode(2, to(), &":1.1"),
        "Subscribe" => [
            unit_new(":1.9", "stranger.service"),
            unit_new(":1.1", "a.service"),
            encode(2, to(), &()),
        ]
        .concat(),
        "ListUnits" => encode(2, to(), &vec![row("a.service"), row("nonsense")]),
        "GetAll" if call.path.ends_with("gone_2eservice") => {
            let error = (4, Variant::from("org.freedesktop.DBus.Error.UnknownObject"));
            encode(3, [to(), vec![error]].concat(), &"it is gone")
        }
        "GetAll" if call.path.ends_with("huge_2eservice") => encode(
            2,
            to(),
            &HashMap::from([("Id", Variant::from(vec![7u8; 1 << 20]))]),
        ),
        "GetAll" => [
            signal(
                bus,
                bus,
                "NameOwnerChanged",
                &("org.freedesktop.systemd1", ":1.1", ""),
            ),
            encode(2, to(), &HashMap::from([("NRestarts", Variant::U32(7))])),
        ]
        .concat(),
        _ => encode(2, to(), &()),
    }
}

/// Serves a bus with a systemd on it, until the visitor goes.
fn bus(mut visitor: UnixStream) {
    greet(&mut visitor);
    visitor
        .read_exact(&mut [0; b"BEGIN\r\n".len()])
        .expect("a beginning");
    let mut prefix = [0; 16];
    while visitor.read_exact(&mut prefix).is_ok() {
        let mut call = prefix.to_vec();
        call.resize(length(&prefix).expect("a call"), 0);
        visitor.read_exact(&mut call[16..]).expect("the rest");
        let serial = u32::from_le_bytes([prefix[8], prefix[9], prefix[10], prefix[11]]);
        let call = Message::parse(&call).expect("a call");
        if visitor.write_all(&answer(&call, serial)).is_err() {
            break;
        }
    }
}

#[test]
fn a_manager_is_asked_and_listened_to_over_a_bus() {
    let (_folder, path) = serve(bus);
    let manager = Manager::of_node(path, "/nonexistent".into(), Duration::from_secs(20));
    let (session, errors) = manager.connect();
    let mut session = session.unwrap_or_else(|| panic!("{errors:?}"));
    session.subscribe().expect("an answer");
    let listed = session.list_units().expect("units");
    let names: Vec<&str> = listed.iter().map(|unit| unit.name.as_str()).collect();
    assert_eq!(names, ["a.service"]);
    // What another on the bus said is not systemd's.
    let signal = session.waiting_signal().expect("a signal");
    assert!(matches!(&signal, Some(Signal::Loaded(name)) if name == "a.service"));
    assert!(session.waiting_signal().expect("no error").is_none());
    let gone = session
        .properties("gone.service", "x.y")
        .expect("an answer");
    assert_eq!(gone, None);
    // Told, and the others go on.
    let huge = session.properties("huge.service", "x.y");
    assert_eq!(huge.expect("an answer"), None);
    let told = session.waiting_signal().expect("a fault");
    assert!(matches!(told, Some(Signal::Malformed(Malformed::TooLarge(n))) if n > 1 << 20));
    let properties = session.properties("a.service", "x.y").expect("an answer");
    let expected = Properties::from([("NRestarts".into(), Value::Number(7))]);
    assert_eq!(properties, Some(expected));
    assert!(matches!(session.waiting_signal(), Err(BusError::Left)));
}

#[test]
fn an_empty_line_is_a_refusal() {
    let (_folder, path) = serve(|mut visitor| {
        let mut said = [0; 64];
        assert!(visitor.read(&mut said).expect("a handshake") > 0);
        visitor.write_all(b"\r\n").expect("an answer");
    });
    let error = private(path).err().expect("an error");
    assert!(matches!(error, BusError::Refused { .. }), "{error}");
}

#[test]
fn a_message_that_claims_to_be_huge_is_refused_before_it_comes() {
    let (_folder, path) = serve(|mut visitor| {
        greet(&mut visitor);
        let mut prefix = [b'l', 4, 0, 1, 0, 0, 0, 6, 1, 0, 0, 0, 0, 0, 0, 0];
        prefix[12] = 8;
        visitor.write_all(&prefix).expect("a prefix");
        thread::sleep(Duration::from_secs(5));
    });
    let error = private(path).err().expect("an error");
    let BusError::Malformed { what, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(what, Malformed::TooLarge((6 << 24) + 24));
}

#[test]
fn a_manager_that_drips_costs_the_deadline_and_no_more() {
    let (_folder, path) = serve(|mut visitor| {
        greet(&mut visitor);
        for byte in unit_new(":1.1", "a.service") {
            if visitor.write_all(&[byte]).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    });
    let began = Instant::now();
    let error = private(path).err().expect("an error");
    assert!(matches!(error, BusError::Stuck { .. }), "{error}");
    assert!(began.elapsed() >= WITHIN);
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_flood_of_signals_is_bounded_and_counted() {
    let (_folder, path) = serve(|mut visitor| {
        greet(&mut visitor);
        // Each 64 KiB: 512 of them weigh as much as may wait.
        let signal = unit_new(":1.1", &format!("{}.service", "a".repeat(65_536)));
        while visitor.write_all(&signal).is_ok() {}
    });
    let user = sexton_host::machine::effective_user();
    let within = Duration::from_secs(3);
    let (session, errors) = Manager::of_user(user, path, within).connect();
    let mut session = session.unwrap_or_else(|| panic!("{errors:?}"));
    let began = Instant::now();
    let error = session.list_units().expect_err("no answer");
    assert!(matches!(error, BusError::Stuck { .. }), "{error}");
    assert!(began.elapsed() < within + Duration::from_secs(2));
    assert!(session.take_lost() > 0);
    // None of these names could be a unit's: all are taken, and none is told.
    assert!(session.waiting_signal().expect("no error").is_none());
}

#[test]
fn a_manager_that_hangs_up_has_ended() {
    let (_folder, path) = serve(|mut visitor| greet(&mut visitor));
    let error = private(path).err().expect("an error");
    assert!(error.is_end(), "{error}");
}
