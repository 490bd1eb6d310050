//! Where BPF programs find the types of a kernel that does not describe them.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

/// Where to find types of the kernel.
#[derive(Debug, Clone, Args)]
pub struct BtfArgs {
    /// Types of this very kernel (BTF), where /sys/kernel/btf/vmlinux is missing
    #[arg(long, value_name = "FILE")]
    btf: Option<PathBuf>,
}

impl BtfArgs {
    /// Has programs that are loaded from now on use it.
    pub fn apply(&self) -> Result<()> {
        let Some(file) = &self.btf else {
            return Ok(());
        };
        // Loading tells late, and of each program.
        std::fs::File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
        sexton_sensors::take_types_from(file.clone());
        Ok(())
    }
}
