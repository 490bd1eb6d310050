//! dpkg: `status`, or `status.d` where an image was put together from packages, and one
//! list of files per package.

use std::path::Path;

use super::Found;
use crate::unit_file::Tree;

const FOLDER: &str = "/var/lib/dpkg";

/// The database of a desktop with 5,000 packages is 6 MB.
const STATUS_BYTES_MAX: u64 = 64 << 20;

/// The list of a kernel's headers, the longest there is, is 3 MB.
const LIST_BYTES_MAX: u64 = 32 << 20;

pub(super) fn read(tree: &mut Tree<'_>, found: &mut Found) -> bool {
    let folder = Path::new(FOLDER);
    let mut any = false;
    if let Some(status) = text(tree, &folder.join("status"), STATUS_BYTES_MAX) {
        any |= parse_status(&status, found);
    }
    for entry in tree.list(&folder.join("status.d")) {
        if !entry.name.ends_with(".md5sums")
            && let Some(status) = text(
                tree,
                &folder.join("status.d").join(&entry.name),
                LIST_BYTES_MAX,
            )
        {
            any |= parse_status(&status, found);
        }
    }
    if !any {
        return false;
    }
    found.packages.database = Some("dpkg");
    if found.wanted.is_empty() {
        return true;
    }
    for entry in tree.list(&folder.join("info")) {
        let Some(package) = entry.name.strip_suffix(".list") else {
            continue;
        };
        let path = folder.join("info").join(&entry.name);
        let Some(list) = text(tree, &path, LIST_BYTES_MAX) else {
            continue;
        };
        // `libc6:amd64` where several architectures may be installed.
        let package = package.split(':').next().unwrap_or(package);
        for file in list.lines().filter(|file| may_matter(file)) {
            found.owns(tree, package, file);
        }
    }
    true
}

/// Most lines of a list are documentation; looking at each costs more than all the rest.
fn may_matter(file: &str) -> bool {
    !file.starts_with("/usr/share/") || file.starts_with("/usr/share/dbus-1/")
}

fn text(tree: &mut Tree<'_>, path: &Path, limit_bytes: u64) -> Option<String> {
    match tree.read(path, limit_bytes) {
        Ok(content) => Some(String::from_utf8_lossy(&content).into_owned()),
        Err(error) => {
            tree.gap(path, &error);
            None
        }
    }
}

/// Whether it names any package.
fn parse_status(status: &str, found: &mut Found) -> bool {
    let mut any = false;
    for paragraph in status.split("\n\n") {
        let field = |key: &str| {
            let line = paragraph
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.map(str::trim)
        };
        let is_installed = field("Status").is_none_or(|status| status.ends_with(" installed"));
        if let (Some(name), true) = (field("Package"), is_installed) {
            found.installed(name, field("Version").unwrap_or_default());
            any = true;
        }
    }
    any
}
