//! One fix at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::error::RemedyError;

/// Where the lock is, unless told otherwise. It is gone after a boot. Not in the folder of the
/// agent, whose user could hold it for ever.
pub const PATH: &str = "/run/sexton-fix.lock";

/// How often it is tried while another has it.
const AGAIN: Duration = Duration::from_millis(200);

/// Held while a fix is at work; the kernel lets go of it when the process ends, however
/// it ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    /// Lets go aloud: a child that was forked a moment ago still has the file open until it
    /// executes its program, and closing alone would leave the lock with it.
    fn drop(&mut self) {
        flock(&self.file, FlockOperation::Unlock).ok();
    }
}

impl Lock {
    /// Takes it, or says who has it.
    pub fn take(path: &Path) -> Result<Self, RemedyError> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .map_err(|source| RemedyError::file("make", folder, source))?;
        }
        let failed = |what| {
            let path = PathBuf::from(path);
            move |source| RemedyError::file(what, path, source)
        };
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)
            .map_err(failed("open"))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut pid = String::new();
            (&mut file).take(20).read_to_string(&mut pid).ok();
            let is_number = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
            return Err(RemedyError::Busy {
                pid: if is_number { pid } else { "unknown".into() },
            });
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(std::process::id().to_string().as_bytes()))
            .map_err(failed("write"))?;
        Ok(Self { file })
    }

    /// Takes it as soon as it is free, or says who still has it after this time.
    pub fn take_within(path: &Path, within: Duration) -> Result<Self, RemedyError> {
        let until = Instant::now() + within;
        loop {
            match Self::take(path) {
                Err(RemedyError::Busy { .. }) if Instant::now() < until => thread::sleep(AGAIN),
                taken => return taken,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_is_refused_and_told_by_whom() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run/fix.lock");
        let first = Lock::take(&path).expect("free");
        let error = Lock::take(&path).expect_err("taken").to_string();
        assert!(error.contains(&std::process::id().to_string()), "{error}");
        drop(first);
        Lock::take(&path).expect("free again");
    }

    #[test]
    fn a_second_one_may_wait_for_the_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("fix.lock");
        let first = Lock::take(&path).expect("free");
        Lock::take_within(&path, Duration::ZERO).expect_err("taken");
        let release = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            drop(first);
        });
        Lock::take_within(&path, Duration::from_secs(60)).expect("free after a moment");
        release.join().expect("it does not panic");
    }
}
