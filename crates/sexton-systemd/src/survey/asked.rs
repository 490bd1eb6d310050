//! What signatures ask of the files of a root, and the answers. What cannot be seen has none: a
//! file that cannot be read may hold anything, and so may a filesystem that is not here.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sexton_model::glob;
use sexton_signatures::units::{Files, grammar};

use super::Site;
use crate::unit_file::name;
use crate::unit_file::{Tree, Unit, file};

/// A file that a sign asks for is small.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Of a script that a service runs, so much is looked at, and of all together.
const SCRIPT_BYTES_MAX: usize = 64 << 10;
const SCRIPTS_BYTES_MAX: usize = 4 << 20;

/// Files that commands name and that may be scripts; a full desktop has 400.
const N_PROGRAMS_MAX: usize = 5_000;

/// Scripts that services run.
#[derive(Debug, Default)]
pub(super) struct Scripts {
    texts: Vec<String>,
    n_bytes: usize,
    /// Whether there are more than were looked at.
    is_cut: bool,
}

impl Site<'_> {
    /// The text of a file, or that there is none; `None` if that cannot be seen.
    pub(super) fn text(&self, path: &Path) -> Option<Option<String>> {
        match Tree::new(self.root).read(path, TEXT_BYTES_MAX) {
            Ok(content) => Some(Some(String::from_utf8_lossy(&content).into_owned())),
            Err(error) if is_absent(error.kind()) && !self.set.is_elsewhere(path) => Some(None),
            Err(_) => None,
        }
    }

    /// The files at a path whose last part may be a pattern; `None` if that cannot be seen.
    fn matching(&self, path: &str) -> Option<Vec<PathBuf>> {
        let whole = Path::new(path);
        let (Some(folder), Some(pattern)) = (whole.parent(), whole.file_name()) else {
            return Some(Vec::new());
        };
        let pattern = pattern.to_string_lossy();
        let is_pattern = pattern.contains(['*', '?']);
        let found = match is_pattern {
            true => self.root.list(folder).map(|entries| {
                let names = entries.into_iter().map(|entry| entry.name);
                let fitting = names.filter(|name| glob::matches(&pattern, &name.to_string_lossy()));
                fitting.map(|name| folder.join(name)).collect::<Vec<_>>()
            }),
            false => self.root.meta(whole).map(|_| vec![whole.to_owned()]),
        };
        match found {
            Ok(mut paths) => {
                paths.sort();
                // An empty folder may be where a boot mounts something.
                (!paths.is_empty() || !self.set.is_elsewhere(whole)).then_some(paths)
            }
            Err(error) if is_absent(error.kind()) && !self.set.is_elsewhere(whole) => {
                Some(Vec::new())
            }
            Err(_) => None,
        }
    }

    /// Services that a boot starts or may start.
    fn services(&self) -> impl Iterator<Item = &Unit> {
        let is_on = |unit: &&Unit| unit.is_enabled() || self.graph.is_reached(&unit.own_name);
        let units = self.set.iter().filter(is_on);
        units.filter(|unit| name::sort(&unit.name) == "service")
    }

    fn read_scripts(&self) -> Scripts {
        let mut scripts = Scripts::default();
        let mut seen = HashSet::new();
        for word in self.services().flat_map(command_words) {
            let is_new = word.starts_with('/') && !seen.contains(&word);
            if !is_new {
                continue;
            }
            if seen.len() == N_PROGRAMS_MAX || scripts.n_bytes > SCRIPTS_BYTES_MAX {
                scripts.is_cut = true;
                break;
            }
            if let Some(text) = self.script(Path::new(&word)) {
                scripts.n_bytes += text.len();
                scripts.texts.push(text);
            }
            seen.insert(word);
        }
        scripts
    }

    /// A file that begins as a script, without its comments.
    fn script(&self, path: &Path) -> Option<String> {
        let start = self.root.read_at(path, 0, 2).ok()?;
        if start != b"#!" {
            return None;
        }
        let start = self.root.read_at(path, 0, SCRIPT_BYTES_MAX).ok()?;
        let text = String::from_utf8_lossy(&start);
        let lines = text.lines();
        let lines = lines.filter(|line| !line.trim_start().starts_with('#'));
        Some(lines.collect::<Vec<_>>().join("\n"))
    }
}

/// The words of all commands of a service, without what tells systemd how to run them.
fn command_words(unit: &Unit) -> impl Iterator<Item = String> {
    let commands = unit.settings.starting_with("Service", "Exec");
    let words = commands.flat_map(|(_, command)| file::words(command));
    words.map(|word| {
        let bare = word.trim_start_matches(['@', '-', ':', '+', '!', '|']);
        bare.to_owned()
    })
}

/// Whether a text of commands names a program: `docker`, `/usr/bin/docker`, but no `docker.sock`.
fn names_program(text: &str, program: &str) -> bool {
    let parts = |c: char| c.is_whitespace() || "'\"`;&|()$={},<>".contains(c);
    let mut words = text.split(parts);
    words.any(|word| word.rsplit('/').next() == Some(program))
}

fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

impl Files for Site<'_> {
    fn has_path(&self, path: &str) -> Option<bool> {
        Some(!self.matching(path)?.is_empty())
    }

    fn texts(&self, path: &str) -> Option<Vec<String>> {
        let mut texts = Vec::new();
        for path in self.matching(path)? {
            let is_dir = self
                .root
                .meta(&path)
                .is_ok_and(|meta| meta.kind == sexton_host::Kind::Dir);
            if !is_dir {
                texts.extend(self.text(&path)?);
            }
        }
        Some(texts)
    }

    fn environment(&self, unit: &str) -> Option<Vec<String>> {
        let mut words = self.set.environment.clone();
        let Some(unit) = self.set.find(unit) else {
            return Some(words);
        };
        if unit.unread.is_some() {
            return None;
        }
        words.extend(unit.settings.words("Service", "Environment"));
        for file in unit.settings.lines("Service", "EnvironmentFile") {
            for text in self.texts(file.trim_start_matches('-'))? {
                words.extend(grammar::environment(&text));
            }
        }
        Some(words)
    }

    fn runs(&self, program: &str) -> Option<bool> {
        let mut words = self.services().flat_map(command_words);
        if words.any(|word| names_program(&word, program)) {
            return Some(true);
        }
        let scripts = self.scripts.get_or_init(|| self.read_scripts());
        let mut texts = scripts.texts.iter();
        let is_named = texts.any(|text| names_program(text, program));
        (is_named || !scripts.is_cut).then_some(is_named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_in_commands() {
        let check = |text: &str, expected| {
            assert_eq!(names_program(text, "docker"), expected, "{text}");
        };
        check("docker", true);
        check("/usr/bin/docker", true);
        check("exec docker run x", true);
        check("x=$(docker ps)", true);
        check("/var/run/docker.sock", false);
        check("dockerd", false);
        check("docker-proxy", false);
    }
}
