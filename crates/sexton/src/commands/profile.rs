//! `sexton profile`: one file per verb.

mod diff;
mod export;
mod flame;
mod heatmap;
mod import;
mod input;
mod marks;
mod output;
mod progress;
mod record;
mod symbols;
mod top;

use std::path::Path;

use anyhow::Result;

use crate::cli::profile::{ProfileArgs, ProfileCommand, SymbolArgs};
use crate::exit::Exit;

/// Does what was asked for.
pub fn run(args: &ProfileArgs) -> Result<Exit> {
    match &args.command {
        ProfileCommand::Record(args) => record::run(args),
        ProfileCommand::Import(args) => import::run(args),
        ProfileCommand::Export(args) => export::run(args),
        ProfileCommand::Heatmap(args) => heatmap::run(args),
        ProfileCommand::Flame(args) => flame::run(args),
        ProfileCommand::Top(args) => top::run(args),
        ProfileCommand::Diff(args) => diff::run(args),
    }
}

/// A recording that was read into a bundle.
pub struct Imported {
    /// Whether its samples have times.
    pub has_times: bool,
    /// What could not be read of it, in sentences.
    pub notes: Vec<String>,
}

/// Reads one recording into a bundle that is not there yet.
pub fn import(file: &Path, bundle: &Path) -> Result<Imported> {
    let (answer, _) = import::into_bundle(&[file.to_owned()], &SymbolArgs::default(), bundle)?;
    let notes = (!answer.is_complete)
        .then(|| "the file could not be read to its end: what came before it is shown".to_owned());
    Ok(Imported {
        has_times: answer.has_times,
        notes: notes.into_iter().collect(),
    })
}
