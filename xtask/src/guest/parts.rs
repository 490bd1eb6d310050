//! What a guest is made of: a kernel, busybox, and an emulator. Each is fetched once per
//! package version and then found in `target/guest`.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, ensure};

use super::apt::{Apt, Package, recreate};
use crate::command;

/// A kernel as Debian packages it: `start`, then a number that grows, then `END`.
pub(crate) struct Kernel {
    pub(super) name: &'static str,
    start: &'static str,
    /// The package with its modules starts so, if they have one of their own.
    modules: Option<&'static str>,
    /// It has the multi-generation LRU, so there are two kinds of page lists.
    pub(super) has_generations: bool,
    /// Page cache holds a removed cgroup. If not, it moves to the parent.
    pub(super) cache_holds: bool,
    /// Its cgroup2 has `memory.reclaim`, as Linux has since 5.19.
    pub(super) has_reclaim: bool,
}

pub(super) const LINUX_5_10: Kernel = Kernel {
    name: "5.10",
    modules: None,
    start: "linux-image-5.10.0-",
    has_generations: false,
    cache_holds: true,
    has_reclaim: false,
};
pub(super) const LINUX_6_1: Kernel = Kernel {
    name: "6.1",
    modules: None,
    start: "linux-image-6.1.0-",
    has_generations: true,
    cache_holds: true,
    has_reclaim: true,
};
pub(super) const LINUX_6_12: Kernel = Kernel {
    name: "6.12",
    modules: None,
    start: "linux-image-6.12.",
    has_generations: true,
    cache_holds: true,
    has_reclaim: true,
};
/// The newest there is. Its image has a package of its own.
pub(super) const LINUX_7: Kernel = Kernel {
    name: "7",
    modules: Some("linux-modules-7."),
    start: "linux-binary-7.",
    has_generations: true,
    cache_holds: false,
    has_reclaim: true,
};

/// The cloud kernels are small, and have ext4 and NVMe built in, so they need no modules.
/// Newer builds are there unsigned first, which is as good for a guest.
const ENDS: &[&str] = &["-cloud-amd64", "-cloud-amd64-unsigned"];

/// qemu 7.2 miscomputes flags under emulation, and kernel 6.12 dies of it.
const OLDEST_QEMU: u32 = 9;
const QEMU: &str = "qemu-system-x86_64";

pub(crate) struct Store {
    dir: PathBuf,
    apt: Apt,
    /// Asking apt takes a second, so it is asked once.
    qemu: OnceCell<Qemu>,
    busybox: OnceCell<PathBuf>,
}

impl Store {
    pub(crate) fn open(dir: &Path) -> Result<Store> {
        let apt = Apt::open(&dir.join("apt"))?;
        Ok(Store {
            dir: dir.to_owned(),
            apt,
            qemu: OnceCell::new(),
            busybox: OnceCell::new(),
        })
    }

    /// The image of the newest such kernel.
    pub(crate) fn kernel(&self, kernel: &Kernel) -> Result<PathBuf> {
        let names = self.apt.names(kernel.start)?;
        let name = newest(&names, kernel.start).ok_or_else(|| {
            self.apt
                .explain(anyhow!("apt finds no package {}…{}", kernel.start, ENDS[0]))
        })?;
        let package = self.apt.candidate(name)?;
        let dir = self.once(&package, |dir| {
            let unpacked = dir.join("unpacked");
            self.apt.unpack(&package, &unpacked)?;
            let image = image_below(&unpacked)?;
            fs::rename(&image, dir.join("vmlinuz")).context("cannot keep the kernel image")?;
            fs::remove_dir_all(&unpacked).context("cannot remove the rest of the kernel package")
        })?;
        Ok(dir.join("vmlinuz"))
    }

    /// These modules of the newest such kernel, in a folder.
    pub(crate) fn modules(&self, kernel: &Kernel, wanted: &[&str]) -> Result<PathBuf> {
        let start = kernel.modules.unwrap_or(kernel.start);
        let names = self.apt.names(start)?;
        let name = newest(&names, start).ok_or_else(|| {
            self.apt
                .explain(anyhow!("apt finds no package {start}…{}", ENDS[0]))
        })?;
        let package = self.apt.candidate(name)?;
        let key = format!("{}_{}", package.key(), wanted.join("+"));
        self.once_as(&key, |dir| {
            let unpacked = dir.join("unpacked");
            self.apt.unpack(&package, &unpacked)?;
            for module in wanted {
                let file = module_below(&unpacked, &format!("{module}.ko"))
                    .with_context(|| format!("{name} holds no module {module}"))?;
                let name = file.file_name().unwrap_or_default();
                fs::rename(&file, dir.join(name)).context("cannot keep a module")?;
            }
            fs::remove_dir_all(&unpacked).context("cannot remove the rest of the kernel package")
        })
    }

