//! Whose listen queues are full.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_host::Host;
use sexton_host::listening::{self, Listening};
use sexton_model::fact::network::{LISTEN_QUEUE, ListenQueue};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};

use super::NAME;
use crate::effort::Effort;
use crate::tasks::{self, Belongs};

/// Sockets that are told at once: those with the fullest queues.
const MAX_TOLD: usize = 4;

/// Open files of one process that are looked at.
const MAX_FILES: usize = 4_096;

/// Who has which socket, as far as it was looked for.
#[derive(Default)]
pub(super) struct Owners {
    known: BTreeMap<u32, u32>,
    /// When it was last looked for, and how long to rest after that.
    searched: Option<(Moment, Duration)>,
}

impl Owners {
    /// Tells the sockets whose queues are full, or half full: the queue may have been emptied
    /// since connections were dropped.
    pub(super) fn tell(&mut self, host: &Host, out: &mut Sink) {
        // A recording of files has no sockets to ask.
        if !host.is_live() {
            return;
        }
        let sockets = match listening::all() {
            Ok(sockets) => sockets,
            Err(error) => {
                let text = format!("listening sockets cannot be listed: {error}");
                return out.gap(&Subject::node(), Gap::new(NAME, Why::Unsupported, text));
            }
        };
        let full = fullest(sockets);
        self.search(host, out, &full);
        for socket in full {
            let pid = self.known.get(&socket.inode).copied();
            tell(host, out, &socket, pid);
        }
    }

    /// Looks through the open files of processes for those sockets whose process is not known.
    fn search(&mut self, host: &Host, out: &Sink, sockets: &[Listening]) {
        let is_missing = |known: &BTreeMap<u32, u32>| {
            sockets
                .iter()
                .any(|socket| !known.contains_key(&socket.inode))
        };
        let now = out.now();
        let is_early = |(at, rest): (Moment, Duration)| now.since(at) < rest;
        if !is_missing(&self.known) || self.searched.is_some_and(is_early) {
            return;
        }
        let effort = Effort::begin();
        for pid in tasks::pids(host).unwrap_or_default() {
            if effort.is_over() || !is_missing(&self.known) {
                break;
            }
            for inode in sockets_of(host, pid) {
                // Children inherit a socket; the first that has it is the oldest.
                if sockets.iter().any(|socket| socket.inode == inode) {
                    self.known.entry(inode).or_insert(pid);
                }
            }
        }
        self.searched = Some((now, effort.rest()));
    }
}

/// Those whose queues are at least half full, the fullest first.
fn fullest(mut sockets: Vec<Listening>) -> Vec<Listening> {
    let part = |socket: &Listening| f64::from(socket.queued) / (f64::from(socket.backlog) + 1.0);
    sockets.retain(|socket| part(socket) >= 0.5);
    sockets.sort_by(|a, b| part(b).total_cmp(&part(a)).then(a.inode.cmp(&b.inode)));
    sockets.truncate(MAX_TOLD);
    sockets
}

/// The inodes of a process's sockets; none of one that is gone or that we may not look into.
fn sockets_of(host: &Host, pid: u32) -> Vec<u32> {
    let Ok(folder) = host.proc(&format!("{pid}/fd")) else {
        return Vec::new();
    };
    let files = host.list(&folder).unwrap_or_default();
    let links = files
        .into_iter()
        .take(MAX_FILES)
        .filter_map(|file| host.read_link(folder.join(file.name)).ok());
    links
        .filter_map(|link| {
            let name = link.to_str()?.strip_prefix("socket:[")?;
            name.strip_suffix(']')?.parse().ok()
        })
        .collect()
}

fn tell(host: &Host, out: &mut Sink, socket: &Listening, pid: Option<u32>) {
    let home = pid.map(|pid| Belongs::of(host, pid)).unwrap_or_default();
    let says = ListenQueue {
        address: socket.address.to_string(),
        queued: socket.queued.into(),
        backlog: socket.backlog.into(),
        full: socket.is_full(),
        pid,
        comm: pid.and_then(|pid| tasks::comm(host, pid)),
        cgroup: home.cgroup,
        unit: home.unit,
        container: home.container,
    };
    let subject = match pid {
        Some(pid) => Subject::new(SubjectKind::Process, pid.to_string()),
        None => Subject::node(),
    };
    out.event(out.now(), &subject, &LISTEN_QUEUE, says);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_come_first_and_empty_ones_not_at_all() {
        let socket = |inode, queued, backlog| Listening {
            address: ([127, 0, 0, 1], 80).into(),
            queued,
            backlog,
            inode,
        };
        let sockets = vec![
            socket(1, 0, 128),
            socket(2, 129, 128),
            socket(3, 3, 5),
            socket(4, 1, 128),
        ];
        let told: Vec<u32> = fullest(sockets).iter().map(|socket| socket.inode).collect();
        assert_eq!(told, [2, 3]);
    }
}
