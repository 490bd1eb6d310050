//! `sexton image undo`

use std::io::{self, Write};

use anyhow::Result;
use sexton_remedy::image;

use crate::cli::ImageUndoArgs;
use crate::consent;
use crate::exit::Exit;

/// Puts a root folder back as it was.
pub(super) fn run(args: &ImageUndoArgs) -> Result<Exit> {
    let consent = consent::ask_or_end(args.yes, "put this image back as it was")?;
    let undone = image::undo(&args.source, &consent)?;
    let mut out = io::stdout().lock();
    for path in &undone.restored {
        writeln!(out, "as it was: {}", path.display())?;
    }
    for (path, kept) in &undone.lost {
        write!(out, "not put back, its folder is gone: {}", path.display())?;
        match kept {
            Some(kept) => writeln!(out, " (kept as {})", kept.display())?,
            None => writeln!(out)?,
        }
    }
    Ok(match undone.lost.is_empty() {
        true => Exit::NothingFound,
        false => Exit::Found,
    })
}
