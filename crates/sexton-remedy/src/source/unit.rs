//! A systemd unit as the source of trouble.
//!
//! Everything goes through `systemctl`: what is done is what a person would type, and the
//! plan shows exactly that.

use std::fs;
use std::path::{Path, PathBuf};

use sexton_model::fix::{Act, PlannedStep};

use crate::command::{line, run};
use crate::consent::Consent;
use crate::error::RemedyError;
use crate::journal::{Change, Journal};

const SYSTEMCTL: &str = "systemctl";

/// Where an administrator's units are; a unit file there is in the way of a mask.
const ADMIN: &str = "/etc/systemd/system";

const DROP_IN: &str = "50-sexton-bound.conf";

/// Five starts an hour: a loop of ten seconds ends within a minute, a service that fails
/// once a day is left alone. `RestartSteps` is known from systemd 254 on; others ignore it.
const BOUND: &str = "\
# Written by sexton: bounds restarts. `sexton fix --undo` or removing this file takes it back.
[Unit]
StartLimitIntervalSec=1h
StartLimitBurst=5
";

/// How dangerous it is to mask a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    /// Known to be safe where it has no use.
    Low,
    /// It does something that somebody may want.
    Higher,
    /// Nobody has said.
    Unknown,
}

/// How a unit is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Stopped, disabled and masked, with all that triggers it.
    Mask,
    /// Stopped with all that triggers it; the next boot starts it again.
    Stop,
    /// Left running, but it may start only so often.
    Bound,
}

impl How {
    /// How an act stops a unit; `None` when it stops none.
    pub fn of(act: Act) -> Option<Self> {
        match act {
            Act::Bound => Some(Self::Bound),
            Act::Stop => Some(Self::Stop),
            Act::Mask => Some(Self::Mask),
            Act::Purge => None,
        }
    }

    /// What fits the risk: only what is known to be safe is masked, unless a person names
    /// the unit and so takes it upon them.
    pub fn fitting(risk: Risk, is_named_by_user: bool) -> Self {
        match (risk, is_named_by_user) {
            (Risk::Low, _) | (_, true) => Self::Mask,
            _ => Self::Bound,
        }
    }
}

/// A unit, as systemd shows it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its name.
    pub name: String,
    /// Its file state: `enabled`, `disabled`, `static`, ...
    pub enabled: String,
    /// Whether it runs or is about to.
    pub is_active: bool,
    /// Where its file is.
    pub fragment: PathBuf,
    /// Sockets, timers and paths that start it, with their states.
    pub triggers: Vec<Unit>,
}

impl Unit {
    /// Asks systemd for a unit and for what triggers it. `None` when there is no such unit.
    pub fn look(name: &str) -> Result<Option<Self>, RemedyError> {
        let Some((mut unit, triggers)) = Self::show(name)? else {
            return Ok(None);
        };
        for trigger in triggers {
            unit.triggers
                .extend(Self::show(&trigger)?.map(|(unit, _)| unit));
        }
        Ok(Some(unit))
    }

    fn show(name: &str) -> Result<Option<(Self, Vec<String>)>, RemedyError> {
        const WANTED: &str = "Id,LoadState,ActiveState,UnitFileState,FragmentPath,TriggeredBy";
        let shown = run(SYSTEMCTL, &["show", "--no-pager", "-p", WANTED, "--", name])?;
        Ok(parse(&shown))
    }

    /// Whether a unit file of the administrator's own is in the way of a mask.
    fn cannot_be_masked(&self) -> bool {
        self.fragment.starts_with(ADMIN)
    }

    fn drop_in(&self) -> PathBuf {
        Path::new(ADMIN)
            .join(format!("{}.d", self.name))
            .join(DROP_IN)
    }

    /// The unit and what triggers it, triggers first: else they would start it again.
    fn all(&self) -> impl Iterator<Item = &Unit> {
        self.triggers.iter().chain([self])
    }

    /// What stopping it would change.
    pub fn plan(&self, how: How) -> PlannedStep {
        match how {
            How::Mask => PlannedStep {
                title: format!("stop {} and keep it from starting", self.name),
                changes: self.commands(how).map(|args| typed(&args)).collect(),
                undo: Some("starts, enables and unmasks what was".into()),
                predicted: None,
                withheld: None,
                except: None,
            },
            How::Stop => PlannedStep {
                title: format!("stop {} until the next boot", self.name),
                changes: self.commands(how).map(|args| typed(&args)).collect(),
                undo: Some("starts what ran".into()),
                predicted: None,
                withheld: None,
                except: None,
            },
            How::Bound => PlannedStep {
                title: format!("bound the restarts of {}", self.name),
                changes: vec![
                    format!("write {}: 5 starts an hour", self.drop_in().display()),
                    typed(&["daemon-reload".into()]),
                ],
                undo: Some("removes that file".into()),
                predicted: None,
                withheld: None,
                except: None,
            },
        }
    }

