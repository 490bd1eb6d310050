//! Where results go.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use sexton_profile::weight::Unit;

/// Opens the file that was asked for, or stdout. `is_text` says whether a terminal can show
/// it.
pub fn open(file: Option<&Path>, is_text: bool) -> Result<Box<dyn Write + Send>> {
    match file {
        Some(file) => {
            let opened =
                File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
            Ok(Box::new(BufWriter::new(opened)))
        }
        None if !is_text && io::stdout().is_terminal() => {
            bail!("this is nothing for a terminal: write it to a file with -o FILE")
        }
        None => Ok(Box::new(BufWriter::new(io::stdout()))),
    }
}

/// Says what the counts of folded stacks are, which the format has no place for.
pub fn tell_unit(unit: &Unit) {
    if *unit != Unit::Samples {
        eprintln!(
            "sexton: counts are {}; --weight samples counts samples",
            unit.name()
        );
    }
}

/// The ending of a file's name.
pub fn ending(file: Option<&Path>) -> Option<&str> {
    file?.extension()?.to_str()
}
