//! How much of a core's time interrupts take from what runs there.
#![allow(unsafe_code, reason = "scheduling classes have no safe form")]

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

/// Two looks at the clock are never this far apart unless something came between them.
const GAP: Duration = Duration::from_nanos(400);
/// What takes longer is no interrupt of a timer: a hypervisor had the core, or a page was missing.
const LONGEST: Duration = Duration::from_micros(50);

/// Spins on a core for so long, before all other tasks, and adds up the time between two looks at
/// the clock that was not its own. Needs root.
pub fn time_taken_on(core: u32, length: Duration) -> io::Result<Duration> {
    let spinning = thread::spawn(move || {
        let mut cores = CpuSet::new();
        cores.set(core as usize);
        sched_setaffinity(None, &cores)?;
        come_first()?;
        let (began, mut taken) = (Instant::now(), Duration::ZERO);
        let mut last = began;
        while last - began < length {
            let now = Instant::now();
            if (GAP..LONGEST).contains(&(now - last)) {
                taken += now - last;
            }
            last = now;
        }
        Ok(taken)
    });
    spinning
        .join()
        .map_err(|_| io::Error::other("the spinning thread panicked"))?
}

/// Has this thread run before all that are not of the real-time class.
fn come_first() -> io::Result<()> {
    let this_thread = 0;
    let first = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameters outlive the call.
    let done = unsafe { libc::sched_setscheduler(this_thread, libc::SCHED_FIFO, &raw const first) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
