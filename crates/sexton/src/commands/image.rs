//! `sexton image`

mod audit;
mod diff;
mod fix;
pub mod img001_policy;
mod judged;
mod plan;
mod undo;
mod verify;

use anyhow::Result;

use crate::cli::{ImageArgs, ImageCommand};
use crate::exit::Exit;

/// Does what was asked with an image.
pub fn run(args: &ImageArgs) -> Result<Exit> {
    match &args.command {
        ImageCommand::Audit(args) => audit::run(args),
        ImageCommand::Fix(args) => fix::run(args),
        ImageCommand::Undo(args) => undo::run(args),
        ImageCommand::Verify(args) => verify::run(args),
        ImageCommand::Diff(args) => diff::run(args),
    }
}
