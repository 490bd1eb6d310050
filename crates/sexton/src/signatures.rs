//! Reads signatures of this run: `--signatures DIR`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use sexton_signatures::Signatures;

/// A signature is a page; more is a mistake in the name of the folder.
const MAX_BYTES: u64 = 1 << 20;

/// More files are a mistake, too.
const MAX_FILES: usize = 1_000;

/// Those that sexton brings, and those of these folders and files. A folder is read with the
/// folders in it, as `signatures/` of the source is laid out.
pub fn read(places: &[PathBuf]) -> Result<Arc<Signatures>> {
    let built_in = Signatures::built_in();
    if places.is_empty() {
        return Ok(built_in);
    }
    let mut signatures = (*built_in).clone();
    for file in files(places)? {
        signatures.add_file(&file, &text(&file)?)?;
    }
    Ok(Arc::new(signatures))
}

/// The files of these places, in the order in which they count.
pub fn files(places: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for place in places {
        let n = files.len();
        if place.is_dir() {
            add_folder(place, 0, &mut files)?;
            if files.len() == n {
                bail!("{} has no file of signatures (*.toml)", place.display());
            }
        } else {
            files.push(place.clone());
        }
    }
    Ok(files)
}

fn add_folder(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    let listed = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let listed = listed.with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = listed.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() && depth == 0 {
            add_folder(&path, depth + 1, files)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            files.push(path);
        }
    }
    if files.len() > MAX_FILES {
        bail!("{} has over {MAX_FILES} files", folder.display());
    }
    Ok(())
}

fn text(path: &Path) -> Result<String> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        .with_context(|| format!("cannot read {}", path.display()))?;
    if text.len() as u64 > MAX_BYTES {
        bail!(
            "{} is larger than a signature may be (1 MiB)",
            path.display()
        );
    }
    Ok(text)
}
