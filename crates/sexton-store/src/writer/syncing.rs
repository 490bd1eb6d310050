//! Has what was written survive a loss of power, on a thread of its own: a disk that takes
//! seconds for it must not hold up what is written meanwhile.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::error::StoreError;

/// Files that are handed over to be synced, one after the other.
#[derive(Debug)]
pub(super) struct Syncing {
    jobs: Option<Sender<Job>>,
    done: Arc<Done>,
    worker: Option<JoinHandle<()>>,
}

/// A file, and how many records survive once it is synced.
#[derive(Debug)]
struct Job {
    file: File,
    path: PathBuf,
    n_records: u64,
}

/// What the thread has done.
#[derive(Debug, Default)]
struct Done {
    n_durable: AtomicU64,
    n_waiting: AtomicUsize,
    failed: Mutex<Option<StoreError>>,
}

impl Syncing {
    /// Where no thread can be had, files are synced when they are handed over.
    pub(super) fn new() -> Self {
        let done = Arc::new(Done::default());
        let (jobs, waiting) = channel();
        let theirs = Arc::clone(&done);
        let named = thread::Builder::new().name("sync".into());
        let worker = named.spawn(move || work(&waiting, &theirs)).ok();
        Self {
            jobs: worker.is_some().then_some(jobs),
            done,
            worker,
        }
    }

    /// Hands over a file. `n_records` is how many were ever written, to this one and to
    /// those before it.
    pub(super) fn begin(&self, file: &File, path: &Path, n_records: u64) -> Result<(), StoreError> {
        let file = file.try_clone().map_err(StoreError::io("sync", path))?;
        let job = Job {
            file,
            path: path.to_owned(),
            n_records,
        };
        self.done.n_waiting.fetch_add(1, Ordering::SeqCst);
        let sent = match &self.jobs {
            Some(jobs) => jobs.send(job).map_err(|refused| refused.0),
            None => Err(job),
        };
        if let Err(job) = sent {
            self.done.sync(&job);
        }
        Ok(())
    }

    /// Whether all that was handed over is done.
    pub(super) fn is_idle(&self) -> bool {
        self.done.n_waiting.load(Ordering::SeqCst) == 0
    }

    /// How many records survive a loss of power; or why some may not.
    pub(super) fn n_durable(&self) -> Result<u64, StoreError> {
        let failed = self.done.failed.lock();
        let mut failed = failed.unwrap_or_else(PoisonError::into_inner);
        match failed.take() {
            Some(error) => Err(error),
            None => Ok(self.done.n_durable.load(Ordering::SeqCst)),
        }
    }

    /// Waits until all is done.
    pub(super) fn finish(&mut self) -> Result<u64, StoreError> {
        self.end();
        self.n_durable()
    }

    fn end(&mut self) {
        self.jobs = None;
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        self.end();
    }
}

fn work(jobs: &Receiver<Job>, done: &Done) {
    while let Ok(job) = jobs.recv() {
        done.sync(&job);
    }
}

impl Done {
    fn sync(&self, job: &Job) {
        match job.file.sync_data() {
            Ok(()) => {
                self.n_durable.fetch_max(job.n_records, Ordering::SeqCst);
            }
            Err(error) => {
                let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                *failed = Some(StoreError::io("sync", &job.path)(error));
            }
        }
        self.n_waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
