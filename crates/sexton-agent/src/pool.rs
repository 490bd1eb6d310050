//! Sensors at work, each on a thread of its own.

mod queue;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sexton_host::{Host, clock};
use sexton_model::fact::sexton::SEXTON_POLL_NS;
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::{Record, Sink};
use sexton_model::stack::StackBatch;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_sensors::{Opener, Sensor, SensorSpec};

use crate::clock::ClockWatch;
use queue::{Batch, Queue};

/// A sensor that is held up for longer because nobody collects says so.
const HELD_UP: Duration = Duration::from_secs(1);

/// How long a sensor may take to get ready, if its polls may not take longer.
///
/// Chosen: the kernel checks BPF programs and waits for all cores before they are attached,
/// which is tenths of a second on a quiet node and seconds on one that is in trouble.
const OPENING: Duration = Duration::from_secs(10);

/// How long to wait for sensors to end before they are left to the end of the process.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long to wait for one that has not answered once, and is not late either: on a slow
/// machine a first look may take as long as a short watch, and what it sees is worth more.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// A sensor of the pool and its beat.
#[derive(Clone)]
pub struct Member {
    /// The sensor.
    pub spec: &'static SensorSpec,
    /// How often it is polled.
    pub every: Duration,
    open: Opener,
}

impl Member {
    /// A sensor on its own beat.
    pub fn new(spec: &'static SensorSpec) -> Self {
        Self {
            spec,
            every: spec.every,
            open: Arc::new(spec.open),
        }
    }

    /// The same, polled so often.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// Has the sensor of that name, if it is among them, opened with its user's settings.
    pub fn set_opener(members: &mut [Self], sensor: &str, open: &Opener) {
        for member in members {
            if member.spec.name == sensor {
                member.open = Arc::clone(open);
            }
        }
    }
}

/// Sensors at work.
pub struct SensorPool {
    host: Arc<Host>,
    slots: Vec<Slot>,
    queue: Arc<Queue>,
    /// Samples of stacks that were not taken yet; `None` when nobody wants any.
    stacks: Option<Vec<StackBatch>>,
    stop: Arc<Stop>,
    clock: ClockWatch,
}

/// One sensor's place in the pool.
struct Slot {
    member: Member,
    stopwatch: Arc<Stopwatch>,
    late: bool,
    answered: Arc<AtomicBool>,
    is_shed: Arc<AtomicBool>,
    /// None when there could be no thread for it, which it has said.
    thread: Option<JoinHandle<()>>,
}

impl Slot {
    fn is_at_work(&self) -> bool {
        self.thread.as_ref().is_some_and(|it| !it.is_finished())
    }

    fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }

    /// Whether the end of the work, which began then, waits for it.
    fn is_waited_for(&self, began: Instant) -> bool {
        let is_late = self.stopwatch.over(clock::now()).is_some();
        let patience = match self.has_answered() || is_late {
            true => FAREWELL,
            false => FIRST_ANSWER,
        };
        self.is_at_work() && began.elapsed() < patience
    }
}

impl SensorPool {
    /// Puts these sensors to work.
    pub fn start(host: &Arc<Host>, members: &[Member]) -> Self {
        let stop = Arc::new(Stop::default());
        let queue = Arc::new(Queue::default());
        let slots = members
            .iter()
            .map(|member| slot(member.clone(), host, &queue, &stop))
            .collect();
        Self {
            host: Arc::clone(host),
            slots,
            queue,
            stacks: None,
            stop,
            clock: ClockWatch::default(),
        }
    }

    /// Has samples of stacks kept from now on; they must be taken after each `collect`.
    pub fn keep_stacks(&mut self) {
        self.stacks.get_or_insert_default();
    }

    /// The samples of stacks that have come in.
    pub fn take_stacks(&mut self) -> Vec<StackBatch> {
        self.stacks.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What came in within this time, and the gaps of sensors that are late.
    pub fn collect(&mut self, time: Duration) -> Vec<Record> {
        let until = Instant::now() + time;
        let mut collected = self.clock.look(clock::now(), clock::wall_ns());
        while Instant::now() < until {
            collected.extend(land(self.queue.take(until), &mut self.stacks));
        }
        collected.extend(self.late_ones());
        collected
    }

    /// The sensors that are at work.
    pub fn at_work(&self) -> Vec<&'static str> {
        let slots = self.slots.iter().filter(|slot| slot.is_at_work());
        slots.map(|slot| slot.member.spec.name).collect()
    }

    /// Has one sensor end its work, because the agent may not afford it. Gives the gap that
    /// says so.
    pub fn shed(&mut self, name: &'static str, why: &str) -> Vec<Record> {
        let slot = self.slots.iter().find(|slot| slot.member.spec.name == name);
        let Some(slot) = slot else {
            return Vec::new();
        };
        slot.is_shed.store(true, Ordering::SeqCst);
        self.stop.wake();
        let text = format!("sensor {name} was stopped to stay within the budget: {why}");
        let shed = Gap::new(name, Why::Overrun, text)
            .with_remedy("raise [budget] in the agent's configuration, or wait until it has room");
        gap(name, clock::now(), shed)
    }

