//! `sexton kubernetes`

use std::io::{self, Write as _};

use anyhow::{Context, Result};
use sexton_kubernetes::{Nodes, clean_up};

use super::agent::config::kubernetes::KubernetesConfig;
use super::agent::kubernetes::access;
use crate::cli::kubernetes::{CleanupArgs, KubernetesCommand};
use crate::exit::Exit;

/// Does what was asked for.
pub fn run(command: &KubernetesCommand) -> Result<Exit> {
    match command {
        KubernetesCommand::Cleanup(args) => cleanup(args),
    }
}

fn cleanup(args: &CleanupArgs) -> Result<Exit> {
    let config = KubernetesConfig {
        kubeconfig: args.kubeconfig.clone(),
        node: args.node.clone(),
        ..KubernetesConfig::default()
    };
    let nodes = match args.all_nodes {
        true => Nodes::All,
        false => Nodes::Named(config.node_name()?),
    };
    let cleaned = clean_up(access(&config)?, &nodes, env!("SEXTON_VERSION"))
        .context("cannot remove the conditions of sexton")?;
    let mut out = io::stdout().lock();
    for (node, n_removed) in &cleaned {
        writeln!(out, "{node}: removed {n_removed} conditions")?;
    }
    if cleaned.is_empty() {
        writeln!(out, "no node has a condition of sexton")?;
    }
    Ok(Exit::NothingFound)
}
