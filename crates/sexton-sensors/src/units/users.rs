//! Users' own managers: found by their sockets, and watched as the node's is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sexton_host::{Host, HostError};
use sexton_model::gap::{Gap, Why};
use sexton_model::record::Sink;
use sexton_model::subject::Subject;

use super::NAME;
use super::bus::Address;
use super::line::{Line, Manager};

/// Each is a thread and a connection; a node for many people has no more that crash.
const MOST: usize = 64;

/// Users' managers that are watched.
#[derive(Debug)]
pub(super) struct Users {
    /// Where each user who is here has a folder.
    folder: PathBuf,
    within: Duration,
    lines: BTreeMap<u32, Line>,
    /// What was said once is not said again.
    told: BTreeSet<String>,
}

impl Users {
    pub(super) fn new(folder: &Path, within: Duration) -> Self {
        Self {
            folder: folder.to_owned(),
            within,
            lines: BTreeMap::new(),
            told: BTreeSet::new(),
        }
    }

    /// Passes on what managers said, and looks who came.
    pub(super) fn poll(&mut self, host: &Host, sensor: &Subject, out: &mut Sink) {
        // Asked before its last words are taken: none comes after them.
        let over: Vec<u32> = self
            .lines
            .iter()
            .filter_map(|(user, line)| line.is_over().then_some(*user))
            .collect();
        self.lines
            .values()
            .for_each(|line| line.pass_on(sensor, out));
        self.lines.retain(|user, _| !over.contains(user));
        let (mut n_more, mut gaps) = (0, Vec::new());
        for (user, socket) in self.sockets(host, &mut gaps) {
            if self.lines.contains_key(&user) {
                continue;
            }
            if self.lines.len() >= MOST {
                n_more += 1;
                continue;
            }
            let address = Address {
                path: socket,
                has_bus: false,
                user: Some(user),
            };
            let manager = Manager {
                addresses: vec![address],
                within: self.within,
                user: Some(user),
            };
            self.lines.insert(user, Line::watch(manager));
        }
        if n_more > 0 {
            let text = format!("units of users: only {MOST} managers are watched");
            gaps.push(Gap::new(NAME, Why::Lost(n_more), text));
        }
        for gap in gaps {
            if self.told.insert(gap.text.clone()) {
                out.gap(sensor, gap);
            }
        }
    }

    /// The sockets of all managers that there are.
    fn sockets(&self, host: &Host, gaps: &mut Vec<Gap>) -> Vec<(u32, PathBuf)> {
        let mut sockets = Vec::new();
        for entry in host.list(&self.folder).unwrap_or_default() {
            let name = entry.name.to_string_lossy().into_owned();
            let Ok(user) = name.parse() else {
                continue;
            };
            let folder = self.folder.join(name).join("systemd");
            match host.list(&folder) {
                Ok(entries) if entries.iter().any(|entry| entry.name == "private") => {
                    sockets.push((user, folder.join("private")));
                }
                Err(error) if !error.is_absent() => gaps.push(unseen(user, &error)),
                Ok(_) | Err(_) => {}
            }
        }
        sockets
    }
}

fn unseen(user: u32, error: &HostError) -> Gap {
    let text = format!("units of user {user}: {}", error.chain());
    let gap = Gap::new(NAME, error.why(), text);
    match error.why() {
        Why::Denied => gap.with_remedy("run as root"),
        _ => gap,
    }
}
