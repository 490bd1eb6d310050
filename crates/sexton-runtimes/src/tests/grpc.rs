//! Calls of gRPC, to a service that is real HTTP/2 and answers as the test has it.

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Reason, SendStream};
use http::{HeaderMap, Response};
use prost::Message;
use sexton_testkit::TempTree;
use tokio::net::UnixListener;

use super::{HASTY, PATIENT, told, wait_until};
use crate::grpc::{Call, Method};
use crate::reactor::Reactor;

#[derive(Clone, PartialEq, Message)]
struct Text {
    #[prost(string, tag = "1")]
    text: String,
}

/// What a service does with a call, once its headers are there.
#[derive(Clone)]
enum Does {
    /// Sends this, and then these trailers.
    Answer(Vec<u8>, &'static [(&'static str, &'static str)]),
    /// Sends this as if it were not yet all.
    Hold(Vec<u8>),
    /// Sends this, and no trailers.
    Break(Vec<u8>),
    /// Ends the stream with an error.
    Reset(Reason),
    /// Answers with these headers and this status only.
    Headers(u16, Vec<(&'static str, String)>),
    /// Says nothing for so long, and then answers.
    Late(Duration, Vec<u8>),
    /// Says nothing at all.
    Nothing,
}

const OK: &[(&str, &str)] = &[("grpc-status", "0")];

/// A service that does the same with every call, and tells the path and namespace of each,
/// and when its connection is over.
struct Service {
    folder: TempTree,
    heard: mpsc::Receiver<String>,
}

impl Service {
    fn start(does: Does) -> Self {
        let folder = TempTree::new();
        let (send, heard) = mpsc::channel();
        let socket = folder.path().join("sock");
        let (ready, is_ready) = mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let listener = UnixListener::bind(socket).expect("a socket");
                ready.send(()).expect("the test waits");
                loop {
                    let (stream, _) = listener.accept().await.expect("a connection");
                    let (does, send) = (does.clone(), send.clone());
                    tokio::spawn(async move {
                        let mut streams = server::handshake(stream).await.expect("HTTP/2");
                        while let Some(Ok((request, respond))) = streams.accept().await {
                            let namespace = request.headers().get("containerd-namespace");
                            let namespace = namespace.map_or("-", |n| n.to_str().expect("text"));
                            let path = request.uri().path();
                            send.send(format!("{path} {namespace}")).ok();
                            tokio::spawn(serve(does.clone(), respond));
                        }
                        send.send("over".into()).ok();
                    });
                }
            });
        });
        is_ready.recv().expect("a service");
        Self { folder, heard }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("sock")
    }

    fn heard(&self) -> String {
        self.heard
            .recv_timeout(PATIENT)
            .expect("it hears something")
    }
}

async fn serve(does: Does, mut respond: SendResponse<Bytes>) {
    let mut begin = || {
        let response = Response::builder().header("content-type", "application/grpc");
        let response = response.body(()).expect("a response");
        respond.send_response(response, false).expect("a stream")
    };
    match does {
        Does::Answer(bytes, trailers) => {
            let mut stream = begin();
            send(&mut stream, bytes).await;
            let trailers = trailers
                .iter()
                .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("text")));
            let trailers: HeaderMap = trailers.collect();
            stream.send_trailers(trailers).ok();
        }
        Does::Hold(bytes) => {
            let mut stream = begin();
            send(&mut stream, bytes).await;
            std::future::pending::<()>().await;
        }
        Does::Break(bytes) => {
            let mut stream = begin();
            send(&mut stream, bytes).await;
            stream.send_data(Bytes::new(), true).ok();
        }
        Does::Reset(reason) => respond.send_reset(reason),
        Does::Headers(status, fields) => {
            let mut response = Response::builder().status(status);
            for (name, value) in fields {
                response = response.header(name, value);
            }
            let response = response.body(()).expect("a response");
            respond.send_response(response, true).ok();
        }
        Does::Late(wait, bytes) => {
            tokio::time::sleep(wait).await;
            let mut stream = begin();
            send(&mut stream, bytes).await;
            std::future::pending::<()>().await;
        }
        Does::Nothing => std::future::pending::<()>().await,
    }
}

/// Sends it as the window of the client allows.
async fn send(stream: &mut SendStream<Bytes>, mut bytes: Vec<u8>) {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let window = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
        let Some(Ok(n)) = window else { return };
        let rest = bytes.split_off(n.min(bytes.len()));
        stream.send_data(bytes.into(), false).ok();
        bytes = rest;
    }
}

/// A message with its frame.
fn framed(text: &str) -> Vec<u8> {
    let message = Text { text: text.into() }.encode_to_vec();
    let mut out = vec![0];
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(&message);
    out
}

fn question() -> Text {
    Text { text: "q".into() }
}

fn ask(service: &Service, namespace: &'static str, limit: Duration) -> String {
    let socket = service.socket();
    let answer = async move {
        let method = Method {
            socket: &socket,
            path: "/a.Service/Method",
            namespace,
        };
        method.ask::<Text, Text>(question(), limit).await
    };
    let answer = Reactor::default().run(answer).expect("a thread");
    told(answer.map(|answer| answer.text))
}

fn check(does: Does, expected: &str) {
    let told = ask(&Service::start(does), "", PATIENT);
    assert!(told.contains(expected), "{told}");
}

