//! Where no unit tells: the process that is behind births.

use std::collections::BTreeMap;

use sexton_model::subject::{Subject, SubjectKind};

use super::Sign;
use crate::evidence::creations::{Creation, Task};
use crate::evidence::known;

/// The first process of the node, and that of kernel threads: above everything, so that they
/// say nothing.
const ABOVE_ALL: [u32; 3] = [0, 1, 2];

/// Of the births so many must have come from a process.
const SHARE: f64 = 0.9;

/// The nearest process that all births of a pattern came from; else the pattern itself.
pub(super) fn behind(pattern: &str, creations: &[Creation<'_>]) -> (Subject, Sign) {
    match nearest_common(creations) {
        Some((task, _)) if known::is_between(task.comm) => {
            let name = format!("{}[{}]", task.comm, task.pid);
            let sign = Sign::daemon(&creations[0], &name);
            (Subject::new(SubjectKind::Task, name), sign)
        }
        Some((task, depth)) => {
            let subject = Subject::new(SubjectKind::Task, format!("{}[{}]", task.comm, task.pid));
            let text = match depth {
                0 => format!(
                    "by process: {} with number {} made them itself",
                    task.comm, task.pid
                ),
                _ => format!(
                    "by process: {} with number {} is the nearest process that all their makers came from",
                    task.comm, task.pid
                ),
            };
            (subject, Sign::process(text))
        }
        None => {
            let subject = Subject::new(SubjectKind::Cgroup, pattern);
            let makers = makers(creations);
            if creations.iter().all(is_by_daemon) {
                return (subject, Sign::daemon(&creations[0], &makers));
            }
            (
                subject,
                Sign::pattern(format!("they are alike, and were made by {makers}")),
            )
        }
    }
}

/// Whether somebody made it who only does what others ask.
pub(super) fn is_by_daemon(creation: &Creation<'_>) -> bool {
    let maker = creation.makers.first();
    maker.is_some_and(|maker| known::is_between(maker.comm))
}

/// Whether everything came from it, and from what is above it. In a PID namespace the first
/// process has any number, and its own parents are outside.
fn is_above_all(task: &Task<'_>) -> bool {
    ABOVE_ALL.contains(&task.pid) || task.comm == "systemd"
}

fn makers(creations: &[Creation<'_>]) -> String {
    let mut names: Vec<&str> = creations
        .iter()
        .filter_map(|creation| Some(creation.makers.first()?.comm))
        .collect();
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [] => "an unknown process".into(),
        names => names[..names.len().min(3)].join(", "),
    }
}

fn nearest_common<'a>(creations: &[Creation<'a>]) -> Option<(Task<'a>, usize)> {
    let total: u64 = creations.iter().map(|creation| creation.n).sum();
    // For each task: births that came from it, and how far above their makers it is.
    let mut seen: BTreeMap<&Task<'a>, (u64, usize)> = BTreeMap::new();
    for creation in creations {
        let own = creation
            .makers
            .iter()
            .take_while(|task| !is_above_all(task));
        for (depth, task) in own.enumerate() {
            let (n, deepest) = seen.entry(task).or_default();
            *n += creation.n;
            *deepest = (*deepest).max(depth);
        }
    }
    let common = seen
        .into_iter()
        .filter(|(_, (n, _))| *n as f64 >= SHARE * total as f64);
    let nearest = common.min_by_key(|(task, (_, depth))| (*depth, *task));
    nearest.map(|(task, (_, depth))| (task.clone(), depth))
}
