//! Which package put a file there, read from the databases of dpkg, rpm and apk.

mod apk;
mod dpkg;
mod rpm;
mod rpm_bdb;
mod rpm_header;
mod rpm_ndb;
mod rpm_sqlite;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::unit_file::Tree;

/// What is installed, and who owns the files that were asked for.
#[derive(Debug, Clone, Default)]
pub struct Packages {
    /// Versions by name.
    pub versions: std::collections::BTreeMap<String, String>,
    owners: HashMap<PathBuf, String>,
    /// Which database was read: `dpkg`, `rpm`, `apk`.
    pub database: Option<&'static str>,
}

impl Packages {
    /// Reads the database of this root. Only the owners of `files` are kept.
    pub fn read(tree: &mut Tree<'_>, files: &[PathBuf]) -> Self {
        // A file may be known by either of its names where `/lib` is `/usr/lib`.
        let mut wanted: HashMap<PathBuf, Vec<PathBuf>> = HashMap::new();
        for file in files {
            wanted
                .entry(tree.simplify(file))
                .or_default()
                .push(file.clone());
        }
        let mut found = Found {
            wanted,
            packages: Self::default(),
            folders: HashMap::new(),
        };
        let _ = dpkg::read(tree, &mut found)
            || rpm::read(tree, &mut found)
            || apk::read(tree, &mut found);
        found.packages
    }

    /// The package that owns a file.
    pub fn owner(&self, file: &Path) -> Option<&str> {
        self.owners.get(file).map(String::as_str)
    }

    /// Whether a package of that name is installed.
    pub fn has(&self, name: &str) -> bool {
        self.versions.contains_key(name)
    }
}

/// Where a database puts what it finds.
struct Found {
    wanted: HashMap<PathBuf, Vec<PathBuf>>,
    packages: Packages,
    /// Folders as packages name them, links followed.
    folders: HashMap<PathBuf, PathBuf>,
}

impl Found {
    fn installed(&mut self, name: &str, version: &str) {
        self.packages
            .versions
            .insert(name.to_owned(), version.to_owned());
    }

    /// A package says that a file is its own.
    fn owns(&mut self, tree: &mut Tree<'_>, package: &str, file: &str) {
        let path = Path::new(file);
        let (Some(folder), Some(last)) = (path.parent(), path.file_name()) else {
            return;
        };
        let real = match self.folders.get(folder) {
            Some(known) => known,
            None => {
                let real = tree.simplify(&folder.join("x"));
                let real = real.parent().unwrap_or(folder).to_owned();
                self.folders.entry(folder.to_owned()).or_insert(real)
            }
        };
        if let Some(names) = self.wanted.get(&real.join(last)) {
            for name in names {
                self.packages
                    .owners
                    .insert(name.clone(), package.to_owned());
            }
        }
    }
}
