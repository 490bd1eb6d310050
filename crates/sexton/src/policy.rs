//! Reads what a node is judged by: a policy file, and signatures besides those that sexton brings.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sexton_analysis::{Policy, PolicyFile};

use crate::signatures;

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

/// The thresholds of a file and the signatures of these places, to judge with.
pub fn rules(file: Option<&Path>, signatures: &[PathBuf]) -> Result<Policy> {
    let mut rules = read(file)?.rules;
    if !signatures.is_empty() {
        rules.judge_with(signatures::read(signatures)?);
    }
    Ok(rules)
}
