//! Arguments of `sexton fix`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{FormatArgs, SignatureArgs};

/// How a unit is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum How {
    /// Stop, disable and mask it with all that triggers it
    Mask,
    /// Let it run, but bound its restarts
    Bound,
}

/// Arguments of `sexton fix`.
#[derive(Debug, Args)]
pub struct FixArgs {
    /// Fix what this diagnosis found (`sexton diagnose --json`); if nothing is named, one is made
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Thresholds of this fleet, in TOML, for the diagnosis that is made if nothing is named
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["from", "unit", "origin", "container", "undo"])]
    pub policy: Option<PathBuf>,
    /// Signatures of your own.
    #[command(flatten)]
    pub signatures: SignatureArgs,
    /// Stop this unit, and free the dying cgroups that its path names
    #[arg(long, value_name = "UNIT")]
    pub unit: Vec<String>,
    /// Free the dying cgroups of this origin, as `sexton zombies` shows it
    #[arg(long, value_name = "PATTERN")]
    pub origin: Vec<String>,
    /// Stop this container and its restarts: ecs-agent, or podman:ecs-agent
    #[arg(long, value_name = "[RUNTIME:]NAME")]
    pub container: Vec<String>,
    /// How units are stopped; what fits the risk if not given
    #[arg(long, value_enum, value_name = "HOW")]
    pub how: Option<How>,
    /// Do it, after asking once
    #[arg(long, conflicts_with = "undo")]
    pub apply: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
    /// Take back what a fix did: the last one, or that of this file
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["from", "unit", "origin", "container"])]
    pub undo: Option<Option<PathBuf>>,
    /// Live neighbours below the same parent may lose their cache
    #[arg(long)]
    pub allow_siblings: bool,
    /// The whole node may lose its clean page cache (drop_caches=1)
    #[arg(long)]
    pub allow_global: bool,
    /// If much is left, ask for a reboot by a file that kured watches for
    #[arg(long, value_name = "FILE", num_args = 0..=1,
          default_missing_value = "/var/run/reboot-required")]
    pub reboot_sentinel: Option<PathBuf>,
    /// How to write the result.
    #[command(flatten)]
    pub format: FormatArgs,
}
