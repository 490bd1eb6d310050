//! Work that keeps a core busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A thread that keeps one core busy until it is dropped.
pub struct Hog {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hog {
    /// Burns the core with `work`, over and over.
    pub fn on(core: usize, work: fn()) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut only = CpuSet::new();
            only.set(core);
            sched_setaffinity(None, &only).expect("the core is there");
            while !told.load(Ordering::Relaxed) {
                work();
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the hog ends");
        }
    }
}

/// Puts this thread, and all it starts from now on, before whatever else runs here, so
/// that they look and work when they mean to.
pub fn come_first() {
    setpriority_process(None, -20).expect("root may do so");
}

/// The highest core that we may run on.
pub fn last_core() -> usize {
    let allowed = sched_getaffinity(None).expect("our own cores");
    (0..CpuSet::MAX_CPU)
        .rev()
        .find(|core| allowed.is_set(*core))
        .expect("we run somewhere")
}