    pub(crate) fn busybox(&self) -> Result<PathBuf> {
        if let Some(busybox) = self.busybox.get() {
            return Ok(busybox.clone());
        }
        let package = self.apt.candidate("busybox-static")?;
        let dir = self.once(&package, |dir| self.apt.unpack(&package, dir))?;
        // It moved from /bin to /usr/bin between two Debian releases.
        let places = ["bin/busybox", "usr/bin/busybox"].map(|place| dir.join(place));
        let busybox = places
            .into_iter()
            .find(|place| place.is_file())
            .context("busybox-static holds no busybox")?;
        Ok(self.busybox.get_or_init(|| busybox).clone())
    }

    /// The machine's own emulator if it is new enough, else one unpacked from Debian.
    pub(crate) fn qemu(&self) -> Result<Qemu> {
        if let Some(qemu) = self.qemu.get() {
            return Ok(qemu.clone());
        }
        let host = Qemu::of_this_machine();
        let qemu = if host.is_new_enough().is_ok() {
            host
        } else {
            self.unpacked_qemu()?
        };
        qemu.is_new_enough()?;
        Ok(self.qemu.get_or_init(|| qemu).clone())
    }

    fn unpacked_qemu(&self) -> Result<Qemu> {
        let package = self.apt.candidate("qemu-system-x86")?;
        let dir = self.once(&package, |dir| {
            self.apt.unpack_with_dependencies(&package, dir)
        })?;
        Ok(Qemu::below(&dir))
    }

    /// The directory of this package version, made by `make` if it is not there yet.
    fn once(&self, package: &Package, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        self.once_as(&package.key(), make)
    }

    fn once_as(&self, key: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let dir = self.dir.join(key);
        if !dir.is_dir() {
            // Only a complete directory gets the name, so that a broken download is not kept.
            let partial = self.dir.join("partial");
            recreate(&partial)?;
            make(&partial)?;
            fs::rename(&partial, &dir)
                .with_context(|| format!("cannot create {}", dir.display()))?;
        }
        Ok(dir)
    }
}

/// The name with the highest numbers between its start and its end.
fn newest<'a>(names: &'a [String], start: &str) -> Option<&'a str> {
    let newest_with = |end: &str| {
        let build = |name: &'a String| {
            let middle = name.strip_prefix(start)?.strip_suffix(end)?;
            let rest = middle.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            let is_plain =
                rest.len() < middle.len() && (rest.is_empty() || rest.starts_with("+deb"));
            let numbers = middle
                .split(|c: char| !c.is_ascii_digit())
                .filter_map(|number| number.parse::<u32>().ok());
            is_plain.then(|| (numbers.collect::<Vec<u32>>(), name.as_str()))
        };
        names.iter().filter_map(build).max().map(|(_, name)| name)
    };
    ENDS.iter().find_map(|end| newest_with(end))
}

/// It moved from /boot to the directory of the kernel's modules.
fn image_below(unpacked: &Path) -> Result<PathBuf> {
    if let Ok(image) = only(&unpacked.join("boot"), "vmlinuz-") {
        return Ok(image);
    }
    let modules = only(&unpacked.join("usr/lib/modules"), "")?;
    only(&modules, "vmlinuz")
}

/// A module whose name begins so; it may be packed.
fn module_below(dir: &Path, start: &str) -> Option<PathBuf> {
    let paths: Vec<PathBuf> = fs::read_dir(dir)
        .ok()?
        .flatten()
        .map(|e| e.path())
        .collect();
    let is_it = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(start)
    };
    let found = paths.iter().find(is_it).cloned();
    let is_folder = |path: &&PathBuf| path.is_dir() && !path.is_symlink();
    found.or_else(|| {
        let mut folders = paths.iter().filter(is_folder);
        folders.find_map(|folder| module_below(folder, start))
    })
}

fn only(dir: &Path, start: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    let is_it = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(start))
    };
    let found = entries.flatten().map(|entry| entry.path()).find(is_it);
    found.with_context(|| format!("no {start}* in {}", dir.display()))
}

