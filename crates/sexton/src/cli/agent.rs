//! Arguments of the agent's commands.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::FormatArgs;

/// Where an agent without a configuration file listens for `sexton status`.
pub const SOCKET: &str = "/run/sexton/agent.sock";

/// Arguments of `sexton agent`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AgentArgs {
    /// What to do instead of running
    #[command(subcommand)]
    pub command: Option<AgentCommand>,
    /// The configuration, in TOML [default: /etc/sexton/agent.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Other things that `sexton agent` does.
#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Check a configuration file, and say what is wrong with it, by line and key
    CheckConfig {
        /// The configuration
        file: PathBuf,
    },
    /// Act on one finding, as the configuration allows; started by sexton-remedy.socket
    ///
    /// Standard input is the socket of the one who asks. The configuration must belong to root.
    #[command(hide = true)]
    Act {
        /// The configuration, in TOML [default: /etc/sexton/agent.toml]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// The user besides root who may ask
        #[arg(long, value_name = "NAME", default_value = "sexton")]
        user: String,
    },
}

/// Which agent is meant.
#[derive(Debug, Clone, Args)]
pub struct WhichAgent {
    /// The socket of the agent
    #[arg(long = "agent", value_name = "SOCKET", default_value = SOCKET)]
    pub socket: PathBuf,
}

/// Arguments of `sexton status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Which agent is meant.
    #[command(flatten)]
    pub agent: WhichAgent,
    /// How to write the result.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// Arguments of `sexton incidents`.
#[derive(Debug, Args)]
pub struct IncidentsArgs {
    /// Which agent is meant.
    #[command(flatten)]
    pub agent: WhichAgent,
    /// How to write the result.
    #[command(flatten)]
    pub format: FormatArgs,
}
