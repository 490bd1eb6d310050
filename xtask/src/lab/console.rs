//! A guest for people: a shell on its console, now or whenever somebody enters.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use anyhow::{Context as _, Result, bail, ensure};

use super::guest::{Clock, Disks, Guests};
use super::place::{On, Place};
use crate::guest::Cell;
use crate::{command, rootfs, setup};

/// In place of a job: a shell, and when it is left, the end.
const SHELL: (&str, &str) = (
    "job.service",
    "[Unit]\nAfter=multi-user.target\n[Service]\nWorkingDirectory=/job\nEnvironment=TERM=linux\n\
     StandardInput=tty\nStandardOutput=tty\nStandardError=tty\nTTYPath=/dev/ttyS0\n\
     ExecStart=/bin/bash -l\nExecStopPost=/bin/systemctl poweroff --force --force\n",
);

/// Enters the guest that is up, or boots one and enters it.
pub(super) fn shell(place: &Place) -> Result<ExitCode> {
    let cell = cell(place)?;
    if let Ok(socket) = UnixStream::connect(folder(cell).join("console")) {
        println!("entering {}; `exit` powers it off", cell.name());
        enter(socket)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (guests, disks) = ready(cell)?;
    println!("booting {}; `exit` powers it off", cell.name());
    // Ctrl-C is for the guest.
    let mut qemu = guests.command(cell, &disks, "chardev:console", Clock::Runs)?;
    qemu.args(["-chardev", "stdio,id=console,signal=off"]);
    let status = qemu.status().context("cannot start the emulator")?;
    disks.remove();
    ensure!(status.success(), "the emulator ended with {status}");
    Ok(ExitCode::SUCCESS)
}

/// Boots one and leaves it running.
pub(super) fn up(place: &Place) -> Result<ExitCode> {
    let cell = cell(place)?;
    let socket = folder(cell).join("console");
    ensure!(
        UnixStream::connect(&socket).is_err(),
        "{} is up already: cargo xtask lab shell {}",
        cell.name(),
        flags(cell)
    );
    let (guests, disks) = ready(cell)?;
    let serial = format!("unix:{},server=on,wait=off", socket.display());
    let mut qemu = guests.command(cell, &disks, &serial, Clock::Runs)?;
    let pid = folder(cell).join("pid");
    let status = qemu
        .arg("-daemonize")
        .arg("-pidfile")
        .arg(&pid)
        .stdin(Stdio::null())
        .status()
        .context("cannot start the emulator")?;
    ensure!(status.success(), "the emulator ended with {status}");
    let id = fs::read_to_string(&pid).unwrap_or_default();
    println!(
        "{} is booting, as process {}. Its shell is there in about 20 s:\n\n    \
         cargo xtask lab shell {}\n\nsexton is /job/sexton there. `exit` powers it off.",
        cell.name(),
        id.trim(),
        flags(cell)
    );
    Ok(ExitCode::SUCCESS)
}

fn cell(place: &Place) -> Result<&'static Cell> {
    match place.on {
        On::Guest(cell) => Ok(cell),
        On::Here => bail!("this machine has a shell already: name a guest by --kernel"),
    }
}

fn flags(cell: &Cell) -> String {
    format!(
        "--kernel {} --cgroup {}",
        cell.kernel_name(),
        cell.cgroup().name()
    )
}

fn folder(cell: &Cell) -> PathBuf {
    super::folder().join(format!("up-{}", cell.name()))
}

fn ready(cell: &Cell) -> Result<(Guests, Disks)> {
    setup::install_missing(setup::For::Guests)?;
    ensure!(
        command::is_root(),
        "only root can make the disk of a guest: use sudo"
    );
    let folder = folder(cell);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let guests = Guests::new(&rootfs::make()?);
    let sexton = super::play::sexton()?;
    let disks = guests.disks(cell, &[sexton], &[SHELL], "", &folder)?;
    Ok((guests, disks))
}

/// Joins this terminal with the console of a guest, until that ends.
fn enter(mut socket: UnixStream) -> Result<()> {
    let mut to_guest = socket.try_clone().context("cannot write to the console")?;
    let _raw = Raw::set();
    // It ends with this process.
    thread::spawn(move || {
        let mut key = [0; 64];
        while let Ok(n @ 1..) = io::stdin().read(&mut key) {
            if to_guest.write_all(&key[..n]).is_err() {
                return;
            }
        }
    });
    // For a prompt: the guest has printed its own when nobody was there.
    socket
        .write_all(b"\n")
        .context("cannot write to the console")?;
    let mut bytes = [0; 4096];
    loop {
        match socket.read(&mut bytes) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(n) => {
                let mut out = io::stdout();
                out.write_all(&bytes[..n]).context("cannot print")?;
                out.flush().context("cannot print")?;
            }
        }
    }
}

/// A terminal that hands on every key; as it was when this is dropped.
struct Raw;

impl Raw {
    fn set() -> Raw {
        stty(&["raw", "-echo"]);
        Raw
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        stty(&["sane"]);
    }
}

/// Without a terminal there is nothing to set.
fn stty(args: &[&str]) {
    let device = Path::new("/dev/tty");
    if let Ok(tty) = fs::File::open(device) {
        Command::new("stty").args(args).stdin(tty).status().ok();
    }
}
