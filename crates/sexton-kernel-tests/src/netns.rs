//! A network namespace of our own, with what is needed to look into it.

use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, ensure};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Runs `test` in a network namespace of its own, on a thread of its own. `/sys` there
/// shows that namespace. Everything goes away with the thread.
pub fn with_netns<T: Send>(test: impl FnOnce() -> T + Send) -> Result<T> {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            enter()?;
            Ok(test())
        });
        match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[expect(unsafe_code, reason = "a name space cannot be left safely otherwise")]
fn enter() -> Result<()> {
    let spaces = UnshareFlags::NEWNET | UnshareFlags::NEWNS;
    // SAFETY: the table of open files stays shared, which is all that this could break.
    unsafe { unshare_unsafe(spaces) }.context("cannot make name spaces")?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .context("cannot keep mounts to ourselves")?;
    mount(
        "sexton-test",
        Path::new("/sys"),
        "sysfs",
        MountFlags::empty(),
        None,
    )
    .context("cannot mount /sys")
}

/// Runs `ip` with these words.
pub fn ip(words: &str) -> Result<()> {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.context("cannot run ip: install iproute2")?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "ip {words}: {complaint}");
    Ok(())
}
