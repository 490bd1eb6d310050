//! Arguments of `sexton check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::SignatureArgs;

/// How checks are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum CheckFormat {
    /// For people; the first line has at most 80 bytes
    #[default]
    Text,
    /// For programs: versioned and stable
    Json,
    /// For build servers: one test case for each check
    Junit,
    /// For code scanners: SARIF 2.1.0
    Sarif,
    /// For monitoring plugins: one line with figures, and their exit codes
    Nagios,
    /// For node-problem-detector: one line of at most 80 bytes
    Npd,
    /// For the textfile collector of Prometheus
    Prom,
}

/// The choice of a format for checks.
#[derive(Debug, Clone, Copy, Args)]
pub struct CheckFormatArgs {
    /// How to write the checks
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: CheckFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl CheckFormatArgs {
    /// The format that was asked for.
    pub fn format(self) -> CheckFormat {
        if self.json {
            CheckFormat::Json
        } else {
            self.format
        }
    }
}

/// Arguments of `sexton check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Limits of this fleet, in TOML: `[check]` and the names of checks
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Signatures of your own.
    #[command(flatten)]
    pub signatures: SignatureArgs,
    /// Only these checks, separated by commas
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub only: Vec<String>,
    /// What the node is for, such as kubernetes-node; told by its files if not given
    #[arg(long, value_name = "NAME")]
    pub shape: Option<String>,
    /// Write to this file, all at once, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How to write the checks.
    #[command(flatten)]
    pub format: CheckFormatArgs,
}
