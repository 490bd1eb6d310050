//! What a runtime says of its containers, whichever runtime it is.

use std::collections::HashMap;

use sexton_model::text;

/// Names are cut to this many bytes. Docker allows 4096 bytes for a label alone.
const NAME_LIMIT_BYTES: usize = 256;

/// What a kubelet counts its starts by. To Docker, annotations are labels too, by another name.
const ATTEMPT: [&str; 2] = [
    "annotation.io.kubernetes.container.restartCount",
    "io.kubernetes.container.restartCount",
];

/// What names a container. All of it is escaped and cut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// As the runtime gives it.
    pub id: String,
    /// The name its user or its pod has for it.
    pub name: Option<String>,
    /// Empty where the runtime no longer knows it.
    pub image: String,
    /// What containerd keeps apart by: there, ids are unique only within one.
    pub namespace: Option<String>,
    /// The pod it is part of.
    pub pod: Option<String>,
    /// The namespace of that pod.
    pub pod_namespace: Option<String>,
    /// The uid of that pod.
    pub pod_uid: Option<String>,
    /// How often a kubelet has made this container of its pod anew, or its runtime has started
    /// it again; 0 is the first time.
    pub attempt: Option<u32>,
    /// The project of Docker Compose that it belongs to.
    pub compose_project: Option<String>,
}

impl Identity {
    /// What is unique among the containers of one runtime.
    pub fn key(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.id),
            None => self.id.clone(),
        }
    }

    /// Who a container is by its id, image and labels.
    pub(crate) fn of(id: &str, image: &str, labels: &HashMap<String, String>) -> Self {
        let label = |key: &str| {
            let value = labels.get(key).filter(|value| !value.is_empty());
            value.map(|value| plain(value))
        };
        Self {
            id: plain(id),
            name: None,
            image: plain(image),
            namespace: None,
            pod: label("io.kubernetes.pod.name"),
            pod_namespace: label("io.kubernetes.pod.namespace"),
            pod_uid: label("io.kubernetes.pod.uid"),
            attempt: ATTEMPT.iter().find_map(|key| label(key)?.parse().ok()),
            compose_project: label("com.docker.compose.project"),
        }
    }
}

/// A container of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Which container.
    pub identity: Identity,
    /// What it does.
    pub state: State,
    /// When it was made, by the wall clock.
    pub created_ns: Option<u64>,
    /// When it was started, by the wall clock.
    pub started_ns: Option<u64>,
}

/// What a container does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It runs. A paused one does too: it holds all it held.
    Runs,
    /// It has ended, and its runtime waits to start it again.
    Restarting,
    /// Anything else.
    Other,
}

/// Something that happened to a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// Which container.
    pub identity: Identity,
    /// What happened to it.
    pub what: What,
    /// When, by the wall clock.
    pub wall_ns: u64,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// It started.
    Started,
    /// It exited.
    Exited {
        /// The exit code, as a shell would show it.
        code: Option<i64>,
        /// What newer daemons know of the lifetime, in seconds.
        lived_s: Option<u64>,
    },
    /// The kernel killed one of its processes for want of memory.
    OutOfMemory,
    /// A client had the runtime send SIGKILL.
    Killed,
}

/// Escapes and cuts a name: the maker of a container chose it.
pub(crate) fn plain(name: &str) -> String {
    let end = name.floor_char_boundary(NAME_LIMIT_BYTES);
    text::escape(&name.as_bytes()[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_name_is_cut(name in any::<String>()) {
            prop_assert!(plain(&name.repeat(40)).len() <= 4 * NAME_LIMIT_BYTES);
        }
    }
}
