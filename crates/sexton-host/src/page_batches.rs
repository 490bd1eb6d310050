//! Has each CPU put the pages that wait there on the lists they belong to.
//!
//! The kernel charges a page at once but puts it on a list later, up to 31 at a
//! time for each CPU. Until then nobody can find it, nor name the cgroup it pins.
//! `madvise(MADV_COLD)` on a page of our own puts those of the CPU it is called on
//! in place, as the kernel does all the time. We visit one CPU after the other
//! instead of asking the kernel to drain all: that would wait for every CPU, and
//! one of them may be the stuck one that we are here for.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};

/// How long to wait for the visitor to come back from a busy CPU.
const RECALL: Duration = Duration::from_millis(100);

/// Visits every CPU that this process may use. Returns those that could not be
/// reached in time.
pub fn drain(deadline: Duration) -> Vec<u32> {
    let Ok(allowed) = sched_getaffinity(None) else {
        return Vec::new();
    };
    let mut waiting: Vec<u32> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .map(|cpu| cpu as u32)
        .collect();
    let visitor = Visitor::send(waiting.clone());
    let until = Instant::now() + deadline;
    while !waiting.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        match visitor.reached.recv_timeout(left) {
            Ok(cpu) => waiting.retain(|other| *other != cpu),
            // Time is up, or the visitor is through.
            Err(_) => break,
        }
    }
    visitor.recall(&allowed);
    waiting
}

/// A thread that goes from CPU to CPU.
struct Visitor {
    reached: Receiver<u32>,
    tid: Receiver<Pid>,
    recalled: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Visitor {
    fn send(cpus: Vec<u32>) -> Self {
        let (tell_reached, reached) = channel();
        let (tell_tid, tid) = channel();
        let recalled = Arc::new(AtomicBool::new(false));
        let is_recalled = Arc::clone(&recalled);
        let thread = thread::spawn(move || {
            tell_tid.send(gettid()).ok();
            for cpu in cpus {
                if is_recalled.load(Ordering::Relaxed) {
                    return;
                }
                if visit(cpu) {
                    tell_reached.send(cpu).ok();
                }
            }
        });
        Self {
            reached,
            tid,
            recalled,
            thread,
        }
    }

    /// Ends the round. A visitor that waits for a busy CPU is let run elsewhere: left
    /// there, it would keep this process from ending until that CPU is free.
    fn recall(self, allowed: &CpuSet) {
        self.recalled.store(true, Ordering::Relaxed);
        let Ok(tid) = self.tid.recv() else { return };
        let until = Instant::now() + RECALL;
        while !self.thread.is_finished() && Instant::now() < until {
            sched_setaffinity(Some(tid), allowed).ok();
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Moves to a CPU and puts its pages in place; says whether that was possible.
fn visit(cpu: u32) -> bool {
    let mut only = CpuSet::new();
    only.set(cpu as usize);
    sched_setaffinity(None, &only).is_ok() && put_in_place().is_ok()
}

fn put_in_place() -> rustix::io::Result<()> {
    let size = rustix::param::page_size();
    // SAFETY: a fresh private mapping that nothing else refers to, unmapped again.
    unsafe {
        let page = mmap_anonymous(
            ptr::null_mut(),
            size,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )?;
        let advised = madvise(page, size, Advice::LinuxCold);
        munmap(page, size)?;
        advised
    }
}
