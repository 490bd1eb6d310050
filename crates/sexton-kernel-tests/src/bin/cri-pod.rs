//! Runs pods by the interface that the kubelet uses, with curl as its HTTP/2:
//! `cri-pod SOCKET NAME IMAGE COMMAND...` runs a pod with one container, which gets 20 MB,
//! and prints the container's id. `ATTEMPT=7` in the environment makes it the eighth try.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::collections::HashMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use prost::Message;

// Just the fields that are needed. Source: cri-api, runtime/v1/api.proto.

#[derive(Clone, PartialEq, Message)]
struct RunPod {
    #[prost(message, optional, tag = "1")]
    config: Option<Pod>,
}

#[derive(Clone, PartialEq, Message)]
struct Pod {
    #[prost(message, optional, tag = "1")]
    metadata: Option<PodMetadata>,
    #[prost(map = "string, string", tag = "6")]
    labels: HashMap<String, String>,
    #[prost(message, optional, tag = "8")]
    linux: Option<LinuxPod>,
}

#[derive(Clone, PartialEq, Message)]
struct PodMetadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    uid: String,
    #[prost(string, tag = "3")]
    namespace: String,
}

#[derive(Clone, PartialEq, Message)]
struct LinuxPod {
    #[prost(message, optional, tag = "2")]
    security: Option<Security>,
}

#[derive(Clone, PartialEq, Message)]
struct Security {
    #[prost(message, optional, tag = "1")]
    namespaces: Option<Namespaces>,
}

#[derive(Clone, PartialEq, Message)]
struct Namespaces {
    #[prost(int32, tag = "1")]
    network: i32,
}

/// The network of the node: nothing has to be set up for it.
const NODE: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct CreateContainer {
    #[prost(string, tag = "1")]
    pod: String,
    #[prost(message, optional, tag = "2")]
    config: Option<Container>,
    #[prost(message, optional, tag = "3")]
    pod_config: Option<Pod>,
}

#[derive(Clone, PartialEq, Message)]
struct Container {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Try>,
    #[prost(message, optional, tag = "2")]
    image: Option<Name>,
    #[prost(string, repeated, tag = "3")]
    command: Vec<String>,
    #[prost(map = "string, string", tag = "9")]
    labels: HashMap<String, String>,
    #[prost(message, optional, tag = "15")]
    linux: Option<LinuxContainer>,
}

#[derive(Clone, PartialEq, Message)]
struct LinuxContainer {
    #[prost(message, optional, tag = "1")]
    resources: Option<Resources>,
}

#[derive(Clone, PartialEq, Message)]
struct Resources {
    #[prost(int64, tag = "4")]
    memory_bytes: i64,
}

const MEMORY_BYTES: i64 = 20_000_000;

#[derive(Clone, PartialEq, Message)]
struct Try {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint32, tag = "2")]
    attempt: u32,
}

/// Several messages have one text as their first field.
#[derive(Clone, PartialEq, Message)]
struct Name {
    #[prost(string, tag = "1")]
    name: String,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [socket, name, image, command @ ..] = &args[..] else {
        bail!("usage: cri-pod SOCKET NAME IMAGE COMMAND...");
    };
    let attempt = std::env::var("ATTEMPT").map_or(Ok(0), |n| n.parse())?;
    let pod = pod(name);
    let question = RunPod {
        config: Some(pod.clone()),
    };
    let sandbox: Name = call(socket, "RunPodSandbox", &question)?;
    let mut labels = pod.labels.clone();
    labels.insert("io.kubernetes.container.name".into(), "main".into());
    let resources = Resources {
        memory_bytes: MEMORY_BYTES,
    };
    let question = CreateContainer {
        pod: sandbox.name,
        config: Some(Container {
            metadata: Some(Try {
                name: "main".into(),
                attempt,
            }),
            image: Some(named(image)),
            command: command.to_vec(),
            labels,
            linux: Some(LinuxContainer {
                resources: Some(resources),
            }),
        }),
        pod_config: Some(pod),
    };
    let container: Name = call(socket, "CreateContainer", &question)?;
    println!("{}", container.name);
    let _: Name = call(socket, "StartContainer", &container)?;
    Ok(())
}

fn named(name: &str) -> Name {
    Name { name: name.into() }
}

fn pod(name: &str) -> Pod {
    let labels = [
        ("io.kubernetes.pod.name", name),
        ("io.kubernetes.pod.namespace", "tests"),
        ("io.kubernetes.pod.uid", "uid-1"),
    ];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Pod {
        metadata: Some(PodMetadata {
            name: name.into(),
            uid: "uid-1".into(),
            namespace: "tests".into(),
        }),
        labels: labels.into(),
        linux: Some(LinuxPod {
            security: Some(Security {
                namespaces: Some(Namespaces { network: NODE }),
            }),
        }),
    }
}

/// Calls a method of the runtime, and reads the one message it answers with.
fn call<A: Message + Default>(socket: &str, method: &str, question: &impl Message) -> Result<A> {
    let mut curl = Command::new("curl")
        .args(["--silent", "--show-error", "--http2-prior-knowledge"])
        .args(["--dump-header", "/dev/stderr", "--data-binary", "@-"])
        .args(["--header", "content-type: application/grpc"])
        .args(["--header", "te: trailers", "--unix-socket", socket])
        .arg(format!(
            "http://localhost/runtime.v1.RuntimeService/{method}"
        ))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start curl")?;
    let message = question.encode_to_vec();
    let mut framed = vec![0];
    framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
    framed.extend_from_slice(&message);
    let mut stdin = curl.stdin.take().context("curl takes nothing")?;
    stdin.write_all(&framed)?;
    drop(stdin);
    let output = curl.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let answer = output.stdout.get(5..);
    ensure!(output.status.success(), "{method} failed: {said}");
    let answer = answer.with_context(|| format!("{method} failed: {said}"))?;
    Ok(A::decode(answer)?)
}
