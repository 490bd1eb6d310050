//! Cgroups that limit their tasks.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sexton_host::Host;
use sexton_host::mounts::Mount;
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};

use super::Usage;
use crate::directories::{self, directories};

/// How often the cgroups to watch are chosen anew.
const SURVEY_EVERY: Duration = Duration::from_secs(60);

/// In the first minute, which is as long as most diagnoses watch, they are chosen at every poll: a
/// unit that was started meanwhile is among them.
const AT_FIRST: Duration = Duration::from_secs(60);

/// Cgroups that are watched: those that use most of their limit.
const MAX_WATCHED: usize = 64;

/// Watches the limits of tasks.
pub(super) struct Cgroups {
    mount: Option<PathBuf>,
    watched: Vec<(PathBuf, Subject)>,
    surveyed: Option<Moment>,
    first: Option<Moment>,
}

impl Cgroups {
    /// Of the hierarchy that counts tasks: v1's, or v2's.
    pub(super) fn new(host: &Host) -> Self {
        let is_v1 = |mount: &&Mount| mount.fs_type == "cgroup" && mount.has_option("pids");
        let found = host.mounts().iter().find(is_v1);
        let found = found.or_else(|| host.mounts().of_type("cgroup2"));
        Self {
            mount: found.map(|mount| mount.point.clone()),
            watched: Vec::new(),
            surveyed: None,
            first: None,
        }
    }

    pub(super) fn poll(&mut self, host: &Host, out: &mut Sink) {
        let is_first = out.now().since(*self.first.get_or_insert(out.now())) < AT_FIRST;
        let is_due = |at: Moment| is_first || out.now().since(at) >= SURVEY_EVERY;
        if self.surveyed.is_none_or(is_due) {
            self.survey(host);
            self.surveyed = Some(out.now());
        }
        self.watched.retain(|(folder, subject)| {
            // One that ended, or has no limit any more, is no gap.
            let usage = usage(host, folder);
            if let Some(usage) = usage {
                usage.tell(subject, out);
            }
            usage.is_some()
        });
    }

    fn survey(&mut self, host: &Host) {
        let Some(mount) = &self.mount else {
            return;
        };
        let folders = directories(host, mount).unwrap_or_default();
        let limited = folders.into_iter().filter_map(|folder| {
            let usage = usage(host, &folder)?;
            Some((usage.ratio(), folder))
        });
        let mut limited: Vec<(f64, PathBuf)> = limited.collect();
        limited.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        limited.truncate(MAX_WATCHED);
        let named = limited.into_iter().map(|(_, folder)| {
            let subject = subject(mount, &folder);
            (folder, subject)
        });
        self.watched = named.collect();
    }
}

fn subject(mount: &Path, folder: &Path) -> Subject {
    let cgroup = directories::subject(mount, folder).name;
    Subject::new(SubjectKind::Limit, format!("pids.max {cgroup}"))
}

/// None where there is no limit.
fn usage(host: &Host, folder: &Path) -> Option<Usage> {
    let read = |name: &str| host.read_text(folder.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse().ok();
    Some(Usage {
        most: number("pids.max")?,
        used: number("pids.current")?,
        hits: read("pids.events").and_then(|events| refused(&events)),
    })
}

/// How often a fork was refused, by `pids.events`.
pub(super) fn refused(events: &str) -> Option<u64> {
    let mut lines = events.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = lines.find(|(name, _)| *name == "max")?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_that_were_refused() {
        assert_eq!(refused("max 12\n"), Some(12));
        assert_eq!(refused("other 1\nmax 0\n"), Some(0));
        assert_eq!(refused("max\n"), None);
        assert_eq!(refused(""), None);
    }
}
