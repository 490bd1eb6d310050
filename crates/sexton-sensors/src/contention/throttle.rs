//! Which cgroups are stopped because their CPU quota is used up.
//!
//! Source: `cpu.stat` of the cgroups that have a quota, which are chosen anew every minute.
//! Looks four levels deep, where the containers of pods are, and at a bounded number of
//! directories.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sexton_host::{Host, HostError};
use sexton_model::fact::pressure as fact;
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::Subject;

use crate::directories::{directories, subject};

/// How often quotas are looked at: a period is a tenth of a second, a tenth of a share of
/// fifty is told well enough.
const EVERY: Duration = Duration::from_secs(5);

/// How often the cgroups to watch are chosen anew.
const SURVEY_EVERY: Duration = Duration::from_secs(60);

/// Cgroups that are watched, of those that are looked at.
const MAX_WATCHED: usize = 64;

/// What `cpu.stat` says of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Periods {
    n: u64,
    n_throttled: u64,
}

/// Watches quotas.
pub(super) struct Throttle {
    mount: Option<PathBuf>,
    watched: Vec<(PathBuf, Subject, Periods)>,
    looked: Option<Moment>,
    surveyed: Option<Moment>,
}

impl Throttle {
    /// Of the hierarchy that has the CPU controller: v1's, or v2's.
    pub(super) fn new(host: &Host) -> Self {
        let v1 = |mount: &&sexton_host::mounts::Mount| {
            mount.fs_type == "cgroup" && mount.has_option("cpu")
        };
        let found = host.mounts().iter().find(v1);
        let found = found.or_else(|| host.mounts().of_type("cgroup2"));
        Self {
            mount: found.map(|mount| mount.point.clone()),
            watched: Vec::new(),
            looked: None,
            surveyed: None,
        }
    }

    /// Where that hierarchy is.
    pub(super) fn mount(&self) -> Option<&Path> {
        self.mount.as_deref()
    }

    /// Looks, if it is time to.
    pub(super) fn poll(&mut self, host: &Host, out: &mut Sink) {
        let is_due =
            |last: Option<Moment>, every| last.is_none_or(|at| out.now().since(at) >= every);
        if !is_due(self.looked, EVERY) {
            return;
        }
        let must_survey = is_due(self.surveyed, SURVEY_EVERY);
        self.looked = Some(out.now());
        self.tell(host, out);
        if must_survey {
            self.survey(host, out);
        }
    }

    fn tell(&mut self, host: &Host, out: &mut Sink) {
        self.watched.retain_mut(|(path, subject, before)| {
            let Ok(now) = periods(host, path) else {
                // It ended, which is no gap: there is nothing left to see.
                return false;
            };
            let n = now.n.saturating_sub(before.n);
            let n_throttled = now.n_throttled.saturating_sub(before.n_throttled);
            *before = now;
            if n > 0 {
                if let Some(cores) = quota(host, path) {
                    out.sample(subject, &fact::CPU_QUOTA_CORES, cores);
                }
                let ratio = (n_throttled as f64 / n as f64).min(1.0);
                out.sample(subject, &fact::CPU_THROTTLED_RATIO, ratio);
            }
            true
        });
    }

    fn survey(&mut self, host: &Host, out: &mut Sink) {
        let Some(mount) = self.mount.clone() else {
            return;
        };
        self.surveyed = Some(out.now());
        let Ok(directories) = directories(host, &mount) else {
            return;
        };
        let n_directories = directories.len();
        let mut n_unread = n_directories;
        let mut found = Vec::new();
        for directory in directories {
            if let Ok(periods) = periods(host, &directory) {
                n_unread -= 1;
                if periods.n > 0 {
                    found.push((directory, periods));
                }
            }
        }
        if n_unread > n_directories / 2 {
            // The hierarchy has no controller of CPU time: nothing is known.
            return;
        }
        let node = Subject::node();
        out.sample(&node, &fact::CPU_QUOTA_CGROUPS, found.len() as f64);
        found.sort_by(|a, b| {
            b.1.n_throttled
                .cmp(&a.1.n_throttled)
                .then_with(|| a.0.cmp(&b.0))
        });
        found.truncate(MAX_WATCHED);
        let known = std::mem::take(&mut self.watched);
        for (directory, periods) in found {
            let before = known.iter().find(|(path, ..)| *path == directory);
            let before = before.map_or(periods, |(_, _, before)| *before);
            let subject = subject(&mount, &directory);
            self.watched.push((directory, subject, before));
        }
    }
}

fn periods(host: &Host, directory: &Path) -> Result<Periods, HostError> {
    Ok(parse(&host.read_text(directory.join("cpu.stat"))?))
}

/// The quota in cores: `cpu.max` of v2, two files of v1. `None` when there is none any more.
fn quota(host: &Host, directory: &Path) -> Option<f64> {
    let read = |name: &str| host.read_text(directory.join(name)).ok();
    if let Some(both) = read("cpu.max") {
        return parse_quota(&both);
    }
    let (quota, period) = (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?);
    parse_quota(&format!("{} {}", quota.trim(), period.trim()))
}

/// `20000 100000`; `max` or -1 for none.
fn parse_quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.trim().parse().ok()?);
    (period > 0).then(|| quota as f64 / period as f64)
}

/// A file without periods is one of a cgroup without a quota.
fn parse(stat: &str) -> Periods {
    let value = |key: &str| {
        let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
        let found = lines.find(|(name, _)| *name == key);
        found
            .and_then(|(_, value)| value.trim().parse().ok())
            .unwrap_or(0)
    };
    Periods {
        n: value("nr_periods"),
        n_throttled: value("nr_throttled"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stat: &str, n: u64, n_throttled: u64) {
        assert_eq!(parse(stat), Periods { n, n_throttled }, "{stat:?}");
    }

    #[test]
    fn both_forms_are_read() {
        check(
            "nr_periods 20\nnr_throttled 7\nthrottled_time 12345\n",
            20,
            7,
        );
        check(
            "usage_usec 5\nuser_usec 2\nnr_periods 9\nnr_throttled 1\nthrottled_usec 4\n",
            9,
            1,
        );
        check("usage_usec 5\n", 0, 0);
        check("nr_periods x\nnr_throttled\n\u{0}", 0, 0);
    }

    #[test]
    fn quotas_are_told_in_cores() {
        assert_eq!(parse_quota("20000 100000\n"), Some(0.2));
        assert_eq!(parse_quota("150000 100000"), Some(1.5));
        assert_eq!(parse_quota("max 100000\n"), None);
        assert_eq!(parse_quota("-1 100000"), None);
        assert_eq!(parse_quota("1 0"), None);
        assert_eq!(parse_quota(""), None);
    }
}
