//! Whether a unit can start here at all.

use std::collections::HashSet;
use std::path::Path;

use sexton_host::Kind;

use crate::unit_file::condition::{self, Outcome};
use crate::unit_file::graph;
use crate::unit_file::name::{self, Form};
use crate::unit_file::program;
use crate::unit_file::set::{Unit, UnitSet};
use crate::unit_file::settings::Settings;
use crate::unit_file::timer;
use crate::unit_file::tree::Tree;

/// What keeps a unit from starting on this image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hindrance {
    /// It fails, each time it is started.
    Fails(String),
    /// It is skipped, quietly: a condition does not hold.
    Skipped(String),
    /// It may fail: what it needs is where this program cannot look.
    Unknown(String),
}

/// Where systemd looks for a program that is named without its folder.
pub(crate) const PROGRAM_FOLDERS: &[&str] = &[
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// Folders that only a boot fills.
pub(crate) const VOLATILE: &[&str] = &["/run", "/proc", "/sys", "/dev", "/tmp", "/var/run"];

/// The users and groups of an image.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    users: HashSet<String>,
    groups: HashSet<String>,
    /// Whether there may be more of them, in a directory service.
    is_open: bool,
}

impl Accounts {
    pub(crate) fn read(tree: &mut Tree<'_>) -> Self {
        let mut accounts = Self::default();
        let first = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
        for (file, names) in [
            ("passwd", &mut accounts.users),
            ("group", &mut accounts.groups),
        ] {
            for folder in ["/etc", "/usr/lib"] {
                let text = tree.text(&Path::new(folder).join(file));
                names.extend(text.unwrap_or_default().lines().map(first));
            }
        }
        let table = tree.text(Path::new("/etc/nsswitch.conf"));
        accounts.is_open = is_open(&table.unwrap_or_default());
        // systemd-sysusers makes these at boot, before services that need them.
        for folder in ["/etc/sysusers.d", "/usr/lib/sysusers.d"] {
            for entry in tree.list(Path::new(folder)) {
                let path = Path::new(folder).join(&entry.name);
                let text = tree.text(&path).unwrap_or_default();
                for line in text.lines() {
                    let mut words = line.split_whitespace();
                    match (words.next(), words.next()) {
                        (Some(sort), Some(name)) if sort.starts_with('u') => {
                            accounts.users.insert(name.to_owned());
                            accounts.groups.insert(name.to_owned());
                        }
                        (Some("g"), Some(name)) => {
                            accounts.groups.insert(name.to_owned());
                        }
                        _ => {}
                    }
                }
            }
        }
        accounts
    }
}

/// Whether accounts are looked up in more than files.
fn is_open(table: &str) -> bool {
    const FILES: &[&str] = &[
        "files", "compat", "systemd", "altfiles", "usrfiles", "db", "role",
    ];
    let is_elsewhere = |word: &str| !word.starts_with('[') && !FILES.contains(&word);
    let lines = table.lines().filter_map(|line| {
        let line = line.split('#').next().unwrap_or_default();
        line.split_once(':')
    });
    let mut lines = lines.filter(|(key, _)| ["passwd", "group"].contains(&key.trim()));
    lines.any(|(_, words)| words.split_whitespace().any(is_elsewhere))
}

/// What keeps a unit from starting: the first thing that does.
pub(crate) fn hindrance(
    tree: &Tree<'_>,
    set: &UnitSet,
    accounts: &Accounts,
    unit: &Unit,
) -> Option<Hindrance> {
    let settings = &unit.settings;
    // Conditions come first, as in systemd: a unit that is skipped does not fail, and of one
    // that may be skipped nobody can say that it will.
    match condition::outcome(tree, settings, "Condition") {
        Outcome::Unmet(text) => {
            return Some(Hindrance::Skipped(format!("{text} does not hold here")));
        }
        Outcome::Unknown => return None,
        Outcome::Met => {}
    }
    let fails = match condition::outcome(tree, settings, "Assert") {
        Outcome::Unmet(text) => Some(format!("{text} does not hold here")),
        Outcome::Met | Outcome::Unknown => None,
    };
    let fails = fails
        .or_else(|| refused(&unit.name, settings))
        .or_else(|| missing_folder(tree, set, settings))
        .or_else(|| program::missing(tree, set, settings))
        .or_else(|| missing_environment(tree, settings))
        .or_else(|| missing_account(accounts, settings))
        .or_else(|| missing_unit(tree, set, settings))
        .or_else(|| no_target(tree, set, &unit.name, settings))?;
    // What is missing may be on a filesystem that is not here.
    Some(match set.unseen(&fails) {
        Some(place) => Hindrance::Unknown(format!(
            "{fails}, and {} is another filesystem, which is not part of this image",
            place.display()
        )),
        None => Hindrance::Fails(fails),
    })
}

