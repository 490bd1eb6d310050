//! `sexton profile`: one file per verb.

mod export;
mod flame;
mod heatmap;
mod import;
mod input;
mod marks;
mod output;
mod progress;
mod symbols;
mod top;

use anyhow::Result;

use crate::cli::profile::{ProfileArgs, ProfileCommand};
use crate::exit::Exit;

/// Does what was asked for.
pub fn run(args: &ProfileArgs) -> Result<Exit> {
    match &args.command {
        ProfileCommand::Import(args) => import::run(args),
        ProfileCommand::Export(args) => export::run(args),
        ProfileCommand::Heatmap(args) => heatmap::run(args),
        ProfileCommand::Flame(args) => flame::run(args),
        ProfileCommand::Top(args) => top::run(args),
    }
}
