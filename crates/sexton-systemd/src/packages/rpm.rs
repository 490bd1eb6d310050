//! rpm: one of three databases, each of which holds the header of every package.

use std::path::Path;

use super::{Found, rpm_bdb, rpm_header, rpm_ndb, rpm_sqlite};
use crate::unit_file::Tree;

/// The folders that distributions use, the newer first.
const FOLDERS: &[&str] = &["/usr/lib/sysimage/rpm", "/var/lib/rpm"];

/// A database of 3,000 packages is 200 MB; it is read in pages, never as a whole.
pub(super) const DATABASE_BYTES_MAX: u64 = 1 << 30;

/// A header with 100,000 files is 20 MB.
pub(super) const HEADER_BYTES_MAX: usize = 64 << 20;

/// Reads every header of a database, one at a time.
type Reader = fn(&Database<'_>, &mut dyn FnMut(&[u8])) -> Result<(), String>;

const READERS: &[(&str, Reader)] = &[
    ("rpmdb.sqlite", rpm_sqlite::read),
    ("Packages.db", rpm_ndb::read),
    ("Packages", rpm_bdb::read),
];

/// A database file.
pub(super) struct Database<'a> {
    tree: &'a Tree<'a>,
    path: std::path::PathBuf,
    pub(super) len: u64,
}

impl Database<'_> {
    /// Exactly so many bytes.
    pub(super) fn bytes(&self, offset: u64, len: usize) -> Result<Vec<u8>, String> {
        let found = self
            .tree
            .root()
            .read_at(&self.path, offset, len)
            .map_err(|error| error.to_string())?;
        if found.len() < len {
            return Err(format!(
                "it ends before byte {}",
                offset.saturating_add(len as u64)
            ));
        }
        Ok(found)
    }
}

pub(super) fn read(tree: &mut Tree<'_>, found: &mut Found) -> bool {
    for folder in FOLDERS {
        for (name, reader) in READERS {
            let path = Path::new(folder).join(name);
            let Some(meta) = tree.meta(&path) else {
                continue;
            };
            let mut files: Vec<(String, String)> = Vec::new();
            let result = if meta.size_bytes > DATABASE_BYTES_MAX {
                Err("it is over 1 GiB".to_owned())
            } else {
                let view = Tree::new(tree.root());
                let database = Database {
                    tree: &view,
                    path: path.clone(),
                    len: meta.size_bytes,
                };
                reader(&database, &mut |header| take(header, found, &mut files))
            };
            // What SQLite has written down but not yet put into the database.
            let unmerged = path.with_file_name(format!("{name}-wal"));
            if tree.meta(&unmerged).is_some_and(|meta| meta.size_bytes > 0) {
                let what = "holds changes to the packages that are not read";
                tree.gap(&unmerged, &std::io::Error::other(what));
            }
            if let Err(why) = result {
                tree.gap(
                    &path,
                    &std::io::Error::new(std::io::ErrorKind::InvalidData, why),
                );
            }
            for (package, file) in files {
                found.owns(tree, &package, &file);
            }
            found.packages.database = Some("rpm");
            return true;
        }
    }
    false
}

fn take(header: &[u8], found: &mut Found, files: &mut Vec<(String, String)>) {
    let Some(header) = rpm_header::parse(header) else {
        return;
    };
    found.installed(&header.name, &header.version);
    // Units, programs and scripts; not the documentation that most files are.
    let matters =
        |file: &&String| !file.starts_with("/usr/share/") || file.starts_with("/usr/share/dbus-1/");
    let own = header.files.iter().filter(matters);
    files.extend(own.map(|file| (header.name.clone(), file.clone())));
}
