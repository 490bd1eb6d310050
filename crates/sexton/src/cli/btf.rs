//! Where BPF programs find the types of a kernel that does not describe them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use sexton_host::Host;

/// Where to find types of the kernel.
#[derive(Debug, Clone, Args)]
pub struct BtfArgs {
    /// Types of this very kernel (BTF), where /sys/kernel/btf/vmlinux is missing; or a folder with
    /// RELEASE.btf for each kernel
    #[arg(long, value_name = "FILE")]
    btf: Option<PathBuf>,
}

impl BtfArgs {
    /// Has programs that are loaded from now on use it.
    pub fn apply(&self) -> Result<()> {
        match &self.btf {
            Some(place) => take_types_from(&Host::live()?, place),
            None => Ok(()),
        }
    }
}

/// Has programs that are loaded from now on take the kernel's types from a file, or from the one in
/// a folder that was made for the kernel that runs.
pub fn take_types_from(host: &Host, place: &Path) -> Result<()> {
    let file = match place.is_dir() {
        true => sexton_sensors::types_in_folder(host, place)?,
        false => place.to_owned(),
    };
    // Loading tells late, and of each program.
    std::fs::File::open(&file).with_context(|| format!("cannot open {}", file.display()))?;
    sexton_sensors::take_types_from(file);
    Ok(())
}
