//! Boots a guest with systemd, an engine for containers, the chosen kernel and cgroup version.
//!
//! Its first disk is the tree that is also booted in namespaces, the second one the job. The
//! serial port is its console; lines of the job that begin with a mark tell how far it is.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use sexton_lab::job;
use sexton_lab::script::OUT;

use super::image;
use crate::guest::boot::EMULATED;
use crate::guest::{Cell, Cgroup, parts};
use crate::{command, workspace};

/// A guest that takes longer hangs. Its own clock does not know how busy this machine is, so
/// that this is long.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Docker wants the first, a network of its own the second.
const MODULES: &[&str] = &["overlay", "veth"];

/// What tells the lines of a job among those of the kernel.
const MARK: &str = "lab: ";

const INIT: &str = include_str!("init.sh");

/// What a guest goes by.
#[derive(Clone, Copy)]
pub(super) enum Clock {
    /// Its clock counts instructions, 500 million to a second of all its cores together, and not
    /// the time of a machine that others use too: how busy that is cannot be seen inside. While
    /// nothing is to be done it leaps to what comes next.
    Counts,
    /// It is as quick as this machine can, for people.
    Runs,
}

impl Clock {
    fn options(self) -> &'static [&'static str] {
        match self {
            Clock::Counts => &[
                "-accel",
                "tcg,thread=single",
                "-icount",
                "shift=1,sleep=off",
            ],
            Clock::Runs => &["-accel", "tcg,thread=multi"],
        }
    }
}

/// The processor is an old one: with all that an emulator can do (`max`) programs use wide
/// registers and the kernel deeper page tables, and 13 containers of Docker took 117 s of a core
/// instead of 83.
const OPTIONS: &[&str] = &[
    "-cpu",
    "Nehalem",
    "-m",
    "2G",
    "-device",
    "nvme,drive=root,serial=root",
    "-device",
    "nvme,drive=job,serial=job",
];

/// What all guests are made of; nothing is fetched before one is wanted.
pub(super) struct Guests {
    tree: PathBuf,
    store: OnceCell<parts::Store>,
    /// By the name of the kernel: asking apt takes seconds.
    kernels: RefCell<BTreeMap<&'static str, Kernel>>,
}

/// The parts of a guest that are fetched.
#[derive(Clone)]
struct Kernel {
    image: PathBuf,
    modules: PathBuf,
    qemu: parts::Qemu,
    busybox: PathBuf,
}

