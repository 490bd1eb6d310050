//! Whether a unit can start here at all.

use std::collections::HashSet;
use std::path::Path;

use crate::unit_file::condition::{self, Outcome};
use crate::unit_file::file;
use crate::unit_file::interpreter;
use crate::unit_file::set::UnitSet;
use crate::unit_file::settings::Settings;
use crate::unit_file::tree::Tree;

/// What keeps a unit from starting on this image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hindrance {
    /// It fails, each time it is started.
    Fails(String),
    /// It is skipped, quietly: a condition does not hold.
    Skipped(String),
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

/// What keeps a unit from starting: the first thing that does.
pub(crate) fn hindrance(
    tree: &Tree<'_>,
    set: &UnitSet,
    accounts: &Accounts,
    settings: &Settings,
) -> Option<Hindrance> {
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
    fails
        .or_else(|| missing_program(tree, settings))
        .or_else(|| missing_environment(tree, settings))
        .or_else(|| missing_account(accounts, settings))
        .or_else(|| missing_unit(tree, set, settings))
        .map(Hindrance::Fails)
}

fn missing_program(tree: &Tree<'_>, settings: &Settings) -> Option<String> {
    // Inside another root everything is elsewhere.
    if settings.last("Service", "RootDirectory").is_some()
        || settings.last("Service", "RootImage").is_some()
    {
        return None;
    }
    let sets_path = |word: &String| word.starts_with("PATH=");
    let knows_path = !settings
        .words("Service", "Environment")
        .iter()
        .any(sets_path)
        && settings.lines("Service", "EnvironmentFile").is_empty()
        && settings.last("Service", "ExecSearchPath").is_none();
    for key in ["ExecStartPre", "ExecStart"] {
        for line in settings.lines("Service", key) {
            let words = file::words(line);
            let first = words.first()?;
            let program = first.trim_start_matches(['@', '-', ':', '+', '!', '|']);
            let prefix = &first[..first.len() - program.len()];
            if prefix.contains('-') || program.contains(['%', '$']) {
                continue;
            }
            if let Some(why) = program_is_missing(tree, program, knows_path) {
                return Some(format!("{key}={program}: {why}"));
            }
        }
    }
    None
}

fn program_is_missing(tree: &Tree<'_>, program: &str, knows_path: bool) -> Option<String> {
    let path = Path::new(program);
    if !path.is_absolute() {
        return match interpreter::on_path(tree, program) {
            Some(path) => interpreter::missing(tree, &path, knows_path),
            None if !knows_path => None,
            None => Some("no such program".into()),
        };
    }
    if VOLATILE.iter().any(|folder| path.starts_with(folder)) {
        return None;
    }
    match tree.root().meta(path) {
        Ok(meta) if !meta.is_executable() => Some("it is not executable".into()),
        Ok(_) => interpreter::missing(tree, path, knows_path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some("no such file".into()),
        // What cannot be seen is not called missing.
        Err(_) => None,
    }
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
    if settings.is_true("Service", "DynamicUser") || accounts.users.is_empty() {
        return None;
    }
    for (key, known) in [("User", &accounts.users), ("Group", &accounts.groups)] {
        let Some(name) = settings.last("Service", key) else {
            continue;
        };
        let is_number = name.bytes().all(|b| b.is_ascii_digit());
        if !is_number && !name.contains('%') && !known.contains(name) {
            return Some(format!("{key}={name}: there is none of that name"));
        }
    }
    None
}

fn missing_unit(tree: &Tree<'_>, set: &UnitSet, settings: &Settings) -> Option<String> {
    for key in ["Requires", "BindsTo", "Requisite"] {
        for unit in settings.words("Unit", key) {
            // These are made by the kernel or by generators, not by files.
            let is_made = ["device", "mount", "swap", "slice", "scope"]
                .contains(&crate::unit_file::name::sort(&unit));
            if is_made || unit.contains('%') {
                continue;
            }
            match set.find(&unit) {
                None if may_be_generated(tree, &unit) => {}
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

/// Whether a generator is named after the unit or knows its name: then it may make the unit
/// at boot. `rpc-pipefs-generator` makes `rpc_pipefs.target`, and its code holds that name
/// only in pieces.
fn may_be_generated(tree: &Tree<'_>, unit: &str) -> bool {
    const FOLDERS: &[&str] = &[
        "/etc/systemd/system-generators",
        "/usr/local/lib/systemd/system-generators",
        "/usr/lib/systemd/system-generators",
        "/lib/systemd/system-generators",
    ];
    /// The largest of systemd's own is 200 kB.
    const PROGRAM_BYTES_MAX: u64 = 4 << 20;
    let plain = |name: &str| name.replace('_', "-");
    let named_after = format!("{}-generator", plain(crate::unit_file::name::stem(unit)));
    let knows = |path: &Path| {
        let program = tree.read(path, PROGRAM_BYTES_MAX);
        let program = program.unwrap_or_default();
        program
            .windows(unit.len())
            .any(|window| window == unit.as_bytes())
    };
    FOLDERS.iter().any(|folder| {
        let entries = tree.root().list(Path::new(folder)).unwrap_or_default();
        entries.iter().any(|entry| {
            let name = entry.name.to_string_lossy();
            plain(&name) == named_after || knows(&Path::new(folder).join(&entry.name))
        })
    })
}
