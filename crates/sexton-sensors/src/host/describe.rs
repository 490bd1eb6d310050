//! Puts together the description of a machine from its files.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use sexton_host::{Host, HostError};
use sexton_model::text::escape;

use super::parse;

/// Longer values are cut: some files may hold anything.
const MAX_LENGTH: usize = 4096;

/// Files of procfs with one value each, and the entry they become.
const PROC: [(&str, &str); 9] = [
    ("sys/kernel/osrelease", "kernel_release"),
    ("sys/kernel/version", "kernel_version"),
    (
        "sys/kernel/watchdog_thresh",
        "sysctl_kernel_watchdog_thresh",
    ),
    (
        "sys/kernel/softlockup_panic",
        "sysctl_kernel_softlockup_panic",
    ),
    (
        "sys/kernel/hung_task_timeout_secs",
        "sysctl_kernel_hung_task_timeout_secs",
    ),
    (
        "sys/net/core/netdev_budget",
        "sysctl_net_core_netdev_budget",
    ),
    (
        "sys/net/core/netdev_budget_usecs",
        "sysctl_net_core_netdev_budget_usecs",
    ),
    ("sys/net/core/dev_weight", "sysctl_net_core_dev_weight"),
    ("sys/vm/swappiness", "sysctl_vm_swappiness"),
];

/// Files of sysfs with one value each.
const SYS: [(&str, &str); 5] = [
    ("class/dmi/id/sys_vendor", "machine_vendor"),
    ("class/dmi/id/product_name", "machine_product"),
    ("class/dmi/id/bios_vendor", "machine_bios_vendor"),
    ("hypervisor/type", "hypervisor_type"),
    ("devices/system/cpu/online", "cpus_online"),
];

/// Switches of the command line that change what happens to cores, cgroups and pressure.
const SWITCHES: [&str; 13] = [
    "cgroup.memory",
    "cgroup_disable",
    "cgroup_no_v1",
    "idle",
    "irqaffinity",
    "isolcpus",
    "nohz_full",
    "nosoftlockup",
    "nowatchdog",
    "psi",
    "rcu_nocbs",
    "systemd.unified_cgroup_hierarchy",
    "threadirqs",
];

/// Keys of os-release(5) that tell one distribution and image from another.
const RELEASE_KEYS: [&str; 7] = [
    "ID",
    "ID_LIKE",
    "VERSION_ID",
    "VARIANT_ID",
    "PRETTY_NAME",
    "IMAGE_ID",
    "IMAGE_VERSION",
];

/// Files that builders of images leave behind, and the entry they become.
const IMAGE_FILES: [(&str, &str); 4] = [
    ("/etc/cloud/build.info", "image_cloud_build_info"),
    ("/etc/image-id", "image_image_id"),
    ("/etc/ami-id", "image_ami_id"),
    ("/etc/eks/release", "image_eks_release"),
];

/// A description in the making: what is known, and what could not be read.
pub(super) struct Description<'h> {
    host: &'h Host,
    pub(super) entries: BTreeMap<String, String>,
    pub(super) unread: Vec<HostError>,
}

impl<'h> Description<'h> {
    /// Reads all there is.
    pub(super) fn of(host: &'h Host) -> Self {
        let mut description = Self {
            host,
            entries: BTreeMap::new(),
            unread: Vec::new(),
        };
        description.files(&PROC, |host, below| host.proc(below));
        description.command_line();
        description.distribution();
        description.files(&SYS, |host, below| host.sys(below));
        description.hypervisor();
        description.image();
        description
    }

    /// The text of a file; `None` when it is not there or not to be had, which is noted.
    fn text(&mut self, path: Result<PathBuf, HostError>) -> Option<String> {
        match path.and_then(|path| self.host.read(path)) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => {
                if !is_absent(&error) {
                    self.unread.push(error);
                }
                None
            }
        }
    }

    fn add(&mut self, key: impl Into<String>, value: &str) {
        let value: String = value.trim().chars().take(MAX_LENGTH).collect();
        let entry = self.entries.entry(key.into());
        entry.or_insert_with(|| escape(value.as_bytes()));
    }

    fn files(
        &mut self,
        files: &[(&str, &'static str)],
        path: fn(&Host, &str) -> Result<PathBuf, HostError>,
    ) {
        for (below, key) in files {
            if let Some(text) = self.text(path(self.host, below)) {
                self.add(*key, &text);
            }
        }
    }

    fn command_line(&mut self) {
        let Some(line) = self.text(self.host.proc("cmdline")) else {
            return;
        };
        self.add("command_line", &parse::without_secrets(&line));
        for switch in SWITCHES {
            if let Some(value) = parse::switch(&line, switch) {
                self.add(format!("boot_{}", switch.replace('.', "_")), value);
            }
        }
    }

    fn distribution(&mut self) {
        let places = ["/etc/os-release", "/usr/lib/os-release"];
        let Some(text) = places.iter().find_map(|place| self.text(Ok(place.into()))) else {
            return;
        };
        for (key, value) in parse::assignments(&text) {
            if RELEASE_KEYS.contains(&key) {
                self.add(format!("distribution_{}", key.to_ascii_lowercase()), &value);
            }
        }
    }

    fn hypervisor(&mut self) {
        let Some(cpuinfo) = self.text(self.host.proc("cpuinfo")) else {
            return;
        };
        if let Some(is_virtual) = parse::is_virtual(&cpuinfo) {
            self.add("hypervisor_flag", if is_virtual { "yes" } else { "no" });
        }
    }

    fn image(&mut self) {
        match self.host.read_text("/etc/machine-id") {
            Ok(id) => self.add("image_machine_id", parse::machine_id(&id)),
            Err(error) if is_absent(&error) => self.add("image_machine_id", "absent"),
            Err(error) => self.unread.push(error),
        }
        for (path, key) in IMAGE_FILES {
            if let Some(text) = self.text(Ok(path.into())) {
                // Several lines become one, so that a list of entries stays a list.
                let lines: Vec<&str> = text.lines().map(str::trim).collect();
                self.add(key, &lines.join("; "));
            }
        }
    }
}

/// Whether a file is not there because this machine has no such thing.
pub(super) fn is_absent(error: &HostError) -> bool {
    matches!(error, HostError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
}
