//! Arguments of the commands that a cluster needs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::FormatArgs;
use super::agent::WhichAgent;

/// What `sexton kubernetes` does.
#[derive(Debug, Subcommand)]
pub enum KubernetesCommand {
    /// Remove the conditions of sexton from one node or from all
    ///
    /// For the time after an uninstall: no agent renews them any more. Events go by themselves,
    /// after an hour.
    Cleanup(CleanupArgs),
}

/// Arguments of `sexton kubernetes cleanup`.
#[derive(Debug, Args)]
pub struct CleanupArgs {
    /// The node [default: NODE_NAME, else the name of the host]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// All nodes of the cluster; needs the right to list them
    #[arg(long, conflicts_with = "node")]
    pub all_nodes: bool,
    /// How to reach the API server [default: the service account of this pod]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// Arguments of `sexton verify-boot`.
#[derive(Debug, Args)]
pub struct VerifyBootArgs {
    /// Which agent is meant.
    #[command(flatten)]
    pub agent: WhichAgent,
    /// How to write the result.
    #[command(flatten)]
    pub format: FormatArgs,
}
