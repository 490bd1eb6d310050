//! Reads memory statistics over and over, and so holds one core in the kernel.
//!
//! It runs before all ordinary tasks of that core, but rests a tenth of each second by
//! itself: the kernel's own limit for such tasks (0.95 s, `sched_rt_runtime_us`) may be
//! switched off, and what must run there has to run some time.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use sexton_host::own;

use super::{Orders, Part, say_ready};
use crate::core_choice::stay_on;
use crate::error::DrillError;
use crate::sandbox::Sandbox;

pub(super) static PART: Part = Part {
    name: "reader",
    work,
};

/// Above ordinary tasks, below what the kernel itself runs at 50 and more.
const PRIORITY: u8 = 10;

const HOLD: Duration = Duration::from_millis(900);
const REST: Duration = Duration::from_millis(100);

fn work(sandbox: &Sandbox, orders: &Orders) -> Result<(), DrillError> {
    let mut files = Vec::new();
    for path in sandbox.statistics() {
        let file = File::open(&path).map_err(DrillError::file("open", &path))?;
        files.push((path, file));
    }
    if files.is_empty() {
        return Err(DrillError::NotPossible(
            "there are no memory statistics to read".into(),
        ));
    }
    stay_on(orders.core)?;
    own::run_first(PRIORITY).map_err(|error| {
        DrillError::NotPossible(format!("cannot run at real-time priority: {error}"))
    })?;
    say_ready()?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let until = Instant::now() + HOLD;
        while Instant::now() < until {
            for (path, file) in &files {
                let read = file.read_at(&mut buffer, 0);
                read.map_err(DrillError::file("read", path))?;
            }
        }
        thread::sleep(REST);
    }
}
