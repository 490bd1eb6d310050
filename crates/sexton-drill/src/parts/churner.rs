//! Looks healthy to whoever started it, appends to a log, and leaves dying cgroups.
//!
//! One process and no threads: the kernel charges a page to the cgroup of the process that
//! owns the address space. It enters each cgroup, appends a page to the log, moves on, and
//! removes the directory behind it: the page keeps the cgroup.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::{Orders, Part, say_ready};
use crate::core_choice::stay_off;
use crate::error::DrillError;
use crate::sandbox::{Sandbox, enter};

pub(super) static PART: Part = Part {
    name: "churner",
    work,
};

/// What one cgroup writes. A whole page, because a page belongs to who touched it first.
const PAGE: usize = 4096;

fn work(sandbox: &Sandbox, orders: &Orders) -> Result<(), DrillError> {
    stay_off(orders.core)?;
    let path = sandbox.log();
    let log = OpenOptions::new().create_new(true).append(true).open(&path);
    let mut log = log.map_err(DrillError::file("make", &path))?;
    say_ready()?;
    let began = Instant::now();
    let mut last: Option<PathBuf> = None;
    for n in 0..orders.n_dying {
        let directory = sandbox.cgroup.join(format!("run-{n}"));
        fs::create_dir(&directory).map_err(DrillError::file("make", &directory))?;
        enter(&directory)?;
        leave_behind(last.replace(directory))?;
        log.write_all(&[b'.'; PAGE])
            .map_err(DrillError::file("append to", &path))?;
        let due = orders
            .time
            .mul_f64(f64::from(n) / f64::from(orders.n_dying.max(1)));
        thread::sleep(due.saturating_sub(began.elapsed()));
    }
    enter(&sandbox.home())?;
    leave_behind(last)?;
    loop {
        // Alive and well, as far as its parent can see.
        thread::sleep(Duration::from_secs(60));
    }
}

fn leave_behind(directory: Option<PathBuf>) -> Result<(), DrillError> {
    directory.map_or(Ok(()), |directory| {
        fs::remove_dir(&directory).map_err(DrillError::file("remove", &directory))
    })
}
