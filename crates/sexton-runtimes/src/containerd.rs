//! Follows containerd by its own services: events of all namespaces, and at the beginning
//! what there is. That covers `ctr`, `nerdctl` and the containers of Kubernetes alike;
//! those of Docker are left to Docker, which knows their names.
//!
//! containerd keeps no events. What ended shortly before is known only as long as its
//! task is not deleted, which most clients do at once; of the containers of Kubernetes,
//! CRI, which it speaks as well, knows the last of each.

mod messages;

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use prost::Message;
use tokio::time::{Instant, timeout_at};

use crate::connection::within;
use crate::container::{Happening, Identity, Listed, State, What, plain};
use crate::cri;
use crate::grpc::{Call, Method};
use crate::session::{Told, Worker};
use crate::trouble::Trouble;
use messages::{
    ById, Container, ContainerAnswer, ContainerCreate, Empty, Envelope, Filters, NamespacesAnswer,
    OfContainer, PAUSED, PAUSING, RUNNING, STOPPED, TaskExit, TasksAnswer, Timestamp,
    VersionAnswer,
};

const VERSION: &str = "/containerd.services.version.v1.Version/Version";
const SUBSCRIBE: &str = "/containerd.services.events.v1.Events/Subscribe";
const NAMESPACES: &str = "/containerd.services.namespaces.v1.Namespaces/List";
const CONTAINERS: &str = "/containerd.services.containers.v1.Containers/ListStream";
const CONTAINER: &str = "/containerd.services.containers.v1.Containers/Get";
const TASKS: &str = "/containerd.services.tasks.v1.Tasks/List";

/// The namespace of Docker. It names no images there.
const OF_DOCKER: &str = "moby";

/// The namespace of Kubernetes.
const OF_KUBERNETES: &str = "k8s.io";

/// Kubernetes tells of thousands of probes that run inside containers; these few topics
/// are all that is subscribed to.
const TOPICS: [&str; 5] = [
    "/containers/create",
    "/containers/delete",
    "/tasks/start",
    "/tasks/oom",
    "/tasks/exit",
];

/// Containers whose names are kept.
const KNOWN_LIMIT: usize = 10_000;

/// Namespaces that are looked into; each is a tenant, and a node has a few.
const NAMESPACES_LIMIT: usize = 64;

/// Which version answers.
pub(crate) async fn version(socket: &Path, limit: Duration) -> Result<String, Trouble> {
    let method = Method {
        socket,
        path: VERSION,
        namespace: "",
    };
    let answer: VersionAnswer = method.ask(Empty {}, limit).await?;
    Ok(format!("containerd {}", plain(&answer.version)))
}

/// Tells what ended since then and was kept, what there is, and what happens from now on.
pub(crate) async fn follow(worker: &Worker, since_wall_ns: u64) -> Result<Infallible, Trouble> {
    let mut follower = Follower {
        worker,
        known: HashMap::new(),
    };
    let mut stream = worker.asking(follower.subscribe()).await?;
    let past = worker
        .asking(past_of_kubernetes(worker, since_wall_ns))
        .await?;
    worker.tell(Told::Past(past));
    worker.asking(follower.look(since_wall_ns)).await?;
    // The subscription may have begun after the first look: containerd does not say.
    let mut second_look = Some(Instant::now() + worker.pace.tick);
    let mut heard = Instant::now();
    loop {
        if second_look.is_some_and(|at| Instant::now() >= at) {
            worker.asking(follower.look(since_wall_ns)).await?;
            second_look = None;
        }
        let until = second_look.unwrap_or(heard + worker.pace.silence);
        match timeout_at(until, stream.next()).await {
            Ok(envelope) => {
                follower.take(&envelope?.ok_or(Trouble::Ended)?).await;
                heard = Instant::now();
            }
            // No events and no daemon look alike until it is asked.
            Err(_) if heard.elapsed() >= worker.pace.silence => {
                let version = version(&worker.socket, worker.pace.answer);
                worker.asking(version).await?;
                heard = Instant::now();
            }
            Err(_) => {}
        }
    }
}