    /// Has a sensor that was shed work again, after these minutes. Gives the gap that says so;
    /// none while its thread has not ended.
    pub fn bring_back(&mut self, name: &'static str, minutes: u64) -> Option<Vec<Record>> {
        let place = self
            .slots
            .iter_mut()
            .find(|slot| slot.member.spec.name == name)?;
        if place.is_at_work() {
            return None;
        }
        *place = slot(place.member.clone(), &self.host, &self.queue, &self.stop);
        let text =
            format!("sensor {name} was stopped for {minutes} minutes to stay within the budget");
        Some(gap(name, clock::now(), Gap::new(name, Why::Overrun, text)))
    }

    /// Ends the work and hands over what is left, but for samples of stacks.
    pub fn stop(self) -> Vec<Record> {
        self.stop_with_stacks().0
    }

    /// Ends the work and hands over all that is left.
    pub fn stop_with_stacks(mut self) -> (Vec<Record>, Vec<StackBatch>) {
        self.stop.set();
        let began = Instant::now();
        let mut left = Vec::new();
        while self.slots.iter().any(|slot| slot.is_waited_for(began)) {
            let soon = Instant::now() + Duration::from_millis(20);
            left.extend(land(self.queue.take(soon), &mut self.stacks));
        }
        left.extend(land(self.queue.take(Instant::now()), &mut self.stacks));
        left.extend(self.silent_ones());
        let stacks = self.take_stacks();
        (left, stacks)
    }

    /// A gap for each sensor that never answered and was not told to be late.
    fn silent_ones(&self) -> Vec<Record> {
        let now = clock::now();
        let is_silent = |slot: &&Slot| slot.is_at_work() && !slot.has_answered() && !slot.late;
        let silent = self.slots.iter().filter(is_silent);
        let gaps = silent.flat_map(|slot| {
            let name = slot.member.spec.name;
            let text = format!("sensor {name} had not answered once when the watch ended");
            let silence = Gap::new(name, Why::Overrun, text).with_remedy("watch for longer: --for");
            gap(name, now, silence)
        });
        gaps.collect()
    }

    /// A gap for each sensor that has just passed its deadline.
    fn late_ones(&mut self) -> Vec<Record> {
        let now = clock::now();
        let mut gaps = Vec::new();
        for slot in &mut self.slots {
            let name = slot.member.spec.name;
            let over = slot.stopwatch.over(now);
            if let Some((took, limit)) = over
                && !slot.late
            {
                let text = format!(
                    "sensor {name} has not answered for {took:.1?}; it may take {limit:.1?}"
                );
                gaps.extend(gap(name, now, Gap::new(name, Why::Overrun, text)));
            }
            slot.late = over.is_some();
        }
        gaps
    }
}

impl Drop for SensorPool {
    fn drop(&mut self) {
        self.stop.set();
        self.queue.close();
    }
}

impl std::fmt::Debug for SensorPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self
            .slots
            .iter()
            .map(|slot| slot.member.spec.name)
            .collect();
        f.debug_struct("SensorPool")
            .field("sensors", &names)
            .finish_non_exhaustive()
    }
}

/// Since when a sensor is at something, and how long that may take.
#[derive(Default)]
struct Stopwatch {
    /// In ns of our clock; 0 when it is at nothing.
    since_ns: AtomicU64,
    limit_ns: AtomicU64,
}

impl Stopwatch {
    fn start(&self, limit: Duration) {
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        self.limit_ns.store(limit_ns, Ordering::Relaxed);
        self.since_ns.store(clock::now().as_ns(), Ordering::Release);
    }

    fn stop(&self) {
        self.since_ns.store(0, Ordering::Relaxed);
    }

    /// How long it has been at it, and how long it may be, once it is longer.
    fn over(&self, now: Moment) -> Option<(Duration, Duration)> {
        let since_ns = self.since_ns.load(Ordering::Acquire);
        let limit = Duration::from_nanos(self.limit_ns.load(Ordering::Relaxed));
        let took = now.since(Moment::from_ns(since_ns));
        (since_ns != 0 && took > limit).then_some((took, limit))
    }
}

/// A flag that sleepers wake up for.
#[derive(Default)]
struct Stop {
    set: AtomicBool,
    lock: Mutex<()>,
    bell: Condvar,
}

impl Stop {
    fn set(&self) {
        self.set.store(true, Ordering::SeqCst);
        let _held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.bell.notify_all();
    }

    fn is_set(&self) -> bool {
        self.set.load(Ordering::SeqCst)
    }

    /// Has sleepers look at their own flags.
    fn wake(&self) {
        let _held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.bell.notify_all();
    }

