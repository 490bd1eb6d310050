//! Runs a command and tells what it took: `meter COMMAND [ARGUMENT...]`.
//!
//! Prints one line: CPU time in microseconds, peak memory in KiB, exit code.
//!
//! A process of its own, because the kernel counts the memory that a process had
//! before it became another program as that program's: started from a large
//! process, every command would seem large.
#![allow(clippy::print_stdout, reason = "its answer")]
#![allow(unsafe_code, reason = "the standard library does not tell usage")]

use std::mem::MaybeUninit;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

fn main() -> Result<()> {
    let mut args = std::env::args_os().skip(1);
    let program = args.next().context("usage: meter COMMAND [ARGUMENT...]")?;
    let child = Command::new(&program)
        .args(args)
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let (status, usage) = wait(child.id().cast_signed())?;
    ensure!(libc::WIFEXITED(status), "it was killed");
    println!(
        "{} {} {}",
        micros(usage.ru_utime) + micros(usage.ru_stime),
        usage.ru_maxrss,
        libc::WEXITSTATUS(status)
    );
    Ok(())
}

fn wait(pid: i32) -> Result<(i32, libc::rusage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to values of our own, and all zeros is a valid
    // `rusage`, so it is whole whatever the kernel writes.
    let (waited, usage) = unsafe {
        let waited = libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr());
        (waited, usage.assume_init())
    };
    ensure!(waited == pid, std::io::Error::last_os_error());
    Ok((status, usage))
}

fn micros(time: libc::timeval) -> i64 {
    time.tv_sec * 1_000_000 + time.tv_usec
}
