//! The thread that keeps reports in the spool and sends them, as often as it takes.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sexton_host::{clock, own};
use sexton_lake::{LakeError, Report, Spool, put_into_folder};
use sexton_model::text;

use super::child::{self, Stop};
use super::{FleetSettings, Lake};
use crate::agent::{Level, Log};
use crate::status::FleetStatus;

/// Closed reports that the thread has not taken yet.
const MAX_QUEUED: usize = 4;

/// Nodes of a fleet do not all write at the full hour: each waits for a part of this.
const SPREAD: Duration = Duration::from_secs(300);

/// How long to wait after a failure: twice as long after each, up to an hour.
const FIRST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// The thread, as the agent's loop sees it.
#[derive(Debug)]
pub(super) struct Sender {
    reports: SyncSender<Message>,
    status: Arc<Mutex<FleetStatus>>,
    stop: Stop,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    Report(Box<Report>),
    Stop,
}

impl Sender {
    pub(super) fn start(settings: FleetSettings, log: Log) -> std::io::Result<Self> {
        let (reports, queue) = mpsc::sync_channel(MAX_QUEUED);
        let spool = Spool::at(&settings.spool);
        let status = Arc::new(Mutex::new(FleetStatus {
            lake: settings.lake.address(),
            waiting: spool.n_waiting(),
            ..FleetStatus::default()
        }));
        let stop = Stop::default();
        let mut worker = Worker {
            wait: spread(&settings),
            settings,
            spool,
            status: Arc::clone(&status),
            stop: stop.clone(),
            log,
            next: None,
        };
        let thread = thread::Builder::new().name("fleet".to_owned());
        let thread = thread.spawn(move || {
            // Neither it nor the program that it starts needs any.
            if let Err(error) = own::drop_capabilities() {
                let text = format!("reports are sent with the agent's capabilities: {error}");
                (worker.log)(Level::Warning, &text);
            }
            worker.run(&queue);
        })?;
        Ok(Self {
            reports,
            status,
            stop,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Never waits: the agent's loop calls it.
    pub(super) fn send(&self, report: Report) {
        let sent = self.reports.try_send(Message::Report(Box::new(report)));
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = sent {
            lock(&self.status).dropped += 1;
        }
    }

    pub(super) fn status(&self) -> FleetStatus {
        lock(&self.status).clone()
    }

    pub(super) fn stop(&self) {
        self.stop.set();
        let _ = self.reports.try_send(Message::Stop);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

fn lock(status: &Mutex<FleetStatus>) -> MutexGuard<'_, FleetStatus> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where in the spread this node is: always the same, and different for each.
fn spread(settings: &FleetSettings) -> Duration {
    let most = SPREAD.min(settings.every / 10);
    let mut hasher = DefaultHasher::new();
    settings.node.name.hash(&mut hasher);
    let ms = u64::try_from(most.as_millis()).unwrap_or(u64::MAX).max(1);
    Duration::from_millis(hasher.finish() % ms)
}

struct Worker {
    settings: FleetSettings,
    spool: Spool,
    status: Arc<Mutex<FleetStatus>>,
    stop: Stop,
    log: Log,
    /// When to send, if anything waits.
    next: Option<Instant>,
    /// How long to wait before that.
    wait: Duration,
}

impl Worker {
    fn run(&mut self, queue: &Receiver<Message>) {
        if lock(&self.status).waiting > 0 {
            self.next = Some(Instant::now() + self.wait);
        }
        loop {
            let timeout = self.next.map_or(LONGEST_WAIT, |next| {
                next.saturating_duration_since(Instant::now())
            });
            match queue.recv_timeout(timeout) {
                Ok(Message::Report(report)) => self.keep(*report),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.stop.is_set() {
                self.keep_rest(queue);
                return;
            }
            if self.next.is_some_and(|next| next <= Instant::now()) {
                self.ship();
            }
        }
    }

    fn keep_rest(&mut self, queue: &Receiver<Message>) {
        while let Ok(Message::Report(report)) = queue.try_recv() {
            self.keep(*report);
        }
    }

    fn keep(&mut self, mut report: Report) {
        let kept = self.spool.keep(&mut report);
        let n_waiting = self.spool.n_waiting();
        let mut status = lock(&self.status);
        status.waiting = n_waiting;
        match kept {
            Ok(n_dropped) => status.dropped += n_dropped as u64,
            Err(error) => {
                status.dropped += 1;
                drop(status);
                self.fail(&format!("cannot keep a report: {}", text::chain(&error)));
                return;
            }
        }
        drop(status);
        if self.next.is_none() {
            self.next = Some(Instant::now() + self.wait);
        }
    }

    fn ship(&mut self) {
        let n_before = self.spool.n_waiting();
        let shipped = match &self.settings.lake {
            Lake::Folder(folder) => into_folder(&self.spool, folder),
            Lake::Cloud { url, program } => {
                child::ship(program, &self.settings.spool, url, &self.stop)
            }
        };
        let n_waiting = self.spool.n_waiting();
        {
            let mut status = lock(&self.status);
            status.waiting = n_waiting;
            let n_sent = n_before.saturating_sub(n_waiting) as u64;
            status.sent += n_sent;
            if n_sent > 0 {
                status.sent_wall_ns = Some(clock::wall_ns());
            }
        }
        match shipped {
            Ok(()) => self.succeed(),
            Err(_) if self.stop.is_set() => {}
            Err(why) => self.fail(&why),
        }
    }

    fn succeed(&mut self) {
        self.next = None;
        self.wait = spread(&self.settings);
        if lock(&self.status).trouble.take().is_some() {
            let lake = self.settings.lake.address();
            (self.log)(
                Level::Info,
                &format!("reports reach {lake} again: the spool is empty"),
            );
        }
    }

    fn fail(&mut self, why: &str) {
        let mut status = lock(&self.status);
        status.failed += 1;
        let was_well = status.trouble.replace(why.to_owned()).is_none();
        drop(status);
        self.wait = match was_well {
            true => FIRST_WAIT.min(self.settings.every),
            false => (self.wait * 2).min(LONGEST_WAIT.min(self.settings.every)),
        };
        self.next = Some(Instant::now() + self.wait);
        if was_well {
            let text = format!("cannot send reports: {why}; they wait in the spool");
            (self.log)(Level::Warning, &text);
        }
    }
}

fn into_folder(spool: &Spool, folder: &Path) -> Result<(), String> {
    let (_, result) = spool.ship(|path, bytes| put_into_folder(folder, path, &bytes));
    result.map_err(|error: LakeError| text::chain(&error))
}
