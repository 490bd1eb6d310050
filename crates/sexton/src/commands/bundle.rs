//! `sexton bundle`

mod redact;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::cli::bundle::{BundleCommand, RedactArgs};
use crate::exit::Exit;

const ENDING: &str = ".tar.zst";

/// Packs or unpacks a recording.
pub fn run(command: &BundleCommand) -> Result<Exit> {
    match command {
        BundleCommand::Pack { folder, output } => pack(folder, output.as_deref()),
        BundleCommand::Unpack { file, output } => unpack(file, output.as_deref()),
        BundleCommand::Redact(args) => redact(args),
    }
}

fn redact(args: &RedactArgs) -> Result<Exit> {
    let replace = args.replace.iter().map(|text| redact::replacement(text));
    let redaction = redact::Redaction {
        without: &args.without,
        drop: &args.drop,
        replace: replace.collect::<Result<_>>()?,
    };
    let summary = redact::redact(&args.folder, &args.output, &redaction)?;
    writeln!(
        io::stdout(),
        "Copied {} records into {}: {} bytes. Look at it before you hand it on.",
        summary.records,
        args.output.display(),
        summary.bytes
    )?;
    Ok(Exit::NothingFound)
}

fn pack(folder: &Path, output: Option<&Path>) -> Result<Exit> {
    let file = match output {
        Some(file) => file.to_owned(),
        None => beside(folder)?,
    };
    let bytes = sexton_store::pack(folder, &file)?;
    let mut out = io::stdout();
    writeln!(out, "Packed into {}: {bytes} bytes.", file.display())?;
    Ok(Exit::NothingFound)
}

/// The folder's own name with the ending, also where it is given as `.` or with a slash.
fn beside(folder: &Path) -> Result<PathBuf> {
    let whole = std::path::absolute(folder).ok();
    let name = whole.as_deref().and_then(Path::file_name);
    let mut name = name
        .with_context(|| format!("{} has no name: give the file with -o", folder.display()))?
        .to_owned();
    name.push(ENDING);
    Ok(folder.parent().unwrap_or(Path::new("")).join(name))
}

fn unpack(file: &Path, output: Option<&Path>) -> Result<Exit> {
    let folder = match output {
        Some(folder) => folder.to_owned(),
        None => {
            let name = file.to_str().and_then(|name| name.strip_suffix(ENDING));
            let why = || {
                format!(
                    "{} does not end with {ENDING}: give the folder with -o",
                    file.display()
                )
            };
            name.with_context(why)?.into()
        }
    };
    sexton_store::unpack(file, &folder)?;
    writeln!(io::stdout(), "Unpacked into {}.", folder.display())?;
    Ok(Exit::NothingFound)
}
