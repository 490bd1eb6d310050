//! The evidence of a saturated CPU: how busy it was, who had the time, who waited.

use std::time::Duration;

use sexton_model::finding::Evidence;
use sexton_model::subject::Subject;

use super::{MAX_NAMED, SLOWDOWN, Seen, WAITING};
use crate::case::Case;
use crate::evidence::owners;
use crate::words::figures::{count, percent, time};

impl Seen<'_> {
    pub(super) fn evidence(&self, case: &Case<'_>) -> Vec<Evidence> {
        let length: Duration = self.full.iter().map(|(from, to)| to.since(*from)).sum();
        let used = self.used.mean(self.full);
        let text = format!(
            "work of ordinary priority had {} of {} for {}",
            percent(used),
            self.place(),
            time(length)
        );
        let mut all = vec![Evidence::speaks_for("cores: /proc/stat", text).value(used)];
        all.extend(self.some.iter().map(|(_, others)| {
            let text = format!(
                "it had {} of the other cores: what waits may not run there",
                percent(*others)
            );
            Evidence::speaks_for("cores: /proc/stat", text).value(*others)
        }));
        all.extend(self.pressure(case).map(|some| {
            let text = format!("some task waited for a core {} of the time", percent(some));
            Evidence::speaks_for("pressure: cpu some", text).value(some)
        }));
        all.extend(self.crowd.map(|crowd| {
            let text = format!("{crowd:.1} runnable tasks for each core");
            Evidence::speaks_for("cores: procs_running", text).value(crowd)
        }));
        all.extend(self.who_has());
        if self.consumers.is_empty() {
            all.push(Evidence::missing("stacks", case.why_silent("stacks")));
        }
        all.extend(self.who_waits(case));
        all
    }

    fn who_has(&self) -> impl Iterator<Item = Evidence> {
        let all = self.used.n_cores.max(1) as f64;
        self.consumers.iter().take(MAX_NAMED).map(move |one| {
            let names: Vec<&str> = one
                .comms
                .iter()
                .take(MAX_NAMED)
                .map(String::as_str)
                .collect();
            let of = match self.some {
                Some(_) => "as much time as these cores have",
                None => "all cores",
            };
            let text = format!(
                "{} had {} of {of} ({})",
                owners::words(&one.owner),
                percent(one.cores / all),
                names.join(", ")
            );
            Evidence::speaks_for("stacks", text).value(one.cores)
        })
    }

    fn who_waits(&self, case: &Case<'_>) -> Vec<Evidence> {
        let mut all = Vec::new();
        if self.knows_waits() {
            let others = self.waiting_of_others();
            let text = format!("{others:.2} tasks of others waited at any time, on average");
            let evidence = match others >= case.limit(&WAITING) {
                true => Evidence::speaks_for("/proc/PID/schedstat", text),
                false => Evidence::against("/proc/PID/schedstat", text),
            };
            all.push(evidence.value(others));
            all.extend(self.main().map(|_| self.wait_of_its_own(case)));
            if self.main().is_none() {
                let slowdown = self.slowdown();
                let text = format!("each was {slowdown:.1} times slower than it would be alone");
                all.push(match slowdown >= case.limit(&SLOWDOWN) {
                    true => Evidence::speaks_for("/proc/PID/schedstat", text).value(slowdown),
                    false => Evidence::against("/proc/PID/schedstat", text).value(slowdown),
                });
            }
        } else {
            let text = "who waited how long was not recorded";
            all.push(Evidence::missing("/proc/PID/schedstat", text));
        }
        all.extend(self.unread());
        let suffering = self
            .waiters
            .all
            .iter()
            .filter(|waiter| self.is_other(waiter));
        all.extend(suffering.take(MAX_NAMED).map(|waiter| {
            let text = format!(
                "{} ({}, pid {}) waited {:.1} s and ran {:.1} s of {:.0} s",
                waiter.comm,
                owners::words(&waiter.owner),
                waiter.process.name,
                waiter.waited,
                waiter.ran,
                self.waiters.seconds()
            );
            Evidence::speaks_for("/proc/PID/schedstat", text).value(waiter.waited)
        }));
        all.extend(self.waits_of_others().take(1).map(|wait| {
            let text = format!(
                "{} (pid {}) waited {} at once",
                wait.comm,
                wait.pid,
                time(wait.waited)
            );
            Evidence::speaks_for("runq", text).value(wait.waited.as_secs_f64())
        }));
        all
    }

    /// How long tasks of who has the time waited for each other.
    fn wait_of_its_own(&self, case: &Case<'_>) -> Evidence {
        let is_own = |owner: &Subject, comm: &str| !self.is_apart(Some(owner), comm);
        let own = self.waiters.mean(0.0, is_own);
        let endless = match self.n_endless() {
            0 => String::new(),
            n => format!("; {n} of them never sleep"),
        };
        let text = format!("{own:.2} tasks of its own waited{endless}");
        match self.is_overcommitted(case) {
            true => Evidence::speaks_for("/proc/PID/schedstat", text),
            false => Evidence::against("/proc/PID/schedstat", text),
        }
    }

    /// What looks at processes had no time for.
    fn unread(&self) -> Option<Evidence> {
        let n_unread = self.waiters.n_unread();
        let n = count(n_unread);
        let text = format!("what {n} more processes waited: a look has a time limit");
        (n_unread > 0).then(|| Evidence::missing("/proc/PID/schedstat", text))
    }
}
