//! What the thread that talks to systemd tells the sensor.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use sexton_model::gap::Gap;

use super::ledger::Note;

/// News that may wait for a poll. A loop of a hundred restarts a second makes about
/// four hundred in the five seconds between two.
const WAITING: usize = 16_384;

/// What there is to tell.
#[derive(Debug)]
pub(super) enum News {
    Note(Note),
    Gap(Gap),
}

/// The way from the thread to the sensor. Nobody waits on it.
#[derive(Debug)]
pub(super) struct Teller {
    send: SyncSender<News>,
    n_lost: AtomicU64,
    counts: Mutex<Option<(u64, u64)>>,
    is_over: AtomicBool,
    lock: Mutex<()>,
    bell: Condvar,
}

impl Teller {
    pub(super) fn new() -> (Self, Receiver<News>) {
        let (send, receive) = sync_channel(WAITING);
        let teller = Self {
            send,
            n_lost: AtomicU64::new(0),
            counts: Mutex::new(None),
            is_over: AtomicBool::new(false),
            lock: Mutex::new(()),
            bell: Condvar::new(),
        };
        (teller, receive)
    }

    pub(super) fn notes(&self, notes: Vec<Note>) {
        notes
            .into_iter()
            .for_each(|note| self.tell(News::Note(note)));
    }

    pub(super) fn gap(&self, gap: Gap) {
        self.tell(News::Gap(gap));
    }

    fn tell(&self, news: News) {
        if self.send.try_send(news).is_err() {
            self.n_lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Units that there are, and those that have failed.
    pub(super) fn counts(&self, counts: (u64, u64)) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = Some(counts);
    }

    /// Nothing is known now.
    pub(super) fn blind(&self) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn last_counts(&self) -> Option<(u64, u64)> {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// News that had no room, since this was last asked.
    pub(super) fn take_lost(&self) -> u64 {
        self.n_lost.swap(0, Ordering::Relaxed)
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.bell.notify_all();
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Sleeps, but not beyond the end of the sensor.
    pub(super) fn sleep(&self, time: Duration) {
        let held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_over() {
            drop(self.bell.wait_timeout(held, time));
        }
    }
}
