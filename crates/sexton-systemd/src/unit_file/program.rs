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
            let Some(first) = words.first() else {
                continue;
            };
            let program = first.trim_start_matches(['@', '-', ':', '+', '!', '|']);
            let prefix = &first[..first.len() - program.len()];
            // Specifiers, variables and `\x20` are written out by systemd.
            let is_plain = !program.contains(['%', '$', '\\']);
            if prefix.contains('-') || !is_plain || is_laid_over(settings, Path::new(program)) {
                continue;
            }
            if let Some(why) = is_missing(tree, set.kernel(tree), program, knows_path) {
                return Some(format!("{key}={program}: {why}"));
            }
            if let Some(script) = missing_script(tree, settings, program, words.get(1)) {
                return Some(format!("{key}={program} {script}: no such script"));
            }
        }
    }
    None
}

/// Programs that run the file which their first argument names.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "python", "python3", "perl", "ruby", "node",
];

/// Folders whose scripts come with the image.
const SHIPPED: &[&str] = &["/usr", "/opt", "/etc", "/bin", "/sbin", "/lib"];

/// The script that an interpreter is to run and that is not there.
fn missing_script<'a>(
    tree: &Tree<'_>,
    settings: &Settings,
    program: &str,
    argument: Option<&'a String>,
) -> Option<&'a str> {
    let script = argument?.as_str();
    let path = Path::new(script);
    let name = program.rsplit('/').next().unwrap_or(program);
    let is_shipped = SHIPPED.iter().any(|folder| path.starts_with(folder));
    let is_plain = !script.contains(['%', '$', '\\']) && !is_laid_over(settings, path);
    let is_asked = INTERPRETERS.contains(&name) && is_shipped && is_plain;
    let is_absent = || {
        let meta = tree.root().meta(path);
        meta.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    (is_asked && is_absent()).then_some(script)
}

/// Whether the service sees something else at a path than the image has there: what is bound
/// or mounted for it alone, or an extension of `/usr` and `/opt`.
pub(crate) fn is_laid_over(settings: &Settings, path: &Path) -> bool {
    let is_below = |key: &str| {
        let lists = settings.words("Service", key);
        let mut places = lists.iter().map(|word| {
            let mut parts = word.trim_start_matches('-').split(':');
            let source = parts.next().unwrap_or_default();
            parts.next().unwrap_or(source).to_owned()
        });
        places.any(|place| path.starts_with(place))
    };
    let extends = |key: &str| !settings.lines("Service", key).is_empty();
    let may_be_extended = !path.is_absolute()
        || ["/usr", "/opt", "/bin", "/sbin", "/lib"]
            .iter()
            .any(|folder| path.starts_with(folder));
    let is_extended = extends("ExtensionImages") || extends("ExtensionDirectories");
    ["BindPaths", "BindReadOnlyPaths", "MountImages"]
        .iter()
        .any(|key| is_below(key))
        || may_be_extended && is_extended
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_service_sees_elsewhere() {
        let check = |text: &str, path: &str, expected| {
            let settings = Settings::parse(&format!("[Service]\n{text}\n"));
            assert_eq!(is_laid_over(&settings, Path::new(path)), expected, "{text}");
        };
        check("BindPaths=/srv/x:/opt/tool", "/opt/tool/run", true);
        check("BindPaths=/srv/x:/opt/tool", "/srv/x/run", false);
        check("BindReadOnlyPaths=-/opt/tool", "/opt/tool/run", true);
        check("MountImages=/x.raw:/opt/i", "/opt/i/run", true);
        check("ExtensionImages=/x.raw", "/usr/bin/run", true);
        check("ExtensionImages=/x.raw", "/srv/run", false);
        check("", "/usr/bin/run", false);
    }
}