/// What CRI knows of the past; nothing where containerd is told not to speak it.
async fn past_of_kubernetes(
    worker: &Worker,
    since_wall_ns: u64,
) -> Result<Vec<Happening>, Trouble> {
    let mut past = match cri::past(worker, since_wall_ns).await {
        Err(Trouble::Declined { .. }) => Vec::new(),
        past => past?,
    };
    for happening in &mut past {
        happening.identity.namespace = Some(OF_KUBERNETES.to_owned());
    }
    Ok(past)
}

struct Follower<'w> {
    worker: &'w Worker,
    /// By namespace and id: an event tells no more of its container.
    known: HashMap<(String, String), Identity>,
}

impl Follower<'_> {
    async fn subscribe(&self) -> Result<Call<Envelope>, Trouble> {
        let filter = |topic| format!("topic==\"{topic}\",namespace!={OF_DOCKER}");
        let filters = TOPICS.iter().map(filter).collect();
        self.method(SUBSCRIBE, "")
            .call(Filters { filters }, self.worker.pace.answer)
            .await
    }

    fn method<'m>(&'m self, path: &'static str, namespace: &'m str) -> Method<'m> {
        Method {
            socket: &self.worker.socket,
            path,
            namespace,
        }
    }

    /// Tells what there is.
    async fn look(&mut self, since_wall_ns: u64) -> Result<(), Trouble> {
        let answer: NamespacesAnswer = self
            .method(NAMESPACES, "")
            .ask(Empty {}, self.worker.pace.answer)
            .await?;
        let names = answer
            .namespaces
            .into_iter()
            .map(|namespace| namespace.name);
        let mut names: Vec<String> = names.filter(|name| name != OF_DOCKER).collect();
        if names.len() > NAMESPACES_LIMIT {
            let n = names.len() - NAMESPACES_LIMIT;
            let why = format!("{n} namespaces over {NAMESPACES_LIMIT} are not looked into");
            self.worker.tell(Told::Garbled(why));
            names.truncate(NAMESPACES_LIMIT);
        }
        let (mut past, mut list) = (Vec::new(), Vec::new());
        for name in &names {
            self.look_into(name, since_wall_ns, &mut past, &mut list)
                .await?;
        }
        self.worker.tell(Told::Past(past));
        self.worker.tell(Told::Listed(list));
        Ok(())
    }

    async fn look_into(
        &mut self,
        namespace: &str,
        since_wall_ns: u64,
        past: &mut Vec<Happening>,
        list: &mut Vec<Listed>,
    ) -> Result<(), Trouble> {
        let mut created = self.containers(namespace).await?;
        let answer: TasksAnswer = self
            .method(TASKS, namespace)
            .ask(Empty {}, self.worker.pace.answer)
            .await?;
        for task in answer.tasks {
            let identity = self.identity(namespace, &task.id).await;
            let ended_ns = task.exited_at.as_ref().and_then(Timestamp::ns);
            match (task.status, ended_ns) {
                (RUNNING | PAUSED | PAUSING, _) => list.push(Listed {
                    identity,
                    state: State::Runs,
                    created_ns: created.remove(&task.id),
                    started_ns: None,
                }),
                (STOPPED, Some(wall_ns)) if wall_ns >= since_wall_ns => {
                    let what = exited(task.exit_status);
                    past.push(Happening {
                        identity,
                        what,
                        wall_ns,
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Gets to know the containers of a namespace, and gives when each was made.
    async fn containers(&mut self, namespace: &str) -> Result<HashMap<String, u64>, Trouble> {
        let limit = self.worker.pace.answer;
        within(limit, self.all_containers(namespace, limit)).await
    }

    async fn all_containers(
        &mut self,
        namespace: &str,
        limit: Duration,
    ) -> Result<HashMap<String, u64>, Trouble> {
        let method = self.method(CONTAINERS, namespace);
        let mut listing: Call<ContainerAnswer> = method.call(Empty {}, limit).await?;
        let mut created = HashMap::new();
        while let Some(answer) = listing.next().await? {
            let Some(container) = answer.container else {
                continue;
            };
            let at = container.created_at.as_ref().and_then(Timestamp::ns);
            if let Some(at) = at.filter(|_| created.len() < KNOWN_LIMIT) {
                created.insert(container.id.clone(), at);
            }
            self.know(namespace, &container);
        }
        Ok(created)
    }

    fn know(&mut self, namespace: &str, container: &Container) -> Identity {
        let identity = identity_of(namespace, container);
        if self.known.len() < KNOWN_LIMIT {
            let key = (namespace.to_owned(), container.id.clone());
            self.known.insert(key, identity.clone());
        }
        identity
    }

    /// Who that is. One that is gone already keeps its id, which is all that is left.
    async fn identity(&mut self, namespace: &str, id: &str) -> Identity {
        let key = (namespace.to_owned(), id.to_owned());
        if let Some(identity) = self.known.get(&key) {
            return identity.clone();
        }
        let answer = self.ask_for(namespace, id).await;
        let container = answer.ok().and_then(|answer| answer.container);
        let container = container.unwrap_or_else(|| Container {
            id: id.to_owned(),
            ..Container::default()
        });
        self.know(namespace, &container)
    }

    async fn ask_for(&self, namespace: &str, id: &str) -> Result<ContainerAnswer, Trouble> {
        let question = ById { id: id.to_owned() };
        let method = self.method(CONTAINER, namespace);
        let answer = method.ask(question, self.worker.pace.answer);
        self.worker.asking(answer).await
    }

    async fn take(&mut self, envelope: &Envelope) {
        match event(envelope) {
            Ok(Some(Event::Created(create))) => self.meet(&envelope.namespace, create).await,
            Ok(Some(Event::Deleted(id))) => {
                self.known.remove(&(envelope.namespace.clone(), id));
            }
            Ok(Some(Event::Happened { id, what, wall_ns })) => {
                let happening = Happening {
                    identity: self.identity(&envelope.namespace, &id).await,
                    what,
                    wall_ns,
                };
                self.worker.tell(Told::Live(Box::new(happening)));
            }
            Ok(None) => {}
            Err(why) => self.worker.tell(Told::Garbled(why.to_string())),
        }
    }

    /// Gets to know a new one before it starts: a short life may be over, and all of it
    /// deleted, when its start is heard of.
    async fn meet(&mut self, namespace: &str, create: ContainerCreate) {
        let answer = self.ask_for(namespace, &create.id).await;
        let container = answer.ok().and_then(|answer| answer.container);
        let container = container.unwrap_or(Container {
            id: create.id,
            image: create.image,
            ..Container::default()
        });
        self.know(namespace, &container);
    }
}

/// An event that means something to us.
#[derive(Debug)]
enum Event {
    Created(ContainerCreate),
    Deleted(String),
    Happened {
        id: String,
        what: What,
        wall_ns: u64,
    },
}

/// What an event means, if it means anything to us.
fn event(envelope: &Envelope) -> Result<Option<Event>, prost::DecodeError> {
    let value = envelope.event.as_ref().map_or(&[][..], |any| &any.value);
    // A filter is a favour of the daemon, not a promise.
    if envelope.namespace == OF_DOCKER {
        return Ok(None);
    }
    let told_ns = envelope.timestamp.as_ref().and_then(Timestamp::ns);
    let (id, what, wall_ns) = match envelope.topic.as_str() {
        "/containers/create" => {
            let create = ContainerCreate::decode(value)?;
            return Ok(Some(Event::Created(create)));
        }
        "/containers/delete" => return Ok(Some(Event::Deleted(ById::decode(value)?.id))),
        "/tasks/start" => (OfContainer::decode(value)?.id, What::Started, told_ns),
        "/tasks/oom" => (OfContainer::decode(value)?.id, What::OutOfMemory, told_ns),
        "/tasks/exit" => {
            let exit = TaskExit::decode(value)?;
            // The end of a process that was run inside, by a probe for example.
            if exit.id != exit.container_id {
                return Ok(None);
            }
            let at = exit.exited_at.as_ref().and_then(Timestamp::ns);
            (exit.container_id, exited(exit.exit_status), at.or(told_ns))
        }
        _ => return Ok(None),
    };
    Ok(wall_ns.map(|wall_ns| Event::Happened { id, what, wall_ns }))
}

/// A process of containerd ends with the number a shell would show, and 255 also where
/// containerd itself does not know.
fn exited(status: u32) -> What {
    What::Exited {
        code: Some(status.into()),
        lived_s: None,
    }
}

fn identity_of(namespace: &str, container: &Container) -> Identity {
    let label = |key: &str| container.labels.get(key).map(|value| plain(value));
    let identity = Identity::of(&container.id, &container.image, &container.labels);
    let name = label("io.kubernetes.container.name").or_else(|| label("nerdctl/name"));
    // A user of `ctr` chooses an id that is a name; Kubernetes does not.
    let own = (identity.pod.is_none()).then(|| identity.id.clone());
    Identity {
        name: name.or(own),
        namespace: Some(plain(namespace)),
        ..identity
    }
}

pub(crate) mod fuzzing {
    //! For the fuzz targets.

    use super::*;

    /// Who a container is by an answer for one, or by one of a listing.
    pub fn containerd_container(message: &[u8]) -> Option<Identity> {
        let answer = ContainerAnswer::decode(message).ok()?;
        Some(identity_of("namespace", &answer.container?))
    }

    /// What an event says, of a container of which nothing else is known.
    pub fn containerd_event(message: &[u8]) -> Option<Happening> {
        let envelope = Envelope::decode(message).ok()?;
        let Event::Happened { id, what, wall_ns } = event(&envelope).ok()?? else {
            return None;
        };
        let container = Container {
            id,
            ..Container::default()
        };
        Some(Happening {
            identity: identity_of(&envelope.namespace, &container),
            what,
            wall_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_name(labels: &[(&str, &str)], expected: Option<&str>) {
        let labels = labels.iter();
        let labels = labels.map(|&(key, value)| (key.to_owned(), value.to_owned()));
        let container = Container {
            id: "ab".into(),
            labels: labels.collect(),
            ..Container::default()
        };
        let identity = identity_of("n", &container);
        assert_eq!(identity.name.as_deref(), expected);
        assert_eq!(identity.namespace.as_deref(), Some("n"));
    }

    #[test]
    fn names_come_from_their_givers() {
        check_name(&[], Some("ab"));
        check_name(&[("nerdctl/name", "web")], Some("web"));
        let pod = ("io.kubernetes.pod.name", "p");
        check_name(&[pod], None);
        check_name(&[pod, ("io.kubernetes.container.name", "c")], Some("c"));
        check_name(&[("nerdctl/name", "a\n")], Some(r"a\012"));
    }

    #[test]
    fn times_that_are_none_are_not_told() {
        let check = |seconds, nanos, expected| {
            assert_eq!(Timestamp { seconds, nanos }.ns(), expected);
        };
        check(2, 5, Some(2_000_000_005));
        check(-62_135_596_800, 0, None);
        check(1, -1, None);
        check(i64::MAX, 0, None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Envelope::decode(&bytes[..]);
            let _ = ContainerAnswer::decode(&bytes[..]);
            let _ = TasksAnswer::decode(&bytes[..]);
            let _ = TaskExit::decode(&bytes[..]);
        }
    }
}
