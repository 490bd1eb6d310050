//! Folders of files that describe what is played.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// The files of a folder that end with `.toml`, by name; at least one.
pub(crate) fn toml(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    paths.sort();
    ensure!(!paths.is_empty(), "no file in {}", folder.display());
    Ok(paths)
}

/// The name of a file without its end.
pub(crate) fn stem(path: &Path) -> String {
    let stem = path.file_stem();
    stem.map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}