fn missing_environment(tree: &Tree<'_>, settings: &Settings) -> Option<String> {
    let lines = settings.lines("Service", "EnvironmentFile");
    let is_there = |line: &&str| {
        let path = Path::new(line);
        let is_pattern = line.contains(['*', '?', '[']);
        tree.exists(path) || is_pattern && condition::any_matches(tree, path)
    };
    let may_tell = |line: &&str| {
        let path = Path::new(line);
        let is_volatile = VOLATILE.iter().any(|folder| path.starts_with(folder));
        path.is_absolute() && !line.contains('%') && !is_volatile
    };
    let path = lines
        .into_iter()
        .find(|line| may_tell(line) && !is_there(line))?;
    Some(format!("EnvironmentFile={path}: no such file"))
}

fn missing_account(accounts: &Accounts, settings: &Settings) -> Option<String> {
    let knows_all = !accounts.users.is_empty() && !accounts.is_open;
    if settings.is_true("Service", "DynamicUser") || !knows_all {
        return None;
    }
    let one = |key: &'static str| {
        let name = settings.last("Service", key).map(str::to_owned);
        name.into_iter().map(move |name| (key, name))
    };
    let more = settings.words("Service", "SupplementaryGroups");
    let more = more.into_iter().map(|name| ("SupplementaryGroups", name));
    let named = one("User").chain(one("Group")).chain(more);
    for (key, name) in named {
        let known = match key {
            "User" => &accounts.users,
            _ => &accounts.groups,
        };
        let is_number = name.bytes().all(|b| b.is_ascii_digit());
        if !is_number && !name.contains('%') && !known.contains(&name) {
            return Some(format!("{key}={name}: there is none of that name"));
        }
    }
    None
}

/// Folders that must be there before a program runs. systemd and `systemd-tmpfiles` make some
/// of them at boot.
fn missing_folder(tree: &Tree<'_>, set: &UnitSet, settings: &Settings) -> Option<String> {
    let is_made = |path: &Path| {
        let own = [
            ("StateDirectory", "/var/lib"),
            ("CacheDirectory", "/var/cache"),
            ("LogsDirectory", "/var/log"),
            ("ConfigurationDirectory", "/etc"),
        ];
        let is_own = own.iter().any(|(key, folder)| {
            let names = settings.words("Service", key);
            let names = names
                .iter()
                .map(|name| name.split(':').next().unwrap_or(name));
            names
                .into_iter()
                .any(|name| Path::new(folder).join(name).starts_with(path))
        });
        is_own || set.makes_folder(tree, path)
    };
    // Inside another root, the working directory is that root's.
    let has_root = has_own_root(settings);
    let keys = ["RootDirectory", "WorkingDirectory"];
    let keys = if has_root { &keys[..1] } else { &keys[..] };
    for key in keys {
        let Some(value) = settings.last("Service", key) else {
            continue;
        };
        let path = Path::new(value);
        let is_volatile = VOLATILE.iter().any(|folder| path.starts_with(folder));
        if !path.is_absolute() || is_volatile || value.contains('%') || is_made(path) {
            continue;
        }
        match tree.root().meta(path) {
            Ok(meta) if meta.kind == Kind::Dir => {}
            Ok(_) => return Some(format!("{key}={value}: it is not a folder")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Some(format!("{key}={value}: no such folder"));
            }
            Err(_) => {}
        }
    }
    None
}

pub(crate) fn has_own_root(settings: &Settings) -> bool {
    let is_set = |key| settings.last("Service", key).is_some();
    is_set("RootDirectory") || is_set("RootImage")
}