    /// The calls of `systemctl` that stop it, for good if it is to be masked.
    fn commands(&self, how: How) -> impl Iterator<Item = Vec<String>> {
        self.all().flat_map(move |unit| unit.own_commands(how))
    }

    /// Masked first: `disable` fails where a script in `/etc/init.d` has the same name and the
    /// links to it cannot be removed.
    fn own_commands(&self, how: How) -> impl Iterator<Item = Vec<String>> {
        let to = |verb: &str| vec![verb.to_owned(), "--".into(), self.name.clone()];
        let commands = [
            Some(to("stop")),
            self.masks(how).then(|| to("mask")),
            self.disables(how).then(|| to("disable")),
        ];
        commands.into_iter().flatten()
    }

    /// Whether it is stopped even if this call fails: a unit that is masked does not start, enabled
    /// or not.
    fn may_fail(&self, how: How, args: &[String]) -> bool {
        self.masks(how) && args.first().is_some_and(|verb| verb == "disable")
    }

    fn disables(&self, how: How) -> bool {
        how == How::Mask && self.enabled.starts_with("enabled")
    }

    fn masks(&self, how: How) -> bool {
        how == How::Mask && !self.cannot_be_masked() && !self.is_masked()
    }

    fn is_masked(&self) -> bool {
        self.enabled.starts_with("masked")
    }

    /// Stops it.
    pub fn stop(
        &self,
        how: How,
        _consent: &Consent,
        journal: &mut Journal,
    ) -> Result<(), RemedyError> {
        match how {
            How::Mask | How::Stop => {
                for unit in self.all() {
                    journal.note(&unit.change(how))?;
                }
                for unit in self.all() {
                    for args in unit.own_commands(how) {
                        let done = systemctl(&args);
                        if !unit.may_fail(how, &args) {
                            done?;
                        }
                    }
                }
                Ok(())
            }
            How::Bound => {
                let path = self.drop_in();
                journal.note(&Change::NewFile {
                    path: path.clone(),
                    reload: true,
                })?;
                write_new(&path, BOUND)?;
                systemctl(&["daemon-reload".into()])
            }
        }
    }

    fn change(&self, how: How) -> Change {
        Change::Unit {
            unit: self.name.clone(),
            enabled: self.enabled.clone(),
            was_active: self.is_active,
            masked: self.masks(how),
            disabled: self.disables(how),
        }
    }
}

/// Takes back what was done to a unit's settings. Starting it comes last, when all units
/// have theirs again: see [`start_again`].
pub(crate) fn restore(
    unit: &str,
    enabled: &str,
    masked: bool,
    disabled: bool,
) -> Result<(), RemedyError> {
    let to = |verb: &str| vec![verb.to_owned(), "--".into(), unit.to_owned()];
    if masked {
        systemctl(&to("unmask"))?;
    }
    if disabled {
        let mut args = to("enable");
        if enabled == "enabled-runtime" {
            args.insert(1, "--runtime".into());
        }
        systemctl(&args)?;
    }
    Ok(())
}

/// The order in which units are started again: a socket refuses to listen for a service
/// that runs already.
pub(crate) fn start_order(unit: &str) -> u8 {
    match unit.rsplit_once('.') {
        Some((_, "socket")) => 0,
        Some((_, "service")) => 2,
        _ => 1,
    }
}

/// Starts a unit that ran before. Not waited for unless it is a socket: a unit that loops
/// never comes to rest.
pub(crate) fn start_again(unit: &str) -> Result<(), RemedyError> {
    match start_order(unit) {
        0 => listen_again(unit),
        _ => start_unwaited(unit),
    }
}

/// Starts a socket. Where the fix was cut short its service may run already; it then has to
/// step aside for a moment.
fn listen_again(socket: &str) -> Result<(), RemedyError> {
    let listen = || systemctl(&["start".into(), "--".into(), socket.to_owned()]);
    let Err(refused) = listen() else {
        return Ok(());
    };
    let services: Vec<Unit> = triggered_by(socket)?
        .into_iter()
        .filter(|service| service.is_active)
        .collect();
    if services.is_empty() {
        return Err(refused);
    }
    for service in &services {
        systemctl(&["stop".into(), "--".into(), service.name.clone()])?;
    }
    let done = listen();
    for service in &services {
        start_unwaited(&service.name)?;
    }
    done
}

fn start_unwaited(unit: &str) -> Result<(), RemedyError> {
    systemctl(&[
        "start".into(),
        "--no-block".into(),
        "--".into(),
        unit.into(),
    ])
}

/// What a socket starts.
fn triggered_by(socket: &str) -> Result<Vec<Unit>, RemedyError> {
    let names = run(
        SYSTEMCTL,
        &[
            "show",
            "--no-pager",
            "--value",
            "-p",
            "Triggers",
            "--",
            socket,
        ],
    )?;
    let shown = names.split_whitespace().map(Unit::show);
    let units: Result<Vec<_>, _> = shown.collect();
    Ok(units?.into_iter().flatten().map(|(unit, _)| unit).collect())
}

