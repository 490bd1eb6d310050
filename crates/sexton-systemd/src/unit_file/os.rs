//! Which system an image holds.

use std::collections::BTreeMap;
use std::path::Path;

use crate::unit_file::tree::Tree;

/// What `os-release` says, and which kernels are installed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Os {
    /// `debian`
    pub id: String,
    /// `12`
    pub version: String,
    /// `Debian GNU/Linux 12 (bookworm)`
    pub name: String,
    /// Releases of kernels whose modules are there, sorted.
    pub kernels: Vec<String>,
}

impl Os {
    pub(crate) fn read(tree: &mut Tree<'_>) -> Self {
        let places = ["/etc/os-release", "/usr/lib/os-release"];
        let text = places.iter().find_map(|path| {
            let path = Path::new(path);
            if tree.exists(path) {
                tree.text(path)
            } else {
                None
            }
        });
        let fields = fields(&text.unwrap_or_default());
        let field = |key: &str| fields.get(key).cloned().unwrap_or_default();
        let mut kernels: Vec<String> = Vec::new();
        for folder in ["/usr/lib/modules", "/lib/modules"] {
            kernels.extend(
                tree.list(Path::new(folder))
                    .into_iter()
                    .map(|entry| entry.name),
            );
        }
        kernels.sort();
        kernels.dedup();
        Self {
            id: field("ID"),
            version: field("VERSION_ID"),
            name: field("PRETTY_NAME"),
            kernels,
        }
    }
}

fn fields(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    lines
        .map(|(key, value)| {
            let value = value.trim().trim_matches(['"', '\'']);
            (key.trim().to_owned(), value.to_owned())
        })
        .collect()
}
