//! Makes dying memory cgroups: `leaker CGROUP FILES NAME N PIN`.
//!
//! One process and no threads: the kernel charges a page to the cgroup of the
//! process that owns the address space. It enters each cgroup, touches one page
//! that outlives it, moves on, and removes the directory behind it. It then says
//! `ready` and holds what it has open until its input ends.
#![allow(clippy::print_stdout, reason = "tells the test that it is ready")]
#![allow(unsafe_code, reason = "mapping a file is unsafe by its nature")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::mm::{MapFlags, ProtFlags, mmap};

const PAGE: usize = 4096;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [cgroup, files, name, n, pin] = &args[..] else {
        bail!("usage: leaker CGROUP FILES NAME N PIN");
    };
    let mut held = Vec::new();
    let mut last: Option<PathBuf> = None;
    for i in 0..n.parse::<u32>().context("N is no number")? {
        let directory = Path::new(cgroup).join(format!("{name}-{i}"));
        fs::create_dir(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        enter(&directory)?;
        if let Some(last) = last.replace(directory) {
            fs::remove_dir(last)?;
        }
        held.extend(touch(Path::new(files), name, i, pin)?);
    }
    enter(&Path::new(cgroup).join("home"))?;
    if let Some(last) = last {
        fs::remove_dir(last)?;
    }
    println!("ready");
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn enter(cgroup: &Path) -> Result<()> {
    fs::write(cgroup.join("cgroup.procs"), "0")
        .with_context(|| format!("cannot enter {}", cgroup.display()))
}

/// Touches one page that outlives the cgroup; returns the file if it must be held.
fn touch(files: &Path, name: &str, i: u32, pin: &str) -> Result<Option<File>> {
    if pin == "shared-log" {
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(files.join(format!("{name}.log")))?;
        log.write_all(&[b'x'; PAGE])?;
        return Ok(None);
    }
    let path = files.join(format!("{name}-{i}.data"));
    let mut file = OpenOptions::new()
        .create_new(true)
        .read(true)
        .write(true)
        .open(&path)?;
    file.write_all(&[b'x'; PAGE])?;
    match pin {
        "own-file" | "tmpfs" => Ok(None),
        "mapped" => {
            // SAFETY: a fresh mapping of a file that is not shortened; it is read
            // once, to put it into the page tables, and never unmapped.
            unsafe {
                let page = mmap(
                    std::ptr::null_mut(),
                    PAGE,
                    ProtFlags::READ,
                    MapFlags::SHARED,
                    &file,
                    0,
                )?;
                page.cast::<u8>().read_volatile();
            }
            Ok(None)
        }
        "deleted" => {
            fs::remove_file(&path)?;
            Ok(Some(file))
        }
        other => bail!("no such pin: {other}"),
    }
}
