//! Whether a unit can start here at all.

use std::path::Path;

use sexton_host::Kind;

use crate::unit_file::accounts::Accounts;
use crate::unit_file::condition::{self, Outcome};
use crate::unit_file::graph;
use crate::unit_file::mounts;
use crate::unit_file::name::{self, Form};
use crate::unit_file::places;
use crate::unit_file::program;
use crate::unit_file::set::{Unit, UnitSet};
use crate::unit_file::settings::Settings;
use crate::unit_file::state::State;
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

/// What keeps a unit from starting: the first thing that does.
pub(crate) fn hindrance(
    tree: &Tree<'_>,
    set: &UnitSet,
    accounts: &Accounts,
    unit: &Unit,
) -> Option<Hindrance> {
    // A template is not started, and each of its instances may be set otherwise.
    if name::form(&unit.name) == Some(Form::Template) {
        return None;
    }
    let settings = &unit.settings;
    // Conditions come first, as in systemd: a unit that is skipped does not fail, and of one
    // that may be skipped nobody can say that it will.
    match condition::outcome(tree, settings, "Condition") {
        Outcome::Unmet(text) => {
            let skipped = format!("{text} does not hold here");
            return Some(match set.doubt(&skipped) {
                Some(doubt) => Hindrance::Unknown(doubt),
                None => Hindrance::Skipped(skipped),
            });
        }
        Outcome::Unknown => return None,
        Outcome::Met => {}
    }
    // Of what a generator will make nothing is known yet.
    let is_read = unit.state != State::Generated && unit.bad.is_none();
    let fails = match condition::outcome(tree, settings, "Assert") {
        Outcome::Unmet(text) => Some(format!("{text} does not hold here")),
        Outcome::Met | Outcome::Unknown => None,
    };
    let fails = fails
        .or_else(|| is_read.then(|| refused(&unit.name, settings)).flatten())
        .or_else(|| missing_folder(tree, set, accounts, unit))
        .or_else(|| {
            places::missing(tree, settings, &|path| {
                is_made(tree, set, accounts, unit, path)
            })
        })
        .or_else(|| program::missing(tree, set, settings))
        .or_else(|| missing_environment(tree, settings))
        .or_else(|| missing_account(accounts, settings))
        .or_else(|| missing_unit(tree, set, unit))
        .or_else(|| no_target(tree, set, &unit.name, settings))?;
    // What is missing may be on a filesystem that is not here.
    Some(match set.doubt(&fails) {
        Some(doubt) => Hindrance::Unknown(doubt),
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
    if settings.is_true("Service", "DynamicUser") || !accounts.are_known() {
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
        let is_known = match key {
            "User" => accounts.has_user(&name),
            _ => accounts.has_group(&name),
        };
        let is_number = name.bytes().all(|b| b.is_ascii_digit());
        if !is_number && !name.contains('%') && !is_known {
            return Some(format!("{key}={name}: there is none of that name"));
        }
    }
    None
}

/// Whether a boot makes a folder or what is in it: systemd for the unit, `systemd-tmpfiles`,
/// what makes homes, or a command of another unit.
fn is_made(tree: &Tree<'_>, set: &UnitSet, accounts: &Accounts, unit: &Unit, path: &Path) -> bool {
    let own = [
        ("StateDirectory", "/var/lib"),
        ("CacheDirectory", "/var/cache"),
        ("LogsDirectory", "/var/log"),
        ("ConfigurationDirectory", "/etc"),
    ];
    let is_own = own.iter().any(|(key, folder)| {
        let names = unit.settings.words("Service", key);
        let names = names
            .iter()
            .map(|name| name.split(':').next().unwrap_or(name));
        names
            .into_iter()
            .any(|name| Path::new(folder).join(name).starts_with(path))
    });
    is_own
        || accounts.makes_home(path)
        || set.makes_folder(tree, path)
        || set.other_makes(unit, path)
}

/// Folders that must be there before a program runs.
fn missing_folder(
    tree: &Tree<'_>,
    set: &UnitSet,
    accounts: &Accounts,
    unit: &Unit,
) -> Option<String> {
    let settings = &unit.settings;
    let is_made = |path: &Path| is_made(tree, set, accounts, unit, path);
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
        let is_elsewhere = value.contains('%') || program::is_laid_over(settings, path);
        if !path.is_absolute() || is_volatile || is_elsewhere || is_made(path) {
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
    let says = |section, start| settings.starting_with(section, start).next().is_some();
    match name::sort(name) {
        "service" => refused_service(settings),
        "mount" | "automount" => mounts::refused(name, settings),
        "socket" if !says("Socket", "Listen") => Some("it has no Listen*= setting".into()),
        "path" if !says("Path", "Path") && !says("Path", "DirectoryNotEmpty") => {
            Some("it has no Path*= setting".into())
        }
        _ => None,
    }
}

const SERVICE_TYPES: &[&str] = &[
    "simple",
    "exec",
    "forking",
    "oneshot",
    "dbus",
    "notify",
    "notify-reload",
    "idle",
];

const RESTARTS: &[&str] = &[
    "no",
    "on-success",
    "on-failure",
    "on-abnormal",
    "on-watchdog",
    "on-abort",
    "always",
];

/// How many commands a line holds: a semicolon between spaces parts them. Where there are
/// quotes it may be in one, and is not counted.
fn n_commands(line: &str) -> usize {
    match line.contains(['"', '\'']) {
        true => 1,
        false => {
            let words: Vec<&str> = line.split_whitespace().collect();
            let commands = words.split(|word| *word == ";");
            commands.filter(|command| !command.is_empty()).count()
        }
    }
}

/// What `service_verify` of systemd refuses, in its order.
fn refused_service(settings: &Settings) -> Option<String> {
    let commands = settings.lines("Service", "ExecStart");
    let n_commands = commands.into_iter().map(n_commands).sum::<usize>();
    let has_name = settings.last("Service", "BusName").is_some();
    let sort = match settings.last_word("Service", "Type", SERVICE_TYPES) {
        Some(sort) => sort,
        None if has_name => "dbus",
        None if n_commands > 0 => "simple",
        None => "oneshot",
    };
    let is_oneshot = sort == "oneshot";
    let has_action = settings
        .last("Unit", "SuccessAction")
        .is_some_and(|action| action != "none");
    let has_stop = !settings.lines("Service", "ExecStop").is_empty();
    let stays = settings.is_true("Service", "RemainAfterExit");
    match n_commands {
        0 if !has_stop && !has_action => return Some("it has no ExecStart=".into()),
        0 if !is_oneshot => return Some("it has no ExecStart=, and is not Type=oneshot".into()),
        0 if !stays && !has_action => {
            return Some("it has no ExecStart=, and no RemainAfterExit=yes".into());
        }
        2.. if !is_oneshot => {
            return Some(format!(
                "it has {n_commands} ExecStart=, and only Type=oneshot may have more than one"
            ));
        }
        _ => {}
    }
    match settings.last_word("Service", "Restart", RESTARTS) {
        Some(when @ ("always" | "on-success")) if is_oneshot => {
            Some(format!("Type=oneshot does not go with Restart={when}"))
        }
        _ if sort == "dbus" && !has_name => Some("it is Type=dbus, and has no BusName=".into()),
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
        None if !set.may_be_generated(tree, &unit) && !set.may_be_unseen(tree, &unit) => {
            Some(format!("it starts {unit}, and there is no such unit"))
        }
        _ => None,
    }
}

fn missing_unit(tree: &Tree<'_>, set: &UnitSet, unit: &Unit) -> Option<String> {
    for key in ["Requires", "BindsTo", "Requisite"] {
        let written = unit.settings.words("Unit", key).into_iter();
        for needed in written.filter_map(|word| graph::expand(&unit.name, &word)) {
            if let Some(why) = lacks(tree, set, &needed) {
                return Some(format!("{key}={needed}: {why}"));
            }
        }
    }
    set.required_by_links(&unit.name).iter().find_map(|needed| {
        let why = lacks(tree, set, needed)?;
        Some(format!("a link in {}.requires: {needed}: {why}", unit.name))
    })
}

/// Why a unit that another one needs cannot be had.
fn lacks(tree: &Tree<'_>, set: &UnitSet, needed: &str) -> Option<&'static str> {
    // These are made by the kernel or by generators, not by files.
    let is_made = ["device", "mount", "swap", "slice", "scope"].contains(&name::sort(needed));
    if is_made {
        return None;
    }
    match set.find(needed) {
        None if set.may_be_generated(tree, needed) || set.may_be_unseen(tree, needed) => None,
        None => Some("there is no such unit"),
        Some(found) if found.state.is_masked() => Some("that unit is masked"),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        check("a.socket", "[Socket]\n", Some("it has no Listen*= setting"));
        check(
            "a.path",
            "[Path]\nMakeDirectory=yes\n",
            Some("it has no Path*= setting"),
        );
        check("a.path", "[Path]\nDirectoryNotEmpty=/x\n", None);
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
        // Without a type, and with nothing to start, it is oneshot.
        let stop = "[Service]\nExecStop=/x\n";
        check("a.service", &format!("{stop}RemainAfterExit=yes\n"), None);
        let refused = Some("it has no ExecStart=, and no RemainAfterExit=yes");
        check("a.service", stop, refused);
        check(
            "a.service",
            "[Unit]\nSuccessAction=reboot\n[Service]\n",
            None,
        );
        let refused = Some("it has no ExecStart=, and is not Type=oneshot");
        check("a.service", &format!("{stop}BusName=a.b\n"), refused);
        check("a.service", &format!("{start}Type=nonsense\n"), None);
        let oneshot = format!("{start}ExecStart=/y\nType=oneshot\n");
        check("a.service", &format!("{oneshot}Type=Simple\n"), None);
        check("a.service", &format!("{oneshot}Type=\n"), None);
        let refused = Some("it has 2 ExecStart=, and only Type=oneshot may have more than one");
        check("a.service", "[Service]\nExecStart=/x ; /y\n", refused);
        check("a.service", "[Service]\nExecStart=/x ';'\n", None);
        check("a.service", "[Service]\nExecStart=/x ;\n", None);
        check("a.service", "[Service]\nExecStart=/x \\;\n", None);
    }
}
