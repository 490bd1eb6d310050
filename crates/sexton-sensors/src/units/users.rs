//! Users' own managers: found by their sockets, and watched as the node's is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sexton_host::{Host, HostError};
use sexton_model::gap::{Gap, Why};
use sexton_model::record::Sink;
use sexton_model::subject::Subject;
use sexton_systemd::bus::{Manager, users};

use super::NAME;
use super::line::Line;

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
        for socket in users::sockets(host, &self.folder) {
            let user = socket.user;
            let path = match socket.path {
                Ok(path) => path,
                Err(error) => {
                    gaps.push(unseen(user, &error));
                    continue;
                }
            };
            if self.lines.contains_key(&user) {
                continue;
            }
            if self.lines.len() >= MOST {
                n_more += 1;
                continue;
            }
            let manager = Manager::of_user(user, path, self.within);
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
}

fn unseen(user: u32, error: &HostError) -> Gap {
    let text = format!("units of user {user}: {}", error.chain());
    let gap = Gap::new(NAME, error.why(), text);
    match error.why() {
        Why::Denied => gap.with_remedy("run as root"),
        _ => gap,
    }
}
