//! Finds the Debian archive this machine uses, in the apt sources it has.
//!
//! The guest kernels come from other suites of that same archive, so no address of any
//! archive is written down here.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// One archive, as apt's one-line format wants it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Archive {
    pub(crate) uri: String,
    pub(crate) signed_by: Option<String>,
}

impl Archive {
    /// The line that makes apt read one suite of this archive.
    pub(crate) fn line(&self, suite: &str) -> String {
        let options = self
            .signed_by
            .as_ref()
            .map_or_else(String::new, |key| format!("[signed-by={key}] "));
        format!("deb {options}{} {suite} main\n", self.uri)
    }
}

/// The two archives of a Debian machine.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Mirror {
    pub(crate) main: Archive,
    pub(super) security: Option<Archive>,
}

impl Mirror {
    /// Reads `/etc/apt`.
    pub(crate) fn of_this_machine() -> Result<Mirror> {
        let mut sources = Vec::new();
        for path in source_files(Path::new("/etc/apt")) {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let is_deb822 = path
                .extension()
                .is_some_and(|extension| extension == "sources");
            sources.extend(if is_deb822 {
                deb822(&text)
            } else {
                one_line(&text)
            });
        }
        Mirror::among(&sources).context("the apt sources of this machine name no Debian archive")
    }

    fn among(sources: &[Source]) -> Option<Mirror> {
        let first = |is_wanted: fn(&str) -> bool| {
            let mut wanted = sources
                .iter()
                .filter(|source| source.components.iter().any(|c| c == "main"))
                // An installer leaves its disc in the list; other suites are not on it.
                .filter(|source| !source.archive.uri.starts_with("cdrom:"))
                .filter(|source| source.suites.iter().any(|s| is_wanted(s)));
            wanted.next().map(|source| source.archive.clone())
        };
        let main = first(|suite| DEBIAN_SUITES.contains(&suite))?;
        Some(Mirror {
            main,
            security: first(|suite| suite.ends_with("-security")),
        })
    }
}

/// What tells a Debian archive from the other sources a machine may have.
const DEBIAN_SUITES: &[&str] = &[
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "sid",
    "oldoldstable",
    "oldstable",
    "stable",
    "testing",
    "unstable",
];

struct Source {
    archive: Archive,
    suites: Vec<String>,
    components: Vec<String>,
}

fn source_files(etc_apt: &Path) -> Vec<PathBuf> {
    let mut files = vec![etc_apt.join("sources.list")];
    let parts = fs::read_dir(etc_apt.join("sources.list.d"))
        .into_iter()
        .flatten()
        .flatten();
    files.extend(parts.map(|entry| entry.path()));
    files.retain(|path| {
        path.is_file()
            && path
                .extension()
                .is_some_and(|e| e == "list" || e == "sources")
    });
    files.sort();
    files
}

/// Reads the paragraphs of a `.sources` file.
fn deb822(text: &str) -> Vec<Source> {
    let without_comments: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let paragraphs = without_comments.split(|line| line.trim().is_empty());
    paragraphs.filter_map(paragraph).collect()
}

fn paragraph(lines: &[&str]) -> Option<Source> {
    let field = |name: &str| {
        lines.iter().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    };
    let list = |name| {
        field(name)
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let is_on = !field("Enabled").is_some_and(|value| value.eq_ignore_ascii_case("no"));
    let archive = Archive {
        uri: list("URIs").into_iter().next()?,
        // A key may also stand in the file itself; apt then still knows it from its own keyring.
        signed_by: field("Signed-By")
            .filter(|key| key.starts_with('/'))
            .map(str::to_owned),
    };
    let source = Source {
        archive,
        suites: list("Suites"),
        components: list("Components"),
    };
    (is_on && list("Types").iter().any(|kind| kind == "deb")).then_some(source)
}

/// Reads the lines of a `.list` file: `deb [options] uri suite component…`.
fn one_line(text: &str) -> Vec<Source> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Source> {
    let rest = line.trim().strip_prefix("deb ")?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest
        .split('#')
        .next()?
        .split_whitespace()
        .map(str::to_owned);
    let signed_by = options
        .split_whitespace()
        .find_map(|option| option.strip_prefix("signed-by="))
        .map(str::to_owned);
    let archive = Archive {
        uri: words.next()?,
        signed_by,
    };
    Some(Source {
        archive,
        suites: vec![words.next()?],
        components: words.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(uri: &str, key: Option<&str>) -> Archive {
        Archive {
            uri: uri.into(),
            signed_by: key.map(str::to_owned),
        }
    }

    #[test]
    fn a_sources_file() {
        let text = "\
Types: deb
# URIs: http://old.example/debian
URIs: http://deb.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian.gpg

Types: deb deb-src
URIs: http://sec.example/debian-security
Suites: bookworm-security
Components: main
";
        let key = Some("/usr/share/keyrings/debian.gpg");
        let expected = Mirror {
            main: archive("http://deb.example/debian", key),
            security: Some(archive("http://sec.example/debian-security", None)),
        };
        assert_eq!(Mirror::among(&deb822(text)), Some(expected));
    }

    #[test]
    fn a_list_file() {
        let text = "\
# deb http://old.example/debian bookworm main
deb cdrom:[Debian-12]/ bookworm main
deb-src http://src.example/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://deb.example/debian bookworm main contrib # ours
deb http://sec.example/debian-security bookworm-security main
";
        let expected = Mirror {
            main: archive("http://deb.example/debian", Some("/k.gpg")),
            security: Some(archive("http://sec.example/debian-security", None)),
        };
        assert_eq!(Mirror::among(&one_line(text)), Some(expected));
    }

    #[test]
    fn other_sources_are_not_debian() {
        let text = "deb http://tools.example/apt tools-bookworm main\ndeb http://node.example nodistro main\n";
        assert_eq!(Mirror::among(&one_line(text)), None);
        assert_eq!(
            Mirror::among(&deb822(
                "Types: deb\nEnabled: no\nURIs: http://a\nSuites: sid\nComponents: main"
            )),
            None
        );
    }

    #[test]
    fn a_suite_becomes_a_line() {
        let line = archive("http://deb.example/debian", Some("/k.gpg")).line("bullseye");
        assert_eq!(
            line,
            "deb [signed-by=/k.gpg] http://deb.example/debian bullseye main\n"
        );
    }
}
