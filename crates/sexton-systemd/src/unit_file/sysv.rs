//! Scripts of SysV init: systemd makes units of them at boot, where no unit of that name is.

use std::collections::BTreeSet;
use std::path::Path;

use sexton_host::Meta;

use crate::unit_file::boot::GENERATORS;
use crate::unit_file::tree::Tree;

/// A script that would become a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) unit: String,
    pub(crate) path: std::path::PathBuf,
    /// Whether a link starts it in a level for several users.
    pub(crate) is_started: bool,
}

/// What makes units of them. New versions of systemd have none, and a link to `/dev/null` in a
/// stronger folder turns it off.
const GENERATOR: &str = "systemd-sysv-generator";

fn is_generator_on(tree: &Tree<'_>) -> bool {
    let folders = GENERATORS
        .iter()
        .map(|folder| Path::new(folder).join(GENERATOR));
    let mut there = folders.filter(|path| tree.link_meta(path).is_ok());
    let strongest = there.next().and_then(|path| tree.meta(&path));
    strongest.is_some_and(Meta::is_executable)
}

pub(crate) fn read(tree: &mut Tree<'_>, has_unit: impl Fn(&str) -> bool) -> Vec<Script> {
    if !is_generator_on(tree) {
        return Vec::new();
    }
    let mut started: BTreeSet<String> = BTreeSet::new();
    for level in 2..=5 {
        for entry in tree.list(Path::new(&format!("/etc/rc{level}.d"))) {
            // S01name starts it, K01name stops it.
            let name = entry.name.strip_prefix('S').and_then(|rest| rest.get(2..));
            started.extend(name.map(str::to_owned));
        }
    }
    let mut scripts = Vec::new();
    for entry in tree.list(Path::new("/etc/init.d")) {
        let path = Path::new("/etc/init.d").join(&entry.name);
        let stem = entry.name.strip_suffix(".sh").unwrap_or(&entry.name);
        let unit = format!("{stem}.service");
        let is_script = tree.meta(&path).is_some_and(Meta::is_executable);
        if is_script && crate::unit_file::name::form(&unit).is_some() && !has_unit(&unit) {
            scripts.push(Script {
                unit,
                path,
                is_started: started.contains(&entry.name),
            });
        }
    }
    scripts
}
