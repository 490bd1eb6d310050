//! The source tree as text, read once for all checks.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::dependencies::Package;
use crate::{command, workspace};

/// Directories that hold no source of ours.
const SKIPPED: &[&str] = &["target", ".git", "node_modules"];

/// One text file.
pub(crate) struct File {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// The lines with their numbers, counted from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(crate) fn is_c(&self) -> bool {
        self.path.ends_with(".c") || self.path.ends_with(".h")
    }

    /// The file's name, up to its first dot.
    pub(crate) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.split('.').next().unwrap_or(name)
    }

    /// The lines outside the `#[cfg(test)] mod tests { … }` block that ends most files.
    pub(crate) fn lines_without_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let block = self.test_block();
        self.lines()
            .filter(move |(number, _)| !block.contains(number))
    }

    /// Line numbers of the test block; empty where there is none. rustfmt has put its
    /// first and last line at the start of a line, so no parser is needed.
    fn test_block(&self) -> std::ops::Range<usize> {
        let lines: Vec<&str> = self.text.lines().collect();
        let opens = |at: usize| {
            let mut rest = lines[at..].iter().skip_while(|line| line.starts_with("#["));
            lines[at] == "#[cfg(test)]" && rest.next().is_some_and(|line| *line == "mod tests {")
        };
        let Some(first) = (0..lines.len()).find(|&at| opens(at)) else {
            return 0..0;
        };
        let length = lines[first..]
            .iter()
            .position(|line| *line == "}")
            .unwrap_or(lines.len() - first - 1);
        first + 1..first + length + 2
    }
}

/// The tree, and what cargo says of its packages.
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
    pub(crate) packages: Vec<Package>,
    /// Every file and directory, text or not, relative to the root.
    pub(crate) paths: Vec<String>,
}

impl Tree {
    pub(crate) fn read(root: &Path) -> Result<Tree> {
        let metadata = command::output(&mut workspace::cargo(&[
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
        ]))?;
        let mut tree = Tree {
            files: Vec::new(),
            packages: Package::parse(&metadata)?,
            paths: Vec::new(),
        };
        tree.read_dir(root, "")?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn read_dir(&mut self, root: &Path, relative: &str) -> Result<()> {
        let dir = root.join(relative);
        let entries =
            fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", dir.display()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if SKIPPED.contains(&name.as_str()) {
                continue;
            }
            let path = if relative.is_empty() {
                name
            } else {
                format!("{relative}/{name}")
            };
            self.paths.push(path.clone());
            let kind = entry
                .file_type()
                .with_context(|| format!("cannot look at {path}"))?;
            if kind.is_dir() {
                self.read_dir(root, &path)?;
            } else if kind.is_file() {
                self.read_file(root, path)?;
            }
        }
        Ok(())
    }

    fn read_file(&mut self, root: &Path, path: String) -> Result<()> {
        let bytes = fs::read(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
        // What is not text (captures, images) has no lines to complain about.
        if let Ok(text) = String::from_utf8(bytes) {
            self.files.push(File { path, text });
        }
        Ok(())
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The files below a directory.
    pub(crate) fn under(&self, dir: &str) -> impl Iterator<Item = &File> {
        self.files.iter().filter(move |file| {
            file.path
                .strip_prefix(dir)
                .is_some_and(|rest| rest.starts_with('/'))
        })
    }

    /// Rust and C that we wrote.
    pub(crate) fn code(&self) -> impl Iterator<Item = &File> {
        self.under("crates")
            .chain(self.under("xtask"))
            .filter(|file| file.is_rust() || file.is_c())
    }

    /// The names of the directories in `crates/`.
    pub(crate) fn crates(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .files
            .iter()
            .filter_map(|file| {
                file.path
                    .strip_prefix("crates/")?
                    .strip_suffix("/Cargo.toml")
            })
            .filter(|name| !name.contains('/'))
            .collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
impl Tree {
    /// A tree that exists only in a test.
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        let files: Vec<File> = files
            .iter()
            .map(|&(path, text)| File {
                path: path.into(),
                text: text.into(),
            })
            .collect();
        let paths = files.iter().map(|file| file.path.clone()).collect();
        Tree {
            files,
            packages: Vec::new(),
            paths,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[usize]) {
        let file = File {
            path: "a.rs".into(),
            text: text.into(),
        };
        let lines: Vec<usize> = file
            .lines_without_tests()
            .map(|(number, _)| number)
            .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_test_block_is_left_out() {
        check("a\n#[cfg(test)]\nmod tests {\n    b\n}\n", &[1]);
        check(
            "a\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n    }\n}\nc\n",
            &[1, 7],
        );
    }

    #[test]
    fn other_test_only_code_counts() {
        check("a\n#[cfg(test)]\nimpl A {\n}\n", &[1, 2, 3, 4]);
        check("a\n#[cfg(test)]\nmod tests;\n", &[1, 2, 3]);
    }

    #[test]
    fn an_unclosed_block_reaches_to_the_end() {
        check("a\n#[cfg(test)]\nmod tests {\n    b\n", &[1]);
    }
}
