//! Reads a policy file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use sexton_analysis::PolicyFile;

/// A policy is a page; more is a mistake in the name of the file.
const MAX_BYTES: u64 = 1 << 20;

/// The policy of a file, or the one that holds without a file.
pub fn read(file: Option<&Path>) -> Result<PolicyFile> {
    let Some(path) = file else {
        return Ok(PolicyFile::default());
    };
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        .with_context(|| format!("cannot read {}", path.display()))?;
    if text.len() as u64 > MAX_BYTES {
        bail!("{} is larger than a policy may be (1 MiB)", path.display());
    }
    let parsed = PolicyFile::parse(&text);
    parsed.map_err(|error| anyhow::anyhow!("{}:{}: {}", path.display(), error.line, error.text))
}
