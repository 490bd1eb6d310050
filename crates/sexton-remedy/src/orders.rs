//! What sexton may do by itself: each act is named for one code and one origin.

use std::time::Duration;

use sexton_model::fix;
use sexton_model::subject::SubjectKind;

use crate::source::How;

/// Units that are never stopped without a person, whatever is allowed: without them systemd
/// cannot be asked to take it back, or sexton itself is gone.
const NEVER: [&str; 4] = ["systemd-", "dbus", "sexton-", "init."];

/// What may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// Bound the restarts of the unit.
    Bound,
    /// Stop the unit until the next boot.
    Stop,
    /// Stop, disable and mask the unit.
    Mask,
    /// Have the kernel release dying cgroups.
    Purge,
}

impl Act {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Bound, Self::Stop, Self::Mask, Self::Purge];

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::Stop => "stop",
            Self::Mask => "mask",
            Self::Purge => "purge",
        }
    }

    /// How it stops a unit; `None` when it stops none.
    pub fn how(self) -> Option<How> {
        match self {
            Self::Bound => Some(How::Bound),
            Self::Stop => Some(How::Stop),
            Self::Mask => Some(How::Mask),
            Self::Purge => None,
        }
    }

    /// The codes that it can end.
    fn codes(self) -> &'static [&'static str] {
        match self {
            // A unit that runs on while it makes containers has no restarts to bound.
            Self::Bound => &["UNIT001"],
            Self::Stop | Self::Mask => &["UNIT001", "UNIT002"],
            Self::Purge => &["MCG001", "UNIT001", "UNIT002"],
        }
    }
}

/// One thing that may be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allow {
    /// The code of the finding.
    pub code: String,
    /// What the finding is about: a unit, or the pattern of cgroups that `sexton zombies` shows.
    pub origin: String,
    /// What may be done.
    pub act: Act,
}

impl Allow {
    /// What is wrong with it.
    pub fn trouble(&self) -> Option<String> {
        let Self { code, origin, act } = self;
        if !act.codes().contains(&code.as_str()) {
            let codes = act.codes().join(", ");
            let act = act.name();
            return Some(format!("code = {code:?}: {act} is possible for {codes}"));
        }
        let is_cgroup = fix::frees(code, SubjectKind::Cgroup.name());
        if is_cgroup && !origin.starts_with('/') {
            return Some(format!(
                "origin = {origin:?} is no pattern of cgroups; write it as `sexton zombies` shows \
                 it, such as \"/docker/<id>\""
            ));
        }
        if !is_cgroup && !is_unit(code, origin) {
            return Some(format!(
                "origin = {origin:?} is no unit that can be stopped; write its whole name, such as \
                 \"ecs.service\""
            ));
        }
        let is_vital = act.how().is_some() && NEVER.iter().any(|it| origin.starts_with(it));
        is_vital.then(|| format!("origin = {origin:?} is never stopped without a person"))
    }
}

fn is_unit(code: &str, name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:\\".contains(c);
    let has_kind = name.rsplit_once('.').is_some_and(|(stem, kind)| {
        !stem.is_empty() && matches!(kind, "service" | "timer" | "socket" | "path")
    });
    let is_stopped = fix::stops(code, SubjectKind::Unit.name(), name);
    has_kind && is_stopped && !name.starts_with('-') && name.chars().all(is_plain)
}

/// All that may be done, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orders {
    /// Whether anything may be done.
    pub enabled: bool,
    /// Plan and say so, and change nothing.
    pub dry_run: bool,
    /// The most acts within `every`.
    pub max_acts: usize,
    /// The time that `max_acts` is for; the same origin has one act in it.
    pub every: Duration,
    /// What may be done.
    pub allow: Vec<Allow>,
}

impl Default for Orders {
    fn default() -> Self {
        Self {
            enabled: false,
            dry_run: true,
            max_acts: 3,
            every: Duration::from_secs(3600),
            allow: Vec::new(),
        }
    }
}

/// What may be done about one finding. Only orders make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    code: String,
    origin: String,
    acts: Vec<Act>,
}

impl Allowed {
    /// The code of the finding.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// What it is about.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// What may be done, in the order in which it is.
    pub fn acts(&self) -> &[Act] {
        &self.acts
    }
}

