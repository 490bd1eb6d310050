//! Whether the programs of a service can be executed at all.

use std::path::Path;

use crate::unit_file::file;
use crate::unit_file::interpreter::{self, Kernel};
use crate::unit_file::set::UnitSet;
use crate::unit_file::settings::Settings;
use crate::unit_file::start::{VOLATILE, has_own_root};
use crate::unit_file::tree::Tree;

/// The first command that fails, and why.
pub(crate) fn missing(tree: &Tree<'_>, set: &UnitSet, settings: &Settings) -> Option<String> {
    // Inside another root everything is elsewhere.
    if has_own_root(settings) {
        return None;
    }
    let sets_path = |word: &String| word.starts_with("PATH=");
    let knows_path = !settings
        .words("Service", "Environment")
        .iter()
        .any(sets_path)
        && settings.lines("Service", "EnvironmentFile").is_empty()
        && settings.last("Service", "ExecSearchPath").is_none();
    for key in ["ExecStartPre", "ExecStart"] {
        for line in settings.lines("Service", key) {
            let words = file::words(line);
            let first = words.first()?;
            let program = first.trim_start_matches(['@', '-', ':', '+', '!', '|']);
            let prefix = &first[..first.len() - program.len()];
            if prefix.contains('-') || program.contains(['%', '$']) {
                continue;
            }
            if let Some(why) = is_missing(tree, set.kernel(tree), program, knows_path) {
                return Some(format!("{key}={program}: {why}"));
            }
        }
    }
    None
}

fn is_missing(tree: &Tree<'_>, kernel: Kernel, program: &str, knows_path: bool) -> Option<String> {
    let path = Path::new(program);
    if !path.is_absolute() {
        return match interpreter::on_path(tree, program) {
            Some(path) => interpreter::missing(tree, kernel, &path, knows_path),
            None if !knows_path => None,
            None => Some("no such program".into()),
        };
    }
    if VOLATILE.iter().any(|folder| path.starts_with(folder)) {
        return None;
    }
    match tree.root().meta(path) {
        Ok(meta) if !meta.is_executable() => Some("it is not executable".into()),
        Ok(_) => interpreter::missing(tree, kernel, path, knows_path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some("no such file".into()),
        // What cannot be seen is not called missing.
        Err(_) => None,
    }
}
