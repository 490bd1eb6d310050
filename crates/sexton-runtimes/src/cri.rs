//! Follows a runtime of Kubernetes by the interface that the kubelet uses, CRI v1: what
//! there is, every few seconds, and each life's own times and exit code.
//!
//! The events of that interface are not used: CRI-O tells them only where that is turned
//! on. Asking works everywhere, and exact times come with the answers. A container that
//! starts, ends and is removed between two looks is missed; the kubelet keeps dead ones
//! longer than that.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use prost::Message;
use tokio::time::sleep;

use crate::container::{Happening, Identity, Listed, State, What, plain};
use crate::grpc::Method;
use crate::session::{Told, Worker};
use crate::trouble::Trouble;

const VERSION: &str = "/runtime.v1.RuntimeService/Version";
const LIST: &str = "/runtime.v1.RuntimeService/ListContainers";
const STATUS: &str = "/runtime.v1.RuntimeService/ContainerStatus";

/// Looks are this many ticks apart.
const TICKS: u32 = 5;

/// Containers that are asked about in one look; the others wait for the next.
const ASKED_LIMIT: usize = 500;

// The messages, with just the fields that are read. Source: cri-api, runtime/v1/api.proto.

#[derive(Clone, PartialEq, Message)]
struct Empty {}

#[derive(Clone, PartialEq, Message)]
struct VersionAnswer {
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct ListAnswer {
    #[prost(message, repeated, tag = "1")]
    containers: Vec<Container>,
}

#[derive(Clone, PartialEq, Message)]
struct Container {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(int32, tag = "6")]
    state: i32,
    #[prost(int64, tag = "7")]
    created_at: i64,
}

const RUNNING: i32 = 1;
const EXITED: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct StatusQuestion {
    #[prost(string, tag = "1")]
    id: String,
}

#[derive(Clone, PartialEq, Message)]
struct StatusAnswer {
    #[prost(message, optional, tag = "1")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(message, optional, tag = "2")]
    metadata: Option<Metadata>,
    #[prost(int32, tag = "3")]
    state: i32,
    #[prost(int64, tag = "5")]
    started_at: i64,
    #[prost(int64, tag = "6")]
    finished_at: i64,
    #[prost(int32, tag = "7")]
    exit_code: i32,
    #[prost(message, optional, tag = "8")]
    image: Option<Image>,
    #[prost(string, tag = "10")]
    reason: String,
    #[prost(map = "string, string", tag = "12")]
    labels: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint32, tag = "2")]
    attempt: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Image {
    #[prost(string, tag = "1")]
    name: String,
}

/// Which runtime answers.
pub(crate) async fn version(socket: &Path, limit: Duration) -> Result<String, Trouble> {
    let answer: VersionAnswer = method(socket, VERSION).ask(Empty {}, limit).await?;
    Ok(format!(
        "{} {}",
        plain(&answer.name),
        plain(&answer.version)
    ))
}

/// Tells what happened since then, what there is, and what happens from now on.
pub(crate) async fn follow(worker: &Worker, since_wall_ns: u64) -> Result<Infallible, Trouble> {
    let mut follower = Follower {
        worker,
        since_wall_ns,
        known: HashMap::new(),
    };
    loop {
        worker.asking(follower.look()).await?;
        sleep(worker.pace.tick * TICKS).await;
    }
}

/// What happened since then, as far as the runtime still has it: for one that speaks this
/// too, and keeps no events. The kubelet keeps the last dead container of each of a pod's.
pub(crate) async fn past(worker: &Worker, since_wall_ns: u64) -> Result<Vec<Happening>, Trouble> {
    let answer = list(worker).await?;
    let is_recent = |container: &&Container| {
        container.state == EXITED || moment(container.created_at) >= Some(since_wall_ns)
    };
    let mut past = Vec::new();
    for container in answer.containers.iter().filter(is_recent).take(ASKED_LIMIT) {
        let status = status(worker, &container.id).await?;
        past.extend(status.map(|status| lives(&status, since_wall_ns, false)));
    }
    Ok(past.concat())
}

/// What the runtime says of one; `None` if it is gone meanwhile.
async fn status(worker: &Worker, id: &str) -> Result<Option<Status>, Trouble> {
    let question = StatusQuestion { id: id.to_owned() };
    let method = method(&worker.socket, STATUS);
    let answer: Result<StatusAnswer, Trouble> = method.ask(question, worker.pace.answer).await;
    match answer {
        Ok(answer) => Ok(answer.status),
        Err(Trouble::Declined { .. }) => Ok(None),
        Err(trouble) => Err(trouble),
    }
}

async fn list(worker: &Worker) -> Result<ListAnswer, Trouble> {
    let method = method(&worker.socket, LIST);
    method.ask(Empty {}, worker.pace.answer).await
}

fn method<'m>(socket: &'m Path, path: &'static str) -> Method<'m> {
    Method {
        socket,
        path,
        namespace: "",
    }
}

struct Follower<'w> {
    worker: &'w Worker,
    since_wall_ns: u64,
    /// What is known of each container that there is.
    known: HashMap<String, Known>,
}

