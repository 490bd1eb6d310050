//! Which systemd a root has: what it takes for a setting changed over time.

use std::path::Path;

use crate::unit_file::tree::Tree;

/// Folders of systemd's own library, whose name holds the version.
const FOLDERS: &[&str] = &["/usr/lib/systemd", "/usr/lib64/systemd", "/lib/systemd"];

/// The version of systemd; where it is not known, the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u32);

impl Version {
    pub(crate) const NEWEST: Self = Self(u32::MAX);

    pub(crate) fn read(tree: &mut Tree<'_>) -> Self {
        let mut folders: Vec<String> = FOLDERS.iter().map(|folder| (*folder).to_owned()).collect();
        for entry in tree.list(Path::new("/usr/lib")) {
            if entry.name.ends_with("-linux-gnu") || entry.name.contains("-linux-gnueabi") {
                folders.push(format!("/usr/lib/{}/systemd", entry.name));
            }
        }
        let mut found = None;
        for folder in folders {
            let entries = tree.root().list(Path::new(&folder)).unwrap_or_default();
            let versions = entries
                .iter()
                .filter_map(|entry| of_library(entry.name.to_str()?));
            found = found.max(versions.max());
        }
        found.map_or(Self::NEWEST, Self)
    }

    /// Whether `UpheldBy=` and `.upholds` enable, and presets may say `ignore`.
    pub(crate) fn knows_upholds(self) -> bool {
        self >= Self(254)
    }

    /// Whether links are followed by the last part of their target alone, and links in any folder
    /// below a folder of units enable.
    pub(crate) fn follows_names(self) -> bool {
        self < Self(250)
    }

    /// Whether `systemctl` takes a link in the search path to a unit of the same name for a loop.
    /// The service manager itself passes over such a link.
    pub(crate) fn refuses_own_name(self) -> bool {
        self >= Self(250)
    }
}

/// `libsystemd-shared-252.so`, `libsystemd-shared-252.39-1~deb12u1.so`
fn of_library(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("libsystemd-shared-")?;
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_names_it() {
        assert_eq!(of_library("libsystemd-shared-252.so"), Some(252));
        assert_eq!(of_library("libsystemd-shared-257.9-2.fc42.so"), Some(257));
        assert_eq!(of_library("libsystemd-core-252.so"), None);
        assert_eq!(of_library("libsystemd-shared-.so"), None);
        assert!(Version::NEWEST.knows_upholds());
        assert!(!Version(252).knows_upholds());
    }
}
