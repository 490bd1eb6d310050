//! Conditions of units, as far as files can tell whether they hold.

use std::path::Path;

use sexton_host::Kind;

use crate::unit_file::settings::Settings;
use crate::unit_file::tree::Tree;
use sexton_model::glob;

/// Folders whose content comes with the image and not with the boot.
const SHIPPED: &[&str] = &[
    "/usr", "/lib", "/lib64", "/bin", "/sbin", "/opt", "/etc", "/boot",
];

/// Whether something holds, if that can be told before a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Yes,
    No,
    Unknown,
}

/// What conditions come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All hold.
    Met,
    /// This one does not.
    Unmet(String),
    /// Only a boot can tell.
    Unknown,
}

/// What the conditions (`Condition`) or assertions (`Assert`) of a unit come to here.
pub(crate) fn outcome(tree: &Tree<'_>, settings: &Settings, start: &str) -> Outcome {
    let mut triggering: Option<(Holds, String)> = None;
    let mut is_unknown = false;
    for (key, value) in settings.starting_with("Unit", start) {
        if value.is_empty() {
            (triggering, is_unknown) = (None, false);
            continue;
        }
        let (is_triggering, rest) = match value.strip_prefix('|') {
            Some(rest) => (true, rest),
            None => (false, value),
        };
        let (is_negated, argument) = match rest.strip_prefix('!') {
            Some(argument) => (true, argument),
            None => (false, rest),
        };
        let holds = match (
            holds(tree, &key[start.len()..], argument.trim()),
            is_negated,
        ) {
            (Holds::Yes, true) => Holds::No,
            (Holds::No, true) => Holds::Yes,
            (holds, _) => holds,
        };
        let text = format!("{key}={value}");
        match (is_triggering, holds) {
            // One of the triggering ones is enough.
            (true, holds) => {
                let best = triggering.map_or(holds, |(before, _)| better(before, holds));
                triggering = Some((best, text));
            }
            (false, Holds::No) => return Outcome::Unmet(text),
            (false, Holds::Unknown) => is_unknown = true,
            (false, Holds::Yes) => {}
        }
    }
    match triggering {
        Some((Holds::No, text)) => Outcome::Unmet(text),
        Some((Holds::Unknown, _)) => Outcome::Unknown,
        _ if is_unknown => Outcome::Unknown,
        _ => Outcome::Met,
    }
}

fn better(a: Holds, b: Holds) -> Holds {
    match (a, b) {
        (Holds::Yes, _) | (_, Holds::Yes) => Holds::Yes,
        (Holds::Unknown, _) | (_, Holds::Unknown) => Holds::Unknown,
        _ => Holds::No,
    }
}

fn holds(tree: &Tree<'_>, sort: &str, argument: &str) -> Holds {
    let path = Path::new(argument);
    let is_shipped = SHIPPED.iter().any(|folder| path.starts_with(folder));
    if is_shipped && wants_file(sort) && lacks_folder(tree, path) {
        return Holds::No;
    }
    if !is_shipped || argument.contains('%') {
        return match sort {
            // The system's own manager is root.
            "User" => yes_or_no(argument == "root" || argument == "0" || argument == "@system"),
            _ => Holds::Unknown,
        };
    }
    let meta = tree.meta(path);
    let is = |kind| meta.is_some_and(|meta| meta.kind == kind);
    match sort {
        "PathExists" => yes_or_no(meta.is_some()),
        "PathExistsGlob" => yes_or_no(any_matches(tree, path)),
        "PathIsDirectory" => yes_or_no(is(Kind::Dir)),
        "FileNotEmpty" => {
            yes_or_no(meta.is_some_and(|meta| meta.kind == Kind::File && meta.size_bytes > 0))
        }
        "FileIsExecutable" => yes_or_no(meta.is_some_and(sexton_host::Meta::is_executable)),
        "DirectoryNotEmpty" => yes_or_no(
            tree.root()
                .list(path)
                .is_ok_and(|entries| !entries.is_empty()),
        ),
        _ => Holds::Unknown,
    }
}

/// Whether it holds only if there is something at its path.
fn wants_file(sort: &str) -> bool {
    ["Path", "File", "Directory"]
        .iter()
        .any(|start| sort.starts_with(start))
}

/// Whether a path has a specifier, such as the kernel's release, in a folder that is not
/// there: whatever it stands for, nothing is below.
fn lacks_folder(tree: &Tree<'_>, path: &Path) -> bool {
    let has_specifier = |part: &Path| part.to_string_lossy().contains('%');
    let mut above = path.ancestors().skip_while(|part| has_specifier(part));
    has_specifier(path)
        && above
            .next()
            .is_some_and(|folder| tree.meta(folder).is_none())
}

fn yes_or_no(yes: bool) -> Holds {
    if yes { Holds::Yes } else { Holds::No }
}

/// Whether any file fits a pattern; only its last part may be one.
pub(crate) fn any_matches(tree: &Tree<'_>, pattern: &Path) -> bool {
    let (Some(folder), Some(last)) = (pattern.parent(), pattern.file_name()) else {
        return false;
    };
    let last = last.to_string_lossy();
    match tree.root().list(folder) {
        Ok(entries) => entries
            .iter()
            .any(|entry| glob::matches(&last, &entry.name.to_string_lossy())),
        // A pattern in a folder's name is rare; the file may well be there.
        Err(_) => folder.to_string_lossy().contains(['*', '?', '[']),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sexton_host::FolderRoot;

    use super::*;

    fn check(condition: &str, fails: bool) {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("usr/lib/there")).expect("made");
        let root = FolderRoot::open(folder.path()).expect("opens");
        let settings = Settings::parse(&format!("[Unit]\n{condition}\n"));
        let outcome = outcome(&Tree::new(&root), &settings, "Condition");
        assert_eq!(matches!(outcome, Outcome::Unmet(_)), fails, "{condition}");
    }

    #[test]
    fn nothing_is_in_a_folder_that_is_not_there() {
        check("ConditionFileNotEmpty=/usr/lib/modules/%v/x", true);
        check("ConditionFileNotEmpty=!/usr/lib/modules/%v/x", false);
        check("ConditionFileNotEmpty=/usr/lib/there/%v/x", false);
        check("ConditionPathExists=/run/%v/x", false);
        check("ConditionPathExists=/usr/lib/there/x", true);
    }
}