#[derive(Clone)]
struct Known {
    state: i32,
    identity: Identity,
    started_ns: Option<u64>,
}

impl Follower<'_> {
    async fn look(&mut self) -> Result<(), Trouble> {
        let answer = list(self.worker).await?;
        let mut known = HashMap::new();
        let (mut list, mut n_asked) = (Vec::new(), 0);
        for container in answer.containers {
            let before = self.known.remove(&container.id);
            let is_same = before
                .as_ref()
                .is_some_and(|known| known.state == container.state);
            let now = if is_same {
                before
            } else if n_asked < ASKED_LIMIT {
                n_asked += 1;
                self.ask_for(&container, before.as_ref()).await?
            } else {
                // As it was, so that the next look finds it changed.
                before
            };
            let Some(now) = now else { continue };
            if now.state == RUNNING {
                list.push(Listed {
                    identity: now.identity.clone(),
                    state: State::Runs,
                    created_ns: u64::try_from(container.created_at).ok(),
                    started_ns: now.started_ns,
                });
            }
            known.insert(container.id, now);
        }
        self.known = known;
        self.worker.tell(Told::Listed(list));
        Ok(())
    }

    /// Asks about a container whose state is new, and tells what that means. None if it
    /// is gone meanwhile.
    async fn ask_for(
        &self,
        container: &Container,
        before: Option<&Known>,
    ) -> Result<Option<Known>, Trouble> {
        let Some(status) = status(self.worker, &container.id).await? else {
            return Ok(None);
        };
        let past = lives(&status, self.since_wall_ns, before.is_some());
        if !past.is_empty() {
            self.worker.tell(Told::Past(past));
        }
        Ok(Some(Known {
            state: status.state,
            identity: identity_of(&status),
            started_ns: moment(status.started_at),
        }))
    }
}

/// What a status says happened since then; the end of one that was known to run is told
/// whenever it was. What was told before is left out by the tracker.
fn lives(status: &Status, since_wall_ns: u64, is_known: bool) -> Vec<Happening> {
    let is_news = |wall_ns: &u64| *wall_ns >= since_wall_ns;
    let started = moment(status.started_at).filter(is_news);
    let ended = moment(status.finished_at)
        .filter(|_| status.state == EXITED)
        .filter(|wall_ns| is_known || is_news(wall_ns));
    let exit = What::Exited {
        code: Some(status.exit_code.into()),
        lived_s: None,
    };
    let ran_out = ended.filter(|_| status.reason == "OOMKilled");
    let told = [
        (started, What::Started),
        (ran_out, What::OutOfMemory),
        (ended, exit),
    ];
    let happening = |(wall_ns, what): (Option<u64>, What)| {
        wall_ns.map(|wall_ns| Happening {
            identity: identity_of(status),
            what,
            wall_ns,
        })
    };
    told.into_iter().filter_map(happening).collect()
}

/// Zero and less mean that it has not happened.
fn moment(ns: i64) -> Option<u64> {
    u64::try_from(ns).ok().filter(|ns| *ns > 0)
}

fn identity_of(status: &Status) -> Identity {
    let image = status.image.as_ref().map_or("", |image| &image.name);
    let metadata = status.metadata.as_ref();
    Identity {
        name: metadata.map(|metadata| plain(&metadata.name)),
        attempt: metadata.map(|metadata| metadata.attempt),
        ..Identity::of(&status.id, image, &status.labels)
    }
}

pub(crate) mod fuzzing {
    //! For the fuzz targets.

    use super::*;

    /// What a status says happened.
    pub fn cri_status(message: &[u8]) -> Vec<Happening> {
        let answer = StatusAnswer::decode(message).unwrap_or_default();
        let status = answer.status.as_ref();
        status.map_or_else(Vec::new, |status| lives(status, 0, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Made up: a status, and what happened since 100.
    fn check(state: i32, times: [i64; 2], reason: &str, is_known: bool, expected: &[(What, u64)]) {
        let status = Status {
            id: "a".into(),
            state,
            started_at: times[0],
            finished_at: times[1],
            exit_code: 7,
            reason: reason.into(),
            ..Status::default()
        };
        let told = lives(&status, 100, is_known).into_iter();
        let told: Vec<(What, u64)> = told.map(|told| (told.what, told.wall_ns)).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn a_status_tells_a_life() {
        let exited = What::Exited {
            code: Some(7),
            lived_s: None,
        };
        check(0, [0, 0], "", false, &[]);
        check(RUNNING, [150, 0], "", false, &[(What::Started, 150)]);
        // It ran long before anyone looked.
        check(RUNNING, [50, 0], "", false, &[]);
        check(EXITED, [50, 90], "Error", false, &[]);
        check(EXITED, [50, 150], "Error", false, &[(exited, 150)]);
        let all = [
            (What::Started, 110),
            (What::OutOfMemory, 150),
            (exited, 150),
        ];
        check(EXITED, [110, 150], "OOMKilled", false, &all);
        check(EXITED, [50, 99], "Error", true, &[(exited, 99)]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = ListAnswer::decode(&bytes[..]);
            let _ = StatusAnswer::decode(&bytes[..]);
        }
    }
}
