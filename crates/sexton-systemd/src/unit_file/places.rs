//! Files and folders that a service names beside its program, and without which systemd does not
//! start it: what it binds, protects or mounts, and the files it reads from and writes to.

use std::io::ErrorKind;
use std::path::Path;

use crate::unit_file::program;
use crate::unit_file::settings::Settings;
use crate::unit_file::start::{VOLATILE, has_own_root};
use crate::unit_file::tree::Tree;

/// Lists of paths that the service sees otherwise than others do. systemd fails with
/// `226/NAMESPACE` where one is not there, unless `-` stands before it.
const PROTECTED: [&str; 5] = [
    "ReadWritePaths",
    "ReadOnlyPaths",
    "InaccessiblePaths",
    "ExecPaths",
    "NoExecPaths",
];

const BOUND: [&str; 2] = ["BindPaths", "BindReadOnlyPaths"];

/// The first that is missing. `is_made` says what a boot makes before the service starts.
pub(crate) fn missing(
    tree: &Tree<'_>,
    settings: &Settings,
    is_made: &dyn Fn(&Path) -> bool,
) -> Option<String> {
    let is_absent = |path: &Path| {
        let is_volatile = VOLATILE.iter().any(|folder| path.starts_with(folder));
        let is_plain = path.is_absolute() && !path.to_string_lossy().contains(['%', '$', '\\']);
        is_plain && !is_volatile && is_not_there(tree, path) && !is_made(path)
    };
    namespace(settings, &is_absent).or_else(|| streams(settings, &is_absent))
}

fn is_not_there(tree: &Tree<'_>, path: &Path) -> bool {
    let meta = tree.root().meta(path);
    meta.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

fn namespace(settings: &Settings, is_absent: &dyn Fn(&Path) -> bool) -> Option<String> {
    // A command with `+` sees all files as they are, and may make what is missing.
    let commands = settings.lines("Service", "ExecStartPre");
    let has_free_hands = |line: &&str| {
        let prefix = line.trim_start_matches(['@', '-', ':', '!', '|']);
        prefix.starts_with('+')
    };
    if commands.iter().any(has_free_hands) {
        return None;
    }
    for key in PROTECTED.iter().filter(|_| !has_own_root(settings)) {
        for word in settings.words("Service", key) {
            let path = Path::new(word.trim_start_matches('+'));
            // Logs of all programs, such as wtmp, come and go.
            let is_log = path.parent() == Some(Path::new("/var/log"));
            if !is_log && is_absent(path) && !is_covered(settings, path) {
                return Some(format!("{key}={word}: no such file or folder"));
            }
        }
    }
    for key in BOUND {
        for word in settings.words("Service", key) {
            let source = word.split(':').next().unwrap_or_default();
            if is_absent(Path::new(source)) {
                return Some(format!("{key}={source}: no such file or folder"));
            }
        }
    }
    let image = settings.last("Service", "RootImage")?;
    is_absent(Path::new(image)).then(|| format!("RootImage={image}: no such file"))
}

/// Whether the service has something of its own at a path.
fn is_covered(settings: &Settings, path: &Path) -> bool {
    let own = settings.words("Service", "TemporaryFileSystem");
    let mut places = own
        .iter()
        .map(|word| word.split(':').next().unwrap_or(word));
    places.any(|place| path.starts_with(place)) || program::is_laid_over(settings, path)
}

/// systemd makes the files that a service writes to, but no folders.
fn streams(settings: &Settings, is_absent: &dyn Fn(&Path) -> bool) -> Option<String> {
    for key in ["StandardInput", "StandardOutput", "StandardError"] {
        let Some((how, path)) = settings
            .last("Service", key)
            .and_then(|it| it.split_once(':'))
        else {
            continue;
        };
        let path = Path::new(path);
        let needed = match (key, how) {
            ("StandardInput", "file") => Some(path),
            (_, "file" | "append" | "truncate") => path.parent(),
            _ => None,
        };
        if let Some(needed) = needed.filter(|needed| is_absent(needed)) {
            return Some(format!(
                "{key}={how}:{}: {} is not there",
                path.display(),
                needed.display()
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything below `/gone` is missing.
    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let settings = Settings::parse(&format!("[Service]\n{text}\n"));
        let is_absent = |path: &Path| path.starts_with("/gone");
        let found = namespace(&settings, &is_absent).or_else(|| streams(&settings, &is_absent));
        assert_eq!(found.as_deref(), expected, "{text}");
    }

    #[test]
    fn what_a_namespace_needs() {
        check(
            "ReadWritePaths=/srv /gone/x",
            Some("ReadWritePaths=/gone/x: no such file or folder"),
        );
        check("ReadWritePaths=-/gone/x", None);
        check("ReadWritePaths=/gone/x\nReadWritePaths=", None);
        check("ReadOnlyPaths=/gone\nExecStartPre=+/bin/mkdir /gone", None);
        check("ReadOnlyPaths=/gone/x\nTemporaryFileSystem=/gone:ro", None);
        check("ReadOnlyPaths=/gone/x\nBindPaths=/srv:/gone/x", None);
        check("ReadOnlyPaths=/gone\nRootDirectory=/srv", None);
        check(
            "BindPaths=/gone:/srv",
            Some("BindPaths=/gone: no such file or folder"),
        );
        check("BindPaths=-/gone:/srv /srv:/gone", None);
        check(
            "RootImage=/gone/x.raw",
            Some("RootImage=/gone/x.raw: no such file"),
        );
    }

    #[test]
    fn what_it_reads_and_writes() {
        let gone = "StandardOutput=append:/gone/out.log: /gone is not there";
        check("StandardOutput=append:/gone/out.log", Some(gone));
        check("StandardOutput=append:/srv/out.log", None);
        check("StandardOutput=journal", None);
        let gone = "StandardInput=file:/gone/in: /gone/in is not there";
        check("StandardInput=file:/gone/in", Some(gone));
        check("StandardInput=socket", None);
    }
}
