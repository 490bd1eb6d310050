//! Which of the agent's threads used how much.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_host::own::ThreadUse;

/// Threads that answer clients, or send. What they use is caused by those who ask and by
/// receivers that were away: to stop a sensor would not make it less. A thread without a name of
/// its own has that of the one which started it.
const OUTSIDE: [&str; 12] = [
    "answers",
    "cells",
    "counts",
    "export",
    "fleet",
    "kubernetes",
    "listens",
    "pack",
    "reads",
    "remedy",
    "status",
    "tokio-rt-worker",
];

/// What each thread has used.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// By their ids, up to the last look.
    used: BTreeMap<u32, Duration>,
    /// By their names, of one core, between the last two looks.
    ratios: BTreeMap<String, f64>,
}

impl Threads {
    /// Takes what each thread has used so far. Gives the part of one core that those used since
    /// the last look which count; none where nothing is known of threads.
    ///
    /// One that began and ended in between is not counted: those of the page do so, of ours only
    /// what packs a segment each ten minutes.
    pub(super) fn take(&mut self, threads: &[ThreadUse], elapsed: Duration) -> Option<f64> {
        let elapsed = elapsed.as_secs_f64().max(0.001);
        self.ratios.clear();
        for thread in threads {
            let before = self.used.get(&thread.id).copied().unwrap_or_default();
            // An id may be that of another thread by now.
            let used = thread.cpu_time.checked_sub(before);
            let used = used.unwrap_or(thread.cpu_time).as_secs_f64();
            *self.ratios.entry(thread.name.clone()).or_default() += used / elapsed;
        }
        let used = threads.iter().map(|thread| (thread.id, thread.cpu_time));
        self.used = used.collect();
        let counted = self.ratios.iter();
        let counted = counted.filter(|(name, _)| !OUTSIDE.contains(&name.as_str()));
        (!threads.is_empty()).then(|| counted.map(|(_, ratio)| ratio).sum())
    }

    /// The part of one core that threads of this name used between the last two looks.
    pub(super) fn ratio_of(&self, name: &str) -> f64 {
        self.ratios.get(name).copied().unwrap_or_default()
    }
}
