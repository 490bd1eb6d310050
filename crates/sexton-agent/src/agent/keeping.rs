//! Keeps what was seen, within the bounds of the ring, and measures what that takes.

use std::time::{Duration, Instant};

use sexton_host::{clock, own};
use sexton_model::fact::sexton::{SEXTON_CPU_RATIO, SEXTON_MEMORY_BYTES};
use sexton_model::moment::Moment;
use sexton_model::record::{Record, Sink};
use sexton_model::subject::Subject;
use sexton_store::StoreError;

use super::start::LOGS;
use super::{Agent, Level};
use crate::budget::Back;
use crate::limit::Use;
use crate::recorder;

/// How often what was recorded is made safe. What a kill may cost.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// How often the bounds of all boots together, and of incidents, are looked at.
const BOUND_EVERY: Duration = Duration::from_secs(60);

/// How often the limit of the agent's own cgroup is looked at.
const LOOK_AT_LIMIT_EVERY: Duration = Duration::from_secs(2);

/// What this boot may grow by until that.
const ROOM: u64 = 16 << 20;

impl Agent {
    /// Keeps records and samples. What could not be kept is counted by the writer and becomes
    /// a gap once there is room.
    pub(super) fn keep(&mut self, records: &[Record], now: Moment) {
        let kept = self.write(records, now);
        self.note_trouble(kept.err());
        self.bound_if_due();
    }

    fn write(&mut self, records: &[Record], now: Moment) -> Result<(), StoreError> {
        let stacks = self.pool.take_stacks();
        let appended = self.writer.append(records);
        for batch in &stacks {
            self.writer.append_stacks(&batch.samples, &batch.tables)?;
            self.progress.n_samples += batch.samples.len() as u64;
        }
        appended?;
        if self.synced.elapsed() >= SYNC_EVERY {
            self.synced = Instant::now();
            // Only what survives a kill is counted as kept.
            self.progress.n_records = self.writer.sync(now)?.records;
            self.writer.seal_if_due(now)?;
        }
        Ok(())
    }

    /// Logs when writing begins to fail, and when it works again.
    pub(super) fn note_trouble(&mut self, error: Option<StoreError>) {
        let trouble = error.map(|error| error.chain());
        match (&self.trouble, &trouble) {
            (None, Some(why)) => {
                let text = format!("cannot record: {why}; the agent goes on trying");
                self.say(Level::Error, &text);
            }
            (Some(_), None) => self.say(Level::Info, "recording works again"),
            _ => {}
        }
        self.trouble = trouble;
    }

    /// Makes room for this boot at the cost of earlier ones, and keeps incidents bounded.
    pub(super) fn bound_if_due(&mut self) {
        let is_due = self
            .bounded
            .is_none_or(|last| last.elapsed() >= BOUND_EVERY);
        if !is_due {
            return;
        }
        self.bounded = Some(Instant::now());
        if let Err(error) = self.bound() {
            let text = format!("cannot bound the ring: {}", error.chain());
            self.say(Level::Warning, &text);
        }
        let (most, bytes) = (
            self.settings.max_incidents,
            self.settings.max_incident_bytes,
        );
        if let Err(error) = self.incidents.bound(most, bytes) {
            let text = format!("cannot drop an old incident: {error}");
            self.say(Level::Warning, &text);
        }
        own::give_back_memory();
        own::unmap_unused_code();
    }

    fn bound(&mut self) -> Result<(), StoreError> {
        let (max_bytes, max_age) = (self.settings.max_bytes, self.settings.max_age);
        let ours = self.writer.bytes() + ROOM.min(max_bytes / 8);
        let left = max_bytes.saturating_sub(ours);
        self.ring.trim_beside(&self.boot, left, max_age)?;
        let beside = self.ring.bytes_beside(&self.boot)?;
        self.writer
            .set_bounds(max_bytes.saturating_sub(beside), max_age);
        let boots = self.ring.boots()?.len();
        let incidents = crate::Incidents::list(&self.ring.incidents());
        self.shared.change(|status| {
            status.ring_bytes_beside = beside;
            status.ring_max_bytes = max_bytes;
            status.boots = boots;
            status.incidents = incidents.len();
            status.incident_bytes = incidents.iter().map(|incident| incident.bytes).sum();
        });
        Ok(())
    }