/// Ends the emulator when we return early.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Guests {
    pub(super) fn new(tree: &Path) -> Guests {
        Guests {
            tree: tree.to_owned(),
            store: OnceCell::new(),
            kernels: RefCell::default(),
        }
    }

    /// Fetches and makes all that a guest needs, before several want it at once.
    pub(super) fn prepare(&self, cell: &Cell) -> Result<()> {
        image::initramfs(&self.kernel(cell)?.busybox)?;
        image::root(&self.tree)?;
        Ok(())
    }

    /// The same for somebody else, with what was fetched so far.
    pub(super) fn another(&self) -> Guests {
        Guests {
            tree: self.tree.clone(),
            store: OnceCell::new(),
            kernels: self.kernels.clone(),
        }
    }

    fn kernel(&self, cell: &Cell) -> Result<Kernel> {
        let name = cell.kernel_name();
        if let Some(kernel) = self.kernels.borrow().get(name) {
            return Ok(kernel.clone());
        }
        let store = self.store()?;
        let kernel = Kernel {
            image: store.kernel(cell.kernel())?,
            modules: store.modules(cell.kernel(), MODULES)?,
            qemu: store.qemu()?,
            busybox: store.busybox()?,
        };
        self.kernels.borrow_mut().insert(name, kernel.clone());
        Ok(kernel)
    }

    fn store(&self) -> Result<&parts::Store> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        ensure!(std::env::consts::ARCH == "x86_64", "guests are x86_64 only");
        let store = parts::Store::open(&workspace::target_dir().join("guest"))?;
        Ok(self.store.get_or_init(|| store))
    }

    /// Plays a job, and brings its output into the folder, also when it failed.
    pub(super) fn play(
        &self,
        cell: &Cell,
        programs: &[PathBuf],
        script: &str,
        folder: &Path,
        tell: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let console = folder.join("console");
        let serial = format!("file:{}", console.display());
        let disks = self.disks(cell, programs, &[], script, folder)?;
        image::warm(&image::root(&self.tree)?)?;
        image::warm(&disks.job)?;
        let mut qemu = self.command(cell, &disks, &serial, Clock::Counts)?;
        let mut running = Running(
            qemu.stdin(Stdio::null())
                .spawn()
                .context("cannot start the emulator")?,
        );
        let ended = wait(&mut running.0, &console, tell);
        drop(running);
        let brought = image::bring_back(&disks.job, OUT, folder);
        let done = image::bring_back(&disks.job, job::DONE, folder);
        disks.remove();
        ended.and(brought)?;
        done.context("the job failed: the console and out/journal.txt say why")
    }

    /// Makes the disks of one run.
    pub(super) fn disks(
        &self,
        cell: &Cell,
        programs: &[PathBuf],
        units: &[(&str, &str)],
        script: &str,
        folder: &Path,
    ) -> Result<Disks> {
        let place = folder.join("job");
        fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
        job::furnish(&place, units, programs, script)?;
        let init = place.join("init");
        fs::write(&init, INIT).with_context(|| format!("cannot write {}", init.display()))?;
        let modules = self.kernel(cell)?.modules;
        let mut copy = Command::new("cp");
        command::output(copy.arg("-r").arg(&modules).arg(place.join("modules")))?;
        let disks = Disks {
            root: folder.join("root.qcow2"),
            job: folder.join("job.ext4"),
        };
        image::job(&disks.job, &place)?;
        fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?;
        image::overlay(&image::root(&self.tree)?, &disks.root)?;
        Ok(disks)
    }

    /// The emulator with these disks; the serial port leads to `serial`.
    pub(super) fn command(
        &self,
        cell: &Cell,
        disks: &Disks,
        serial: &str,
        clock: Clock,
    ) -> Result<Command> {
        let kernel = self.kernel(cell)?;
        let mut qemu = kernel.qemu.command();
        qemu.args(clock.options())
            .args(EMULATED)
            .args(OPTIONS)
            .arg("-kernel")
            .arg(kernel.image)
            .arg("-initrd")
            .arg(image::initramfs(&kernel.busybox)?)
            .args(["-append", &command_line(cell.cgroup()), "-serial", serial])
            .arg("-drive")
            .arg(drive(&disks.root, "qcow2", "root"))
            .arg("-drive")
            .arg(drive(&disks.job, "raw", "job"));
        Ok(qemu)
    }
}

/// The disks of one run.
pub(super) struct Disks {
    pub(super) root: PathBuf,
    pub(super) job: PathBuf,
}

impl Disks {
    /// What was on them is brought back, or of no use.
    pub(super) fn remove(&self) {
        for disk in [&self.root, &self.job] {
            fs::remove_file(disk).ok();
        }
    }
}

fn drive(file: &Path, format: &str, id: &str) -> String {
    format!(
        "file={},format={format},if=none,id={id},cache=unsafe",
        file.display()
    )
}

/// Debian's kernels turn AppArmor on, and then Docker wants its tools. On a busy machine the
/// timer of an emulator may be too late for the kernel's test of it.
fn command_line(cgroup: Cgroup) -> String {
    let hierarchy = match cgroup {
        Cgroup::V1 => {
            "systemd.unified_cgroup_hierarchy=0 systemd.legacy_systemd_cgroup_controller=1"
        }
        Cgroup::V2 => "systemd.unified_cgroup_hierarchy=1",
    };
    format!(
        "console=ttyS0 quiet panic=-1 apparmor=0 mitigations=off no_timer_check systemd.show_status=0 {hierarchy}"
    )
}

/// Tells the job's lines as they come, until the guest has powered off.
fn wait(child: &mut Child, console: &Path, tell: &mut dyn FnMut(&str)) -> Result<()> {
    let start = Instant::now();
    let mut n_told = 0;
    loop {
        let status = child.try_wait().context("cannot wait for the emulator")?;
        let bytes = fs::read(console).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .filter_map(|line| line.trim_end().strip_prefix(MARK))
            .collect();
        lines.iter().skip(n_told).for_each(|line| tell(line));
        n_told = lines.len();
        match status {
            Some(status) if status.success() => return Ok(()),
            Some(status) => bail!("the emulator ended with {status}"),
            None if start.elapsed() > LIMIT => {
                bail!("the guest did not power off within {} s", LIMIT.as_secs())
            }
            None => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}
