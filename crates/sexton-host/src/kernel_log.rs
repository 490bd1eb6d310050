//! The kernel's log by syslog(2), for places where `/dev/kmsg` cannot be opened: the device
//! cgroup of a container forbids it whatever its capabilities are, and this call asks for
//! `CAP_SYSLOG` alone.

use std::io;

use crate::error::HostError;

/// `SYSLOG_ACTION_READ_ALL` and `SYSLOG_ACTION_SIZE_BUFFER` of `linux/syslog.h`. Neither changes
/// what others read.
const READ_ALL: libc::c_int = 3;
const SIZE_BUFFER: libc::c_int = 10;

/// The most bytes of one read. A log may have gigabytes, and an agent has few.
const MOST_BYTES: usize = 4 << 20;

/// The kernel's log as text: `<6>[    5.140900] what happened`, a line each.
#[derive(Debug)]
pub struct KernelLog {
    whole_bytes: usize,
}

impl KernelLog {
    /// Fails where it may not be read.
    pub(crate) fn open() -> Result<Self, HostError> {
        let size = ask(SIZE_BUFFER, &mut [])?;
        let log = Self {
            // The text has the time of each line, which the buffer keeps elsewhere.
            whole_bytes: size.saturating_mul(2).clamp(1, MOST_BYTES),
        };
        log.read_last(1)?;
        Ok(log)
    }

    /// All of it, as a bound for [`KernelLog::read_last`].
    pub fn whole_bytes(&self) -> usize {
        self.whole_bytes
    }

    /// The newest lines, whole ones only, in at most this number of bytes. It takes nothing
    /// away: the next call gives them again.
    pub fn read_last(&self, bytes: usize) -> Result<Vec<u8>, HostError> {
        let mut text = vec![0; bytes.clamp(1, self.whole_bytes)];
        let n = ask(READ_ALL, &mut text)?;
        text.truncate(n);
        Ok(text)
    }
}

fn ask(action: libc::c_int, buffer: &mut [u8]) -> Result<usize, HostError> {
    let length = libc::c_int::try_from(buffer.len()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the kernel writes at most `length` bytes to `buffer`, which is valid for as many
    // and lives until the call returns.
    let done = unsafe { libc::klogctl(action, buffer.as_mut_ptr().cast(), length) };
    usize::try_from(done).map_err(|_| HostError::Ask {
        device: "syslog(2)".into(),
        what: "the kernel log",
        source: io::Error::last_os_error(),
    })
}
