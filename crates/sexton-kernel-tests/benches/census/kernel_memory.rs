//! What the kernel says of its own memory.

use std::fs;

use anyhow::{Context, Result};

/// Bytes the kernel keeps for itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelMemory {
    pub(crate) slab: f64,
    pub(crate) percpu: f64,
}

impl KernelMemory {
    pub(crate) fn read() -> Result<Self> {
        let text = fs::read_to_string("/proc/meminfo").context("cannot read /proc/meminfo")?;
        Ok(Self {
            slab: field(&text, "Slab:")?,
            percpu: field(&text, "Percpu:")?,
        })
    }
}

fn field(text: &str, name: &str) -> Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kib.with_context(|| format!("/proc/meminfo has no {name}"))? * 1024.0)
}
