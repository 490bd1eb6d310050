//! Signatures of a run, an argument of all commands that judge.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use sexton_signatures::Signatures;

use crate::signatures;

/// Signatures besides those that sexton brings.
#[derive(Debug, Default, Args)]
pub struct SignatureArgs {
    /// Judge with these signatures too: a folder of TOML files, or one; may be repeated
    #[arg(long, value_name = "DIR")]
    pub signatures: Vec<PathBuf>,
}

impl SignatureArgs {
    /// All signatures of this run.
    pub fn read(&self) -> Result<Arc<Signatures>> {
        signatures::read(&self.signatures)
    }
}