impl Orders {
    /// What may be done about a finding; `None` when that is nothing.
    pub fn of(&self, code: &str, origin: &str) -> Option<Allowed> {
        let named = self.allow.iter();
        let named = named.filter(|allow| allow.code == code && allow.origin == origin);
        let mut acts: Vec<Act> = named.map(|allow| allow.act).collect();
        acts.sort();
        (self.enabled && !acts.is_empty()).then(|| Allowed {
            code: code.to_owned(),
            origin: origin.to_owned(),
            acts,
        })
    }

    /// What is wrong with one more: it is named already, or contradicts what is named.
    pub fn conflict(&self, new: &Allow) -> Option<String> {
        let same = self.allow.iter();
        let mut same = same.filter(|old| (&old.code, &old.origin) == (&new.code, &new.origin));
        let clashes =
            |old: &&Allow| old.act == new.act || old.act.how().and(new.act.how()).is_some();
        let old = same.find(clashes)?;
        let (act, known, origin) = (new.act.name(), old.act.name(), &new.origin);
        Some(format!(
            "act = {act:?}: {known} is allowed for {} of {origin} already; keep one of them",
            new.code
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(code: &str, origin: &str, act: Act) -> Allow {
        Allow {
            code: code.into(),
            origin: origin.into(),
            act,
        }
    }

    #[test]
    fn only_what_can_be_done_is_allowed() {
        let check = |code, origin, act, expected: &str| {
            let trouble = allow(code, origin, act).trouble().unwrap_or_default();
            assert!(
                trouble.contains(expected) && trouble.is_empty() == expected.is_empty(),
                "{code} {origin}: {trouble:?}"
            );
        };
        check("UNIT001", "ecs.service", Act::Mask, "");
        check("UNIT001", "ecs.service", Act::Bound, "");
        check("UNIT002", "ecs.service", Act::Stop, "");
        check("UNIT002", "ecs.service", Act::Purge, "");
        check("MCG001", "/docker/<id>", Act::Purge, "");
        check("UNIT002", "ecs.service", Act::Bound, "possible for UNIT001");
        check("NIC001", "eth0", Act::Stop, "possible for UNIT001, UNIT002");
        check("MCG001", "/docker/<id>", Act::Mask, "possible for");
        check("MCG001", "ecs.service", Act::Purge, "no pattern of cgroups");
        for name in [
            "",
            "ecs",
            "a@.service",
            "u/a.service",
            "-x.service",
            "a b.service",
            "*",
        ] {
            check("UNIT001", name, Act::Stop, "no unit");
        }
        for name in [
            "dbus.service",
            "systemd-journald.service",
            "sexton-agent.service",
        ] {
            check("UNIT001", name, Act::Mask, "without a person");
        }
    }

    #[test]
    fn nothing_is_allowed_that_was_not_named() {
        let mut orders = Orders {
            allow: vec![
                allow("UNIT001", "a.service", Act::Purge),
                allow("UNIT001", "a.service", Act::Mask),
                allow("UNIT002", "b.service", Act::Stop),
            ],
            ..Orders::default()
        };
        assert_eq!(orders.of("UNIT001", "a.service"), None, "it is off");
        orders.enabled = true;
        let allowed = orders.of("UNIT001", "a.service").expect("it is named");
        assert_eq!(allowed.acts(), [Act::Mask, Act::Purge], "the source first");
        assert_eq!(orders.of("UNIT002", "a.service"), None);
        assert_eq!(orders.of("UNIT001", "b.service"), None);
        assert_eq!(orders.of("UNIT001", "a.servic"), None);
    }

    #[test]
    fn one_way_to_stop_a_unit_is_enough() {
        let orders = Orders {
            allow: vec![allow("UNIT001", "a.service", Act::Mask)],
            ..Orders::default()
        };
        let check = |origin, act, expected: bool| {
            let conflict = orders.conflict(&allow("UNIT001", origin, act));
            assert_eq!(conflict.is_some(), expected, "{origin} {act:?}");
        };
        check("a.service", Act::Mask, true);
        check("a.service", Act::Stop, true);
        check("a.service", Act::Purge, false);
        check("b.service", Act::Stop, false);
    }
}
