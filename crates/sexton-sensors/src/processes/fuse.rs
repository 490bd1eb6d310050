//! Filesystems in user space (FUSE) that do not answer. The kernel has their callers sleep in
//! state S, so that only where they wait shows that they hang.
//!
//! Source: the number of requests that each connection has waiting, below
//! `/sys/fs/fuse/connections`. Only where there were some in two polls are callers looked for: a
//! server that answers has none most of the time.

use sexton_host::Host;

/// The kernel function that callers wait in.
pub(super) const WAIT: &str = "request_wait_answer";

/// Connections that are looked at: each mount has one.
const MAX_CONNECTIONS: usize = 256;

/// The sign that callers may hang.
#[derive(Debug, Default)]
pub(super) struct Fuse {
    waited: bool,
}

impl Fuse {
    /// Whether requests wait now and did at the last poll.
    pub(super) fn asks(&mut self, host: &Host) -> bool {
        let some_wait = some_wait(host);
        std::mem::replace(&mut self.waited, some_wait) && some_wait
    }
}

fn some_wait(host: &Host) -> bool {
    let Ok(top) = host.sys("fs/fuse/connections") else {
        return false;
    };
    let connections = host.list(&top).unwrap_or_default();
    let mut connections = connections.into_iter().take(MAX_CONNECTIONS);
    connections.any(|connection| {
        let text = host.read_text(top.join(connection.name).join("waiting"));
        let n = text.ok().and_then(|text| text.trim().parse::<u64>().ok());
        n.is_some_and(|n| n > 0)
    })
}