    /// Sleeps, but not beyond the end of all work or of one's own.
    fn sleep(&self, time: Duration, is_over: &AtomicBool) {
        let until = Instant::now() + time;
        let mut held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_set() || is_over.load(Ordering::SeqCst) {
                return;
            }
            let waited = self.bell.wait_timeout(held, left);
            held = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Puts samples of stacks aside, if anyone wants them.
fn land(batches: Vec<Batch>, stacks: &mut Option<Vec<StackBatch>>) -> Vec<Record> {
    let mut records = Vec::new();
    for batch in batches {
        records.extend(batch.records);
        if let Some(kept) = stacks {
            kept.extend(batch.stacks);
        }
    }
    records
}

fn slot(member: Member, host: &Arc<Host>, queue: &Arc<Queue>, stop: &Arc<Stop>) -> Slot {
    let name = member.spec.name;
    let stopwatch = Arc::new(Stopwatch::default());
    let answered = Arc::new(AtomicBool::new(false));
    let is_shed = Arc::new(AtomicBool::new(false));
    let worker = Worker {
        answered: Arc::clone(&answered),
        is_shed: Arc::clone(&is_shed),
        member: member.clone(),
        host: Arc::clone(host),
        queue: Arc::clone(queue),
        stop: Arc::clone(stop),
        stopwatch: Arc::clone(&stopwatch),
    };
    let thread = thread::Builder::new().name(name.into());
    let thread = thread.spawn(move || worker.work());
    let thread = thread.inspect_err(|error| {
        let text = format!("there is no thread for sensor {name}: {error}");
        let records = gap(name, clock::now(), Gap::new(name, Why::Unsupported, text));
        let stacks = Vec::new();
        queue.put(Batch { records, stacks });
    });
    Slot {
        member,
        stopwatch,
        late: false,
        answered,
        is_shed,
        thread: thread.ok(),
    }
}

/// What one thread works with.
struct Worker {
    member: Member,
    host: Arc<Host>,
    queue: Arc<Queue>,
    stop: Arc<Stop>,
    stopwatch: Arc<Stopwatch>,
    answered: Arc<AtomicBool>,
    is_shed: Arc<AtomicBool>,
}

impl Worker {
    fn work(self) {
        let name = self.member.spec.name;
        let limit = self.member.spec.deadline.max(OPENING);
        let mut sensor = match self.guarded(limit, || (self.member.open)(&self.host)) {
            Ok(Ok(sensor)) => sensor,
            Ok(Err(why)) | Err(why) => return self.tell(gap(name, clock::now(), why)),
        };
        let mut next = Instant::now();
        // Who is ready only at the end of the work looks once all the same.
        loop {
            match self.poll(sensor.as_mut()) {
                Ok(batch) => self.hand_over(batch),
                // Benched: a sensor that panicked is in no known state.
                Err(why) => return self.tell(gap(name, clock::now(), why)),
            }
            next = beat_after(next, self.member.every, Instant::now());
            let left = next.saturating_duration_since(Instant::now());
            self.stop.sleep(left, &self.is_shed);
            if self.stop.is_set() || self.is_shed.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    fn poll(&self, sensor: &mut dyn Sensor) -> Result<Batch, Gap> {
        let spec = self.member.spec;
        let began = clock::now();
        let mut out = Sink::new(spec.name, began);
        self.guarded(spec.deadline, || sensor.poll(&self.host, &mut out))?;
        let took = clock::now().since(began);
        out.sample(
            &Subject::new(SubjectKind::Sensor, spec.name),
            &SEXTON_POLL_NS,
            took.as_nanos() as f64,
        );
        Ok(Batch {
            stacks: out.take_stacks(),
            records: out.into_records(),
        })
    }

    /// Does some work of the sensor with the clock running; a panic is a gap.
    fn guarded<T>(&self, limit: Duration, work: impl FnOnce() -> T) -> Result<T, Gap> {
        let name = self.member.spec.name;
        self.stopwatch.start(limit);
        let done = catch_unwind(AssertUnwindSafe(work));
        self.stopwatch.stop();
        done.map_err(|_| Gap::new(name, Why::Bug, format!("sensor {name} panicked and is out")))
    }

    fn tell(&self, records: Vec<Record>) {
        self.hand_over(Batch {
            records,
            stacks: Vec::new(),
        });
    }

    fn hand_over(&self, batch: Batch) {
        let name = self.member.spec.name;
        self.answered.store(true, Ordering::Release);
        let waited = self.queue.put(batch);
        if waited >= HELD_UP {
            let text = format!(
                "sensor {name}: output queue blocked for {waited:.1?}; it did not poll meanwhile"
            );
            let records = gap(name, clock::now(), Gap::new(name, Why::Overrun, text));
            let stacks = Vec::new();
            self.queue.put(Batch { records, stacks });
        }
    }
}

/// The next beat. Beats that were missed are left out, not made up for.
fn beat_after(last: Instant, every: Duration, now: Instant) -> Instant {
    let due = last + every;
    if due > now { due } else { now }
}

fn gap(sensor: &'static str, now: Moment, gap: Gap) -> Vec<Record> {
    let mut out = Sink::new(sensor, now);
    out.gap(&Subject::new(SubjectKind::Sensor, sensor), gap);
    out.into_records()
}

#[cfg(test)]
mod tests;
