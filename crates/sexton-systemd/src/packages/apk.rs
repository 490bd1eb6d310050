//! apk: one file, `P:` names a package, `V:` its version, `F:` a folder, `R:` a file in it.

use std::path::Path;

use super::Found;
use crate::unit_file::Tree;

const PLACES: &[&str] = &["/lib/apk/db/installed", "/usr/lib/apk/db/installed"];

/// A full desktop of Alpine has 20 MB.
const BYTES_MAX: u64 = 128 << 20;

pub(super) fn read(tree: &mut Tree<'_>, found: &mut Found) -> bool {
    for place in PLACES {
        let path = Path::new(place);
        match tree.read(path, BYTES_MAX) {
            Ok(content) => {
                parse(tree, &String::from_utf8_lossy(&content), found);
                found.packages.database = Some("apk");
                return true;
            }
            Err(error) => tree.gap(path, &error),
        }
    }
    false
}

fn parse(tree: &mut Tree<'_>, text: &str, found: &mut Found) {
    let (mut package, mut folder) = (String::new(), String::new());
    for line in text.lines() {
        match line.split_once(':') {
            Some(("P", name)) => package = name.to_owned(),
            Some(("V", version)) => found.installed(&package, version),
            Some(("F", name)) => folder = format!("/{name}"),
            Some(("R", name)) => found.owns(tree, &package, &format!("{folder}/{name}")),
            _ => {}
        }
    }
}
