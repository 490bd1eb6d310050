//! Boots one guest and waits for its report.
//!
//! The first serial port is the kernel's console, the second carries the report, so that
//! kernel messages cannot garble it. Both are kept in `target/guest/logs`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::cpio::Archive;
use super::parts::Qemu;
use super::report::Report;

/// A boot with its job takes half a minute to a minute; more than this is a hang.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// Room for a small filesystem on which files have true page cache.
const DISK_BYTES: u64 = 64 << 20;

/// Emulation only: it works on every machine, and the same everywhere. Also of the lab's guests.
pub(crate) const EMULATED: &[&str] = &[
    "-machine",
    "q35",
    "-smp",
    "2",
    "-nodefaults",
    "-no-reboot",
    "-display",
    "none",
];

const OPTIONS: &[&str] = &[
    "-cpu",
    "max",
    "-accel",
    "tcg,thread=multi",
    "-m",
    "512M",
    // Two NUMA nodes with a CPU each.
    "-object",
    "memory-backend-ram,id=ram0,size=256M",
    "-object",
    "memory-backend-ram,id=ram1,size=256M",
    "-numa",
    "node,memdev=ram0,cpus=0",
    "-numa",
    "node,memdev=ram1,cpus=1",
];

const INIT: &str = include_str!("init.sh");
const JOB: &str = include_str!("job.sh");

pub(super) struct Machine {
    pub(super) name: String,
    pub(super) qemu: Qemu,
    pub(super) kernel: PathBuf,
    pub(super) initramfs: PathBuf,
    pub(super) disk: PathBuf,
    pub(super) logs: PathBuf,
    /// The kernel hands `name=value` words it does not know to init as environment.
    pub(super) environment: Vec<String>,
}

/// Ends the emulator when we return early. If we are killed, the guest still powers off.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Machine {
    /// Boots, waits for power-off, and reads the report.
    pub(super) fn run(&self) -> Result<Report> {
        let start = Instant::now();
        println!("guest {}: booting {}", self.name, self.kernel.display());
        let report = self.boot().and_then(|()| {
            let log = self.log("report");
            let bytes = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
            Report::parse(&String::from_utf8_lossy(&bytes))
        });
        println!(
            "guest {}: {:.1} s",
            self.name,
            start.elapsed().as_secs_f64()
        );
        if report.is_err() {
            self.show_logs();
        }
        report
    }

    fn boot(&self) -> Result<()> {
        for kind in ["console", "report"] {
            File::create(self.log(kind))
                .with_context(|| format!("cannot create {}", self.log(kind).display()))?;
        }
        let disk = File::create(&self.disk)
            .with_context(|| format!("cannot create {}", self.disk.display()))?;
        disk.set_len(DISK_BYTES)
            .with_context(|| format!("cannot size {}", self.disk.display()))?;
        let command_line = format!(
            "console=ttyS0 quiet panic=-1 {}",
            self.environment.join(" ")
        );
        let mut qemu = self.qemu.command();
        qemu.args(EMULATED)
            .args(OPTIONS)
            .arg("-kernel")
            .arg(&self.kernel)
            .arg("-initrd")
            .arg(&self.initramfs);
        qemu.arg("-serial")
            .arg(format!("file:{}", self.log("console").display()));
        qemu.arg("-serial")
            .arg(format!("file:{}", self.log("report").display()));
        qemu.arg("-drive").arg(format!(
            "file={},format=raw,if=none,id=disk,cache=unsafe",
            self.disk.display()
        ));
        qemu.args([
            "-device",
            "nvme,drive=disk,serial=disk",
            "-append",
            &command_line,
        ]);
        let mut running = Running(qemu.spawn().context("cannot start the emulator")?);
        wait(&mut running.0, TIME_LIMIT)
    }

    fn log(&self, kind: &str) -> PathBuf {
        self.logs.join(format!("{}.{kind}.log", self.name))
    }

    pub(super) fn show_logs(&self) {
        for kind in ["console", "report"] {
            let log = self.log(kind);
            println!("--- {}", log.display());
            match fs::read(&log) {
                Ok(bytes) => println!("{}", String::from_utf8_lossy(&bytes)),
                Err(error) => println!("cannot read it: {error}"),
            }
        }
    }
}

fn wait(child: &mut Child, limit: Duration) -> Result<()> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the emulator")? {
            return if status.success() {
                Ok(())
            } else {
                bail!("the emulator ended with {status}")
            };
        }
        if start.elapsed() > limit {
            bail!("the guest did not power off within {} s", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One initramfs serves every cell.
pub(super) fn write_initramfs(path: &Path, busybox: &Path, sexton: &Path) -> Result<()> {
    let read =
        |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let mut archive = Archive::default();
    for dir in ["bin", "dev", "disk", "etc", "proc", "run", "sys", "tmp"] {
        archive.directory(dir);
    }
    archive.device("dev/console", 5, 1);
    archive.text(
        "etc/passwd",
        "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
    );
    archive.text("etc/group", "root:x:0:\nnogroup:x:65534:\n");
    archive.program("bin/busybox", &read(busybox)?);
    archive.program("bin/sexton", &read(sexton)?);
    archive.program("init", INIT.as_bytes());
    archive.program("job", JOB.as_bytes());
    fs::write(path, archive.finish()).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn check(script: &str, limit: Duration, expected: Option<&str>) {
        let mut running = Running(Command::new("sh").args(["-c", script]).spawn().unwrap());
        let error = wait(&mut running.0, limit)
            .err()
            .map(|error| error.to_string());
        assert_eq!(error.as_deref(), expected);
    }

    #[test]
    fn a_guest_that_hangs_is_ended() {
        check(
            "exec sleep 600",
            Duration::ZERO,
            Some("the guest did not power off within 0 s"),
        );
    }

    #[test]
    fn an_emulator_that_fails_is_an_error() {
        check(
            "exit 3",
            TIME_LIMIT,
            Some("the emulator ended with exit status: 3"),
        );
        check("exit 0", TIME_LIMIT, None);
    }
}