/// What systemd refuses to load: a service without a command or with two, where it takes one, and
/// settings that do not go together.
fn refused(name: &str, settings: &Settings) -> Option<String> {
    let listens = settings.starting_with("Socket", "Listen").next().is_some();
    if name::sort(name) == "socket" && !settings.is_empty() && !listens {
        return Some("it has no Listen*= setting".into());
    }
    if name::sort(name) != "service" || settings.is_empty() {
        return None;
    }
    let n_commands = settings.lines("Service", "ExecStart").len();
    let has_stop = !settings.lines("Service", "ExecStop").is_empty();
    let has_action = settings
        .last("Unit", "SuccessAction")
        .is_some_and(|action| action != "none");
    let is_oneshot = settings.last("Service", "Type") == Some("oneshot");
    let stays = settings.is_true("Service", "RemainAfterExit");
    let restart = settings.last("Service", "Restart");
    let is_dbus = settings.last("Service", "Type") == Some("dbus");
    if is_dbus && settings.last("Service", "BusName").is_none() {
        return Some("it is Type=dbus, and has no BusName=".into());
    }
    if let Some(when @ ("always" | "on-success")) = restart.filter(|_| is_oneshot) {
        return Some(format!("Type=oneshot does not go with Restart={when}"));
    }
    match (n_commands, is_oneshot) {
        (0, _) if !has_stop && !has_action => Some("it has no ExecStart=".into()),
        (0, false) => Some("it has no ExecStart=, and is not Type=oneshot".into()),
        (0, true) if !stays && !has_action => {
            Some("it has no ExecStart=, and no RemainAfterExit=yes".into())
        }
        (2.., false) => Some(format!(
            "it has {n_commands} ExecStart=, and only Type=oneshot may have more than one"
        )),
        _ => None,
    }
}

/// A timer that never elapses, and a socket, timer or path without the unit that it starts.
fn no_target(tree: &Tree<'_>, set: &UnitSet, name: &str, settings: &Settings) -> Option<String> {
    if name::sort(name) == "timer" && !timer::elapses(settings) {
        let written = settings.lines("Timer", "OnCalendar");
        let written = written.first().map_or_else(
            || "it has no On*= setting".to_owned(),
            |value| format!("OnCalendar={value}: not a time of the calendar"),
        );
        return Some(written);
    }
    let unit = graph::triggered(name, settings)?;
    if unit.contains('%') || name::form(name) == Some(Form::Template) {
        return None;
    }
    match set.find(&unit) {
        Some(found) if found.state.is_masked() => {
            Some(format!("it starts {unit}, which is masked"))
        }
        None if !set.may_be_generated(tree, &unit) => {
            Some(format!("it starts {unit}, and there is no such unit"))
        }
        _ => None,
    }
}

fn missing_unit(tree: &Tree<'_>, set: &UnitSet, settings: &Settings) -> Option<String> {
    for key in ["Requires", "BindsTo", "Requisite"] {
        for unit in settings.words("Unit", key) {
            // These are made by the kernel or by generators, not by files.
            let is_made =
                ["device", "mount", "swap", "slice", "scope"].contains(&name::sort(&unit));
            if is_made || unit.contains('%') {
                continue;
            }
            match set.find(&unit) {
                None if set.may_be_generated(tree, &unit) => {}
                None => return Some(format!("{key}={unit}: there is no such unit")),
                Some(found) if found.state.is_masked() => {
                    return Some(format!("{key}={unit}: that unit is masked"));
                }
                Some(_) => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_of_a_directory_service() {
        let check = |table: &str, expected| assert_eq!(is_open(table), expected, "{table}");
        check(
            "passwd: files systemd\ngroup:\tfiles [SUCCESS=merge] systemd\n",
            false,
        );
        check("passwd: files sss\n", true);
        check(" group : compat ldap # x\n", true);
        check("# passwd: ldap\nhosts: files dns\n", false);
        check("", false);
    }

    #[test]
    fn what_systemd_refuses() {
        let check = |name: &str, text: &str, expected: Option<&str>| {
            let refused = refused(name, &Settings::parse(text));
            assert_eq!(refused.as_deref(), expected, "{text}");
        };
        let start = "[Service]\nExecStart=/x\n";
        check("a.service", start, None);
        check(
            "a.socket",
            "[Socket]\nAccept=no\n",
            Some("it has no Listen*= setting"),
        );
        check("a.socket", "[Socket]\nListenStream=80\n", None);
        let dbus = format!("{start}Type=dbus\n");
        check(
            "a.service",
            &dbus,
            Some("it is Type=dbus, and has no BusName="),
        );
        check("a.service", &format!("{dbus}BusName=a.b\n"), None);
        let oneshot = format!("{start}Type=oneshot\nRestart=");
        let refused = Some("Type=oneshot does not go with Restart=always");
        check("a.service", &format!("{oneshot}always\n"), refused);
        check("a.service", &format!("{oneshot}on-failure\n"), None);
    }
}
