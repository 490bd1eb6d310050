//! Sends the spool to a bucket of a cloud, by `sexton-fleet`: the clients of clouds are in that
//! program, which runs for a second in an hour, and not in the agent, which runs always.

use std::io::{ErrorKind, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A program that takes longer is ended: the bucket does not answer.
const MAX_TIME: Duration = Duration::from_secs(120);

/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What is read of its complaint. The rest stays in the pipe, which holds 64 KiB.
const MAX_COMPLAINT: u64 = 4096;

/// Whether the agent stops.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs `sexton-fleet push --spool`, which removes what it has put.
pub(super) fn ship(program: &Path, spool: &Path, url: &str, stop: &Stop) -> Result<(), String> {
    let spawned = Command::new(program)
        .args(["push", "--lake", url, "--spool"])
        .arg(spool)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = spawned.map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!(
            "no {} to send them with; install sexton-fleet beside sexton or in PATH",
            program.display()
        ),
        _ => format!("cannot start {}: {error}", program.display()),
    })?;
    let ended = wait(&mut child, stop);
    let mut complaint = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(MAX_COMPLAINT).read_to_end(&mut complaint);
    }
    let complaint = String::from_utf8_lossy(&complaint);
    let complaint = complaint.trim().trim_start_matches("sexton fleet: ");
    match ended? {
        true => Ok(()),
        false if complaint.is_empty() => Err(format!("{} failed", program.display())),
        false => Err(complaint.lines().collect::<Vec<_>>().join(" ")),
    }
}

/// Whether it succeeded.
fn wait(child: &mut Child, stop: &Stop) -> Result<bool, String> {
    let deadline = Instant::now() + MAX_TIME;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if Instant::now() < deadline && !stop.is_set() => thread::sleep(LOOK_EVERY),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("timed out after {} s", MAX_TIME.as_secs()));
            }
            Err(error) => return Err(format!("cannot wait for its end: {error}")),
        }
    }
}