    /// Every few seconds: sheds a sensor at once where the limit of the agent's own cgroup is near.
    pub(super) fn stay_alive(&mut self, now: Moment) -> Vec<Record> {
        if self.limit_looked.elapsed() < LOOK_AT_LIMIT_EVERY {
            return Vec::new();
        }
        self.limit_looked = Instant::now();
        let Some(used) = self.use_of_limit().filter(|used| used.is_near()) else {
            return Vec::new();
        };
        own::give_back_memory();
        let at_work = self.pool.at_work();
        let Some(name) = self.meter.shed_now(&at_work, now) else {
            return Vec::new();
        };
        let why = format!(
            "its cgroup uses {} of {} MiB, beyond which the kernel kills it",
            used.bytes >> 20,
            used.limit_bytes >> 20
        );
        self.shed(name, &why)
    }

    fn use_of_limit(&self) -> Option<Use> {
        self.limit.as_ref().and_then(|limit| limit.used(&self.host))
    }

    /// Stops a sensor, and says so.
    fn shed(&mut self, name: &'static str, why: &str) -> Vec<Record> {
        let text = format!("sensor {name} was stopped to stay within the budget: {why}");
        self.say(Level::Warning, &text);
        self.pool.shed(name, why)
    }

    /// Has a sensor work again, and says so.
    fn bring_back(&mut self, back: Back, now: Moment) -> Vec<Record> {
        let minutes = now.since(back.since).as_secs() / 60;
        let Some(records) = self.pool.bring_back(back.name, minutes) else {
            self.meter.still_shed(back);
            return Vec::new();
        };
        if LOGS.contains(&back.name) {
            self.known_until.insert(back.name, back.since);
        }
        let text = format!(
            "sensor {} is back after {minutes} minutes: the budget has room for it",
            back.name
        );
        self.say(Level::Info, &text);
        records
    }

    /// Once a minute: what the agent itself used, which sensor it stops if that is too much, and
    /// which comes back if there is room.
    pub(super) fn measure(&mut self, now: Moment) -> Vec<Record> {
        if !self.meter.is_due(now) {
            return Vec::new();
        }
        let memory = own::resident_bytes().unwrap_or(0);
        let (cpu_time, threads) = (clock::process_cpu_time(), own::threads());
        let measured = self.meter.measure(now, cpu_time, &threads, memory);
        let budget = self.settings.budget;
        self.shared.change(|status| {
            status.cpu_ratio = measured.map(|measured| measured.cpu_ratio);
            status.cpu_limit_ratio = budget.cpu_ratio;
            status.memory_bytes = memory;
            status.memory_limit_bytes = budget.memory_bytes;
        });
        let mut records = recorder::sensor_list();
        let Some(measured) = measured else {
            return records;
        };
        let mut out = Sink::new("agent", now);
        let node = Subject::node();
        out.sample(&node, &SEXTON_CPU_RATIO, measured.cpu_ratio);
        out.sample(&node, &SEXTON_MEMORY_BYTES, measured.memory_bytes as f64);
        records.extend(out.into_records());
        let at_work = self.pool.at_work();
        if let Some((name, why)) = self.meter.shed(measured, budget, &at_work, now) {
            records.extend(self.shed(name, &why));
        }
        let is_near = self.use_of_limit().is_some_and(|used| !used.has_room());
        if let Some(back) = self.meter.bring_back(measured, budget, is_near) {
            records.extend(self.bring_back(back, now));
        }
        records
    }
}