/// Has systemd read its configuration again.
pub(crate) fn reload() -> Result<(), RemedyError> {
    systemctl(&["daemon-reload".into()])
}

fn systemctl(args: &[String]) -> Result<(), RemedyError> {
    let mut all = vec!["--no-pager", "--no-ask-password"];
    all.extend(args.iter().map(String::as_str));
    run(SYSTEMCTL, &all).map(drop)
}

fn typed(args: &[String]) -> String {
    let plain: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .filter(|arg| *arg != "--")
        .collect();
    line(SYSTEMCTL, &plain)
}

/// Writes a file that must not be there yet.
fn write_new(path: &Path, text: &str) -> Result<(), RemedyError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| RemedyError::file("make", folder, source))?;
    }
    let made = fs::File::create_new(path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    made.map_err(|source| RemedyError::file("write", path, source))
}

/// Reads what `systemctl show` says; `None` when there is no such unit.
fn parse(shown: &str) -> Option<(Unit, Vec<String>)> {
    let field = |key: &str| {
        let lines = shown.lines().filter_map(|line| line.split_once('='));
        let mut values = lines
            .filter(|(known, _)| *known == key)
            .map(|(_, value)| value);
        values.next().unwrap_or_default()
    };
    if matches!(field("LoadState"), "not-found" | "") {
        return None;
    }
    let unit = Unit {
        name: field("Id").to_owned(),
        enabled: match field("LoadState") {
            "masked" => "masked".into(),
            _ => field("UnitFileState").to_owned(),
        },
        is_active: matches!(field("ActiveState"), "active" | "activating" | "reloading"),
        fragment: field("FragmentPath").into(),
        triggers: Vec::new(),
    };
    let triggers = field("TriggeredBy").split_whitespace();
    Some((unit, triggers.map(str::to_owned).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(name: &str, enabled: &str, fragment: &str) -> Unit {
        Unit {
            name: name.into(),
            enabled: enabled.into(),
            is_active: true,
            fragment: fragment.into(),
            triggers: Vec::new(),
        }
    }

    #[test]
    fn triggers_are_stopped_before_what_they_start() {
        let mut service = unit("a.service", "enabled", "/lib/systemd/system/a.service");
        service.triggers = vec![unit("a.timer", "static", "/lib/systemd/system/a.timer")];
        assert_eq!(
            service.plan(How::Mask).changes,
            [
                "systemctl stop a.timer",
                "systemctl mask a.timer",
                "systemctl stop a.service",
                "systemctl mask a.service",
                "systemctl disable a.service",
            ]
        );
    }

    #[test]
    fn only_what_is_masked_may_fail_to_be_disabled() {
        let may_fail = |fragment: &str, how: How| {
            let unit = unit("a.service", "enabled", fragment);
            let commands = unit.own_commands(how);
            let may_fail = commands.filter(|args| unit.may_fail(how, args));
            may_fail.map(|args| args[0].clone()).collect::<Vec<_>>()
        };
        let packaged = "/lib/systemd/system/a.service";
        assert_eq!(may_fail(packaged, How::Mask), ["disable"]);
        assert!(may_fail(packaged, How::Stop).is_empty());
        assert!(may_fail("/etc/systemd/system/a.service", How::Mask).is_empty());
    }

    #[test]
    fn what_is_only_stopped_starts_with_the_next_boot() {
        let service = unit("a.service", "enabled", "/lib/systemd/system/a.service");
        let plan = service.plan(How::Stop);
        assert_eq!(plan.changes, ["systemctl stop a.service"]);
        let Change::Unit {
            masked, disabled, ..
        } = service.change(How::Stop)
        else {
            panic!("a unit is a unit");
        };
        assert!(!masked && !disabled);
    }

    #[test]
    fn a_unit_file_of_the_administrator_is_not_masked() {
        let own = unit("a.service", "enabled", "/etc/systemd/system/a.service");
        assert_eq!(
            own.plan(How::Mask).changes,
            ["systemctl stop a.service", "systemctl disable a.service"]
        );
    }

    #[test]
    fn what_is_not_known_to_be_safe_is_only_bounded() {
        assert_eq!(How::fitting(Risk::Low, false), How::Mask);
        assert_eq!(How::fitting(Risk::Unknown, false), How::Bound);
        assert_eq!(How::fitting(Risk::Higher, false), How::Bound);
        assert_eq!(How::fitting(Risk::Higher, true), How::Mask);
    }

    #[test]
    fn what_systemctl_shows_is_read() {
        let shown = "Id=a.service\nLoadState=loaded\nActiveState=activating\n\
                     UnitFileState=enabled\nFragmentPath=/lib/a.service\nTriggeredBy=a.timer a.socket\n";
        let (unit, triggers) = parse(shown).expect("a unit");
        assert_eq!((unit.name.as_str(), unit.is_active), ("a.service", true));
        assert_eq!(triggers, ["a.timer", "a.socket"]);
        assert_eq!(parse("Id=b.service\nLoadState=not-found\n"), None);
        assert_eq!(parse(""), None);
    }
}