/// How to start the emulator.
#[derive(Clone)]
pub(crate) struct Qemu {
    program: PathBuf,
    args: Vec<OsString>,
    module_dir: Option<PathBuf>,
}

impl Qemu {
    fn of_this_machine() -> Qemu {
        Qemu {
            program: QEMU.into(),
            args: Vec::new(),
            module_dir: None,
        }
    }

    /// Packages unpacked below `root`: run by their own loader with their own libraries,
    /// so that it does not matter what the machine has.
    fn below(root: &Path) -> Qemu {
        const LIBRARIES: &[&str] = &["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"];
        const FIRMWARE: &[&str] = &["usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"];
        let libraries: Vec<String> = LIBRARIES
            .iter()
            .map(|dir| root.join(dir).display().to_string())
            .collect();
        let mut args: Vec<OsString> = vec!["--library-path".into(), libraries.join(":").into()];
        args.push(root.join("usr/bin").join(QEMU).into());
        for dir in FIRMWARE {
            args.extend(["-L".into(), root.join(dir).into()]);
        }
        let program = root.join(LIBRARIES[0]).join("ld-linux-x86-64.so.2");
        Qemu {
            program,
            args,
            module_dir: Some(root.join("usr/lib/x86_64-linux-gnu/qemu")),
        }
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        if let Some(dir) = &self.module_dir {
            command.env("QEMU_MODULE_DIR", dir);
        }
        command
    }

    fn is_new_enough(&self) -> Result<()> {
        let text = command::output(self.command().arg("--version"))?;
        let major = major(&text).with_context(|| format!("{QEMU} --version says {text:?}"))?;
        ensure!(
            major >= OLDEST_QEMU,
            "{QEMU} is version {major}, older than {OLDEST_QEMU}"
        );
        Ok(())
    }
}

/// The number in `QEMU emulator version 10.0.2 (…)`.
fn major(version: &str) -> Option<u32> {
    version
        .split_once(" version ")?
        .1
        .split('.')
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kernel: &Kernel, names: &[&str], expected: Option<&str>) {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        assert_eq!(newest(&names, kernel.start), expected);
    }

    #[test]
    fn the_newest_kernel_is_the_highest_number_not_the_last_word() {
        check(
            &LINUX_5_10,
            &[
                "linux-image-5.10.0-9-cloud-amd64",
                "linux-image-5.10.0-46-cloud-amd64",
                "linux-image-5.10.0-46-cloud-amd64-dbg",
            ],
            Some("linux-image-5.10.0-46-cloud-amd64"),
        );
        check(
            &LINUX_6_12,
            &[
                "linux-image-6.12.95+deb12-cloud-amd64",
                "linux-image-6.12.115+deb12-cloud-amd64",
                "linux-image-6.12.90+deb12.1-cloud-amd64",
            ],
            Some("linux-image-6.12.115+deb12-cloud-amd64"),
        );
    }

    #[test]
    fn the_newest_kernel_of_all_has_a_package_of_its_own() {
        check(
            &LINUX_7,
            &[
                "linux-binary-7.2.9+deb14-cloud-amd64",
                "linux-binary-7.2.13+deb14-cloud-amd64",
                "linux-binary-7.2.13+deb14-rt-amd64",
            ],
            Some("linux-binary-7.2.13+deb14-cloud-amd64"),
        );
    }

    #[test]
    fn backports_to_an_older_release_are_left_out() {
        check(
            &LINUX_6_1,
            &[
                "linux-image-6.1.0-0.deb11.52-cloud-amd64",
                "linux-image-6.1.0-7-cloud-amd64",
            ],
            Some("linux-image-6.1.0-7-cloud-amd64"),
        );
        check(
            &LINUX_6_1,
            &[
                "linux-image-6.1.0-0.deb11.52-cloud-amd64",
                "linux-image-6.1.0-54-amd64",
            ],
            None,
        );
    }

    #[test]
    fn an_unsigned_kernel_will_do_when_there_is_no_other() {
        let unsigned = "linux-image-6.12.115+deb12-cloud-amd64-unsigned";
        check(&LINUX_6_12, &[unsigned], Some(unsigned));
    }

    #[test]
    fn qemu_tells_its_version() {
        assert_eq!(
            major("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)\nCopyright"),
            Some(10)
        );
        assert_eq!(major("something else"), None);
    }
}