#[test]
fn a_call_is_asked_and_answered() {
    let service = Service::start(Does::Answer(framed("yes"), OK));
    assert_eq!(ask(&service, "k8s.io", PATIENT), "yes");
    assert_eq!(service.heard(), "/a.Service/Method k8s.io");
    assert_eq!(service.heard(), "over");
    assert_eq!(ask(&service, "", PATIENT), "yes");
    assert_eq!(service.heard(), "/a.Service/Method -");
    // Far more than the window that is open at first.
    let long = "x".repeat(3 << 20);
    check(Does::Answer(framed(&long), OK), &long);
    // The message is enough: its status is not waited for.
    check(Does::Hold(framed("yes")), "yes");
}

#[test]
fn what_a_service_says_instead_is_told() {
    let none = b"".to_vec();
    check(
        Does::Answer(
            none.clone(),
            &[("grpc-status", "12"), ("grpc-message", "no%0Asuch")],
        ),
        r"unsupported: it declined with gRPC status 12: no\012such",
    );
    check(
        Does::Answer(none.clone(), &[("grpc-status", "7")]),
        "denied: it declined",
    );
    check(
        Does::Answer(none.clone(), &[("grpc-status", "14")]),
        "vanished: it declined",
    );
    // These codes are also what tonic makes of what it cannot read.
    check(
        Does::Answer(
            none.clone(),
            &[("grpc-status", "11"), ("grpc-message", "range")],
        ),
        "unsupported: it declined with gRPC status 11: range",
    );
    check(
        Does::Answer(none.clone(), &[("grpc-status", "2")]),
        "unsupported: it declined with gRPC status 2",
    );
    let fields = vec![
        ("grpc-status", "12".into()),
        ("grpc-message", "none".into()),
    ];
    check(
        Does::Headers(200, fields),
        "unsupported: it declined with gRPC status 12: none",
    );
    check(
        Does::Headers(404, Vec::new()),
        "unsupported: it refused with status 404: this is no gRPC",
    );
    check(
        Does::Answer(none, OK),
        "malformed: its answer makes no sense: it holds no message",
    );
}

#[test]
fn a_call_that_breaks_is_told() {
    let unfinished = "vanished: it ended the call without a status";
    check(Does::Break(Vec::new()), unfinished);
    check(
        Does::Reset(Reason::CANCEL),
        "vanished: it ended the call with HTTP/2 error 8",
    );
    check(
        Does::Reset(Reason::INTERNAL_ERROR),
        "vanished: it ended the call with HTTP/2 error 2",
    );
    let mut cut = framed("text");
    cut.truncate(7);
    check(Does::Break(cut), "malformed: its answer makes no sense: ");
}

#[test]
fn nonsense_is_an_error() {
    let nonsense = "malformed: its answer makes no sense: ";
    let mut packed = framed("text");
    packed[0] = 1;
    check(Does::Answer(packed, OK), nonsense);
    let mut odd = framed("text");
    odd[0] = 7;
    check(Does::Answer(odd, OK), nonsense);
    // A field of text that is longer than its message.
    check(Does::Answer(vec![0, 0, 0, 0, 2, 0x0a, 0x09], OK), nonsense);
    check(
        Does::Headers(200, vec![("long", "x".repeat(65 << 10))]),
        "malformed: its answer is no HTTP/2: ",
    );
    let told = ask(&Service::start(Does::Nothing), "two\nlines", PATIENT);
    assert!(told.contains("a namespace that is no name"), "{told}");
}

#[test]
fn too_much_is_not_waited_for() {
    let length = ((8 << 20) + 1_u32).to_be_bytes();
    let large = [&[0][..], &length, b"begins"].concat();
    check(
        Does::Hold(large),
        "malformed: its answer is over 8388608 bytes",
    );
}

#[test]
fn every_wait_has_an_end() {
    let silent = "overrun: no answer within 200.0ms";
    let mut half = framed("text");
    half.truncate(7);
    let stuck = [
        Does::Nothing,
        Does::Hold(Vec::new()),
        Does::Hold(half),
        Does::Hold(vec![0, 0, 0x70, 0, 0]),
    ];
    for does in stuck {
        let service = Service::start(does);
        assert_eq!(ask(&service, "", HASTY), silent);
        // The connection does not outlive the question.
        assert_eq!(service.heard(), "/a.Service/Method -");
        assert_eq!(service.heard(), "over");
    }
}

#[test]
fn a_message_is_not_lost_with_the_patience_for_it() {
    let service = Service::start(Does::Late(Duration::from_millis(300), framed("late")));
    let socket = service.socket();
    let mut n_waits = 0;
    let answer = async move {
        let method = Method {
            socket: &socket,
            path: "/a.Service/Method",
            namespace: "",
        };
        // It does not wait for headers, which come with the first message.
        let call = method.call::<Text, Text>(question(), HASTY).await;
        let mut call: Call<Text> = call.expect("a call");
        loop {
            n_waits += 1;
            let next = tokio::time::timeout(Duration::from_millis(5), call.next()).await;
            if let Ok(message) = next {
                let message = message.expect("no error").expect("a message");
                return (message.text, n_waits);
            }
        }
    };
    let (text, n_waits) = Reactor::default().run(answer).expect("a thread");
    assert_eq!(text, "late");
    assert!(n_waits > 2, "{n_waits}");
    let mut last = String::new();
    wait_until("the end of its connection", || {
        last = service.heard();
        last == "over"
    });
}
