//! What a boot mounts: by `/etc/fstab`, as `systemd-fstab-generator` makes units of it, and by units.

use sexton_signatures::units::grammar;

use crate::unit_file::name;
use crate::unit_file::set::Unit;
use crate::unit_file::settings::Settings;

/// What a mount unit mounts, unless it is masked.
pub(crate) fn of_unit(unit: &Unit) -> Option<(grammar::Mount, String)> {
    let said = |key| unit.settings.last("Mount", key).unwrap_or_default();
    let is_mount = name::sort(&unit.name) == "mount" && !unit.state.is_masked();
    let mount = grammar::Mount {
        what: said("What").to_owned(),
        place: said("Where").to_owned(),
        sort: said("Type").to_owned(),
        options: said("Options").split(',').map(str::to_owned).collect(),
    };
    (is_mount && !mount.what.is_empty()).then(|| (mount, unit.name.clone()))
}

/// What systemd refuses of a mount or automount: a place that its name does not say, and a mount
/// of nothing.
pub(crate) fn refused(unit: &str, settings: &Settings) -> Option<String> {
    let sort = name::sort(unit);
    let section = if sort == "mount" {
        "Mount"
    } else {
        "Automount"
    };
    let place = settings.last(section, "Where");
    let is_other =
        |place: &&str| !place.contains('%') && format!("{}.{sort}", escape(place)) != unit;
    match place.filter(is_other) {
        Some(_) => Some("Where= does not fit its name".into()),
        None if sort == "mount"
            && unit != "-.mount"
            && settings.last("Mount", "What").is_none() =>
        {
            Some("it has no What= setting".into())
        }
        None => None,
    }
}

/// Names of the mounts and swaps in `/etc/fstab`.
pub(crate) fn names(table: &str) -> Vec<String> {
    let name = |mount: grammar::Mount| match mount.sort.as_str() {
        "swap" => Some(format!("{}.swap", escape(&device(&mount.what)?))),
        _ if mount.place.starts_with('/') => Some(format!("{}.mount", escape(&mount.place))),
        _ => None,
    };
    let mounts = grammar::fstab(table).into_iter();
    mounts.filter_map(name).collect()
}

/// The device that `UUID=` and its kin name, as `systemd-fstab-generator` looks for it.
fn device(what: &str) -> Option<String> {
    let (tag, value) = match what.split_once('=') {
        None => return what.starts_with('/').then(|| what.to_owned()),
        Some(found) => found,
    };
    let folder = match tag {
        "UUID" => "by-uuid",
        "LABEL" => "by-label",
        "PARTUUID" => "by-partuuid",
        "PARTLABEL" => "by-partlabel",
        _ => return None,
    };
    Some(format!("/dev/disk/{folder}/{}", encoded(value)))
}

/// A name as udev writes it in `/dev/disk`: what is neither a letter nor one of a few signs is
/// `\x20`.
fn encoded(value: &str) -> String {
    let mut name = String::new();
    for c in value.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || "#+-.:=@_".contains(c) || !c.is_ascii() => {
                name.push(c);
            }
            c => name.push_str(&format!("\\x{:02x}", c as u32)),
        }
    }
    name
}

/// A path as systemd writes it in names: `/dev/disk/by-id` is `dev-disk-by\x2did`.
fn escape(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return "-".into();
    }
    let mut name = String::new();
    for (n, b) in parts.join("/").bytes().enumerate() {
        match b {
            b'/' => name.push('-'),
            b'.' if n == 0 => name.push_str("\\x2e"),
            b if b.is_ascii_alphanumeric() || b == b':' || b == b'_' || b == b'.' => {
                name.push(b.into())
            }
            b => name.push_str(&format!("\\x{b:02x}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_that_systemd_refuses() {
        let check = |unit: &str, text: &str, expected: Option<&str>| {
            let refused = refused(unit, &Settings::parse(text));
            assert_eq!(refused.as_deref(), expected, "{unit} {text}");
        };
        let mount = "[Mount]\nWhat=/dev/sdb\nWhere=/srv/a-b/\n";
        check(r"srv-a\x2db.mount", mount, None);
        let other = Some("Where= does not fit its name");
        check("srv-a-b.mount", mount, other);
        check("srv.mount", "[Mount]\nWhat=/dev/sdb\n", None);
        let nothing = Some("it has no What= setting");
        check("srv.mount", "[Mount]\nWhere=/srv\n", nothing);
        check("srv.automount", "[Automount]\nWhere=/srv\n", None);
        let other = Some("Where= does not fit its name");
        check("srv.automount", "[Automount]\nWhere=/x\n", other);
    }

    #[test]
    fn mounts_of_a_table() {
        let table = "# c\n/dev/sda1 / ext4 defaults 0 1\nUUID=1 /srv/my-data xfs x\n/swap.img none swap sw 0 0\nproc\n\
            x /a\\040b ext4\nUUID=1-2 none swap\nLABEL=a\\040b none swap\n";
        assert_eq!(
            names(table),
            [
                "-.mount",
                r"srv-my\x2ddata.mount",
                "swap.img.swap",
                r"a\x20b.mount",
                r"dev-disk-by\x2duuid-1\x2d2.swap",
                r"dev-disk-by\x2dlabel-a\x5cx20b.swap"
            ]
        );
    }
}
