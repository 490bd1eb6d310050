//! What starts units beside units: rules of udev and names on the system bus.

use std::path::{Path, PathBuf};

use crate::unit_file::file;
use crate::unit_file::tree::Tree;

/// One way to be started from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trigger {
    pub(crate) unit: String,
    /// `D-Bus name org.freedesktop.hostname1` or `a udev rule`.
    pub(crate) by: String,
    pub(crate) file: PathBuf,
}

pub(crate) fn triggers(tree: &mut Tree<'_>) -> Vec<Trigger> {
    let mut found = bus_names(tree);
    let mut seen: Vec<String> = Vec::new();
    for folder in [
        "/etc/udev/rules.d",
        "/run/udev/rules.d",
        "/usr/lib/udev/rules.d",
        "/lib/udev/rules.d",
    ] {
        for entry in tree.list(Path::new(folder)) {
            if !entry.name.ends_with(".rules") || seen.contains(&entry.name) {
                continue;
            }
            let path = Path::new(folder).join(&entry.name);
            let text = tree.text(&path).unwrap_or_default();
            found.extend(wanted(&text).into_iter().map(|unit| Trigger {
                unit,
                by: "a udev rule".into(),
                file: path.clone(),
            }));
            seen.push(entry.name);
        }
    }
    found
}

/// Units that `SYSTEMD_WANTS` names; those with a device's name in them become instances.
fn wanted(text: &str) -> Vec<String> {
    let mut units = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
    {
        let mut rest = line;
        while let Some((_, after)) = rest.split_once("ENV{SYSTEMD_WANTS}") {
            let value = after.split('"').nth(1).unwrap_or_default();
            let names = value
                .split_whitespace()
                .map(|name| match name.split_once('@') {
                    Some((prefix, _)) => {
                        format!("{prefix}@.{}", crate::unit_file::name::sort(name))
                    }
                    None => name.to_owned(),
                });
            let is_setting =
                after.starts_with('=') && !after.starts_with("==") || after.starts_with("+=");
            units.extend(names.filter(|_| is_setting));
            rest = after;
        }
    }
    units
}

fn bus_names(tree: &mut Tree<'_>) -> Vec<Trigger> {
    let mut found = Vec::new();
    for folder in [
        "/etc/dbus-1/system-services",
        "/usr/share/dbus-1/system-services",
        "/usr/local/share/dbus-1/system-services",
    ] {
        for entry in tree.list(Path::new(folder)) {
            if !entry.name.ends_with(".service") {
                continue;
            }
            let path = Path::new(folder).join(&entry.name);
            let assignments = file::parse(&tree.text(&path).unwrap_or_default());
            let field = |key: &str| {
                let found = assignments
                    .iter()
                    .find(|a| a.section == "D-BUS Service" && a.key == key);
                found.map(|a| a.value.clone())
            };
            if let (Some(unit), Some(name)) = (field("SystemdService"), field("Name")) {
                found.push(Trigger {
                    unit,
                    by: format!("D-Bus name {name}"),
                    file: path,
                });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wants_of_rules() {
        let text = "# ENV{SYSTEMD_WANTS}=\"no.service\"\n\
            ACTION==\"add\", ENV{SYSTEMD_WANTS}+=\"a.service b@$name.service\", TAG+=\"systemd\"\n\
            ENV{SYSTEMD_WANTS}==\"x.service\", GOTO=\"end\"\n";
        assert_eq!(wanted(text), ["a.service", "b@.service"]);
    }
}
