//! Arguments of `sexton fleet`: those of `sexton-fleet`, handed on as they are.

use std::ffi::OsString;

use clap::Args;

/// Arguments of `sexton fleet`.
#[derive(Debug, Args)]
pub struct FleetArgs {
    /// The command of sexton-fleet, and its arguments
    #[arg(
        value_name = "ARGS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub args: Vec<OsString>,
}
