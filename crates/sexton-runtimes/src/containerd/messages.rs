//! The messages of containerd, with just the fields that are read. Source: api/ of
//! containerd 1.6.

use std::collections::HashMap;

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionAnswer {
    #[prost(string, tag = "1")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Filters {
    #[prost(string, repeated, tag = "1")]
    pub(super) filters: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamespacesAnswer {
    #[prost(message, repeated, tag = "1")]
    pub(super) namespaces: Vec<Namespace>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Namespace {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ById {
    #[prost(string, tag = "1")]
    pub(super) id: String,
}

/// The answer for one, and each of a listing.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerAnswer {
    #[prost(message, optional, tag = "1")]
    pub(super) container: Option<Container>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Container {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(map = "string, string", tag = "2")]
    pub(super) labels: HashMap<String, String>,
    #[prost(string, tag = "3")]
    pub(super) image: String,
    #[prost(message, optional, tag = "8")]
    pub(super) created_at: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TasksAnswer {
    #[prost(message, repeated, tag = "1")]
    pub(super) tasks: Vec<Task>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Task {
    // Field 1, the container's id, is left empty by servers; the task has the same.
    #[prost(string, tag = "2")]
    pub(super) id: String,
    #[prost(int32, tag = "4")]
    pub(super) status: i32,
    #[prost(uint32, tag = "9")]
    pub(super) exit_status: u32,
    #[prost(message, optional, tag = "10")]
    pub(super) exited_at: Option<Timestamp>,
}

pub(super) const RUNNING: i32 = 2;
pub(super) const STOPPED: i32 = 3;
pub(super) const PAUSED: i32 = 4;
pub(super) const PAUSING: i32 = 5;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Envelope {
    #[prost(message, optional, tag = "1")]
    pub(super) timestamp: Option<Timestamp>,
    #[prost(string, tag = "2")]
    pub(super) namespace: String,
    #[prost(string, tag = "3")]
    pub(super) topic: String,
    #[prost(message, optional, tag = "4")]
    pub(super) event: Option<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Any {
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
}

/// `TaskStart` and `TaskOOM`, of which only the container's id is read.
pub(super) type OfContainer = ById;

#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerCreate {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(string, tag = "2")]
    pub(super) image: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskExit {
    #[prost(string, tag = "1")]
    pub(super) container_id: String,
    #[prost(string, tag = "2")]
    pub(super) id: String,
    #[prost(uint32, tag = "4")]
    pub(super) exit_status: u32,
    #[prost(message, optional, tag = "5")]
    pub(super) exited_at: Option<Timestamp>,
}

impl Timestamp {
    /// None before 1970, and for what is no time at all.
    pub(super) fn ns(&self) -> Option<u64> {
        let seconds = u64::try_from(self.seconds).ok()?;
        let nanos = u64::try_from(self.nanos).ok()?;
        seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
    }
}
