//! Tells how full local filesystems are: space, inodes, and whether they are read-only.
//!
//! Source: `/proc/self/mountinfo` and statfs(2), every 30 s, once for each filesystem however
//! often it is mounted. Where sexton has mounts of its own, in a unit with a sandbox or in a
//! container, those of the first process (`/proc/1`), if it may see them. tmpfs counts: a full
//! /dev/shm or /run breaks programs as a full disk does.
//! Blind to: network and pseudo filesystems, mounts of other mount namespaces, more than 64
//! filesystems, quotas.
//! Overhead: `docs/overhead.md#filesystems`.

mod table;
mod worker;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use sexton_host::space::Space;
use sexton_host::{Host, HostError};
use sexton_model::fact::filesystem::{self as fact, FilesystemSeen};
use sexton_model::gap::{Gap, Why};
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;

use crate::{Sensor, SensorSpec};
use table::{Local, locals};
use worker::{Asked, Workers};

const NAME: &str = "filesystems";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "space and inodes of local filesystems, and which are read-only",
    emits: &[
        &fact::FS_SEEN.fact,
        &fact::FS_USED_RATIO,
        &fact::FS_AVAILABLE_BYTES,
        &fact::FS_INODES_USED_RATIO,
        &fact::FS_INODES_AVAILABLE,
        &fact::FS_READ_ONLY,
    ],
    every: Duration::from_secs(30),
    deadline: Duration::from_secs(6),
    examine,
    open,
};

/// Filesystems that are asked; containers may mount thousands.
const MAX_FILESYSTEMS: usize = 64;

fn examine(host: &Host) -> Vec<Sight> {
    const WHAT: &str = "space of local filesystems";
    vec![match (host.is_live(), locals(host)) {
        (false, _) => Sight::blind(WHAT, NOT_LIVE),
        (true, Ok(found)) => Sight::sees(WHAT, format!("{} mounted", found.len())),
        (true, Err(error)) => Sight::blind(WHAT, error.chain()),
    }]
}

const NOT_LIVE: &str = "only a running system can be asked for the space of its filesystems";

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    if !host.is_live() {
        return Err(Gap::new(NAME, Why::Unsupported, NOT_LIVE));
    }
    locals(host).map_err(|error| gap_of(&error))?;
    Ok(Box::new(Filesystems {
        workers: Workers::new(Space::of),
        seen: BTreeMap::new(),
    }))
}

fn gap_of(error: &HostError) -> Gap {
    Gap::new(NAME, error.why(), error.chain())
}

struct Filesystems {
    workers: Workers,
    /// Whether each was read-only when it was last told.
    seen: BTreeMap<PathBuf, bool>,
}

impl Sensor for Filesystems {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        let mut found = match locals(host) {
            Ok(found) => found,
            Err(error) => return out.gap(&Subject::node(), gap_of(&error)),
        };
        let n_left_out = found.len().saturating_sub(MAX_FILESYSTEMS);
        if n_left_out > 0 {
            let text = format!("only {MAX_FILESYSTEMS} filesystems are watched");
            let gap = Gap::new(NAME, Why::Lost(n_left_out as u64), text);
            out.gap(&Subject::node(), gap);
        }
        found.truncate(MAX_FILESYSTEMS);
        self.seen
            .retain(|point, _| found.iter().any(|local| local.point == *point));
        for local in &found {
            self.ask(local, out);
        }
    }
}

impl Filesystems {
    fn ask(&mut self, local: &Local, out: &mut Sink) {
        let name = escape(local.point.as_os_str().as_encoded_bytes());
        let subject = Subject::new(SubjectKind::Mount, name.as_str());
        let space = match self.workers.ask(&local.reached_at) {
            Asked::Told(Ok(space)) => Some(space),
            // It was unmounted just now, or belongs to a user who lets no one look.
            Asked::Told(Err(error)) => {
                let text = format!("cannot read the space of {name}: {error}");
                out.gap(&subject, Gap::new(NAME, Why::Vanished, text));
                None
            }
            Asked::Hangs => {
                let seconds = worker::PATIENCE.as_secs();
                let text = format!("statfs of {name} timed out after {seconds} s");
                out.gap(&subject, Gap::new(NAME, Why::Overrun, text));
                None
            }
        };
        self.tell(local, &subject, space, out);
    }

    fn tell(&mut self, local: &Local, subject: &Subject, space: Option<Space>, out: &mut Sink) {
        let before = self.seen.insert(local.point.clone(), local.is_read_only);
        if before != Some(local.is_read_only) {
            let seen = FilesystemSeen {
                device: local.device.clone(),
                fs_type: local.fs_type.clone(),
                size_bytes: space.map(|space| space.size_bytes),
                read_only: local.is_read_only,
            };
            out.event(out.now(), subject, &fact::FS_SEEN, seen);
        }
        let read_only = f64::from(u8::from(local.is_read_only));
        out.sample(subject, &fact::FS_READ_ONLY, read_only);
        let Some(space) = space else { return };
        if let Some(used) = space.used_ratio() {
            out.sample(subject, &fact::FS_USED_RATIO, used);
            let left = space.available_bytes as f64;
            out.sample(subject, &fact::FS_AVAILABLE_BYTES, left);
        }
        if let Some(used) = space.inodes_used_ratio() {
            out.sample(subject, &fact::FS_INODES_USED_RATIO, used);
            let left = space.inodes_available as f64;
            out.sample(subject, &fact::FS_INODES_AVAILABLE, left);
        }
    }
}
