//! What sexton may do by itself: each act is named for one code and one origin.

use std::time::Duration;

use sexton_model::fix::{Act, Offer};
use sexton_model::subject::SubjectKind;

use crate::source::How;

/// Units that are never stopped without a person, whatever is allowed: without them systemd
/// cannot be asked to take it back, or sexton itself is gone.
const NEVER: [&str; 4] = ["systemd-", "dbus", "sexton-", "init."];

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
    /// What is wrong with it, by what each rule offers, given with its code.
    pub fn trouble(&self, offers: &[(&str, Offer)]) -> Option<String> {
        let Self { code, origin, act } = self;
        let able = offers.iter().filter(|(_, offer)| offer.has(*act));
        let Some((_, offer)) = able.clone().find(|(able, _)| able == code) else {
            let mut codes: Vec<&str> = able.map(|(code, _)| *code).collect();
            codes.sort_unstable();
            let (act, codes) = (act.name(), codes.join(", "));
            return Some(format!("code = {code:?}: {act} is possible for {codes}"));
        };
        let is_cgroup = offer.frees(SubjectKind::Cgroup.name());
        if is_cgroup && !origin.starts_with('/') {
            return Some(format!(
                "origin = {origin:?} is no pattern of cgroups; write it as `sexton zombies` shows \
                 it, such as \"/docker/<id>\""
            ));
        }
        if !is_cgroup && !is_unit(*offer, origin) {
            return Some(format!(
                "origin = {origin:?} is no unit that can be stopped; write its whole name, such as \
                 \"ecs.service\""
            ));
        }
        let is_vital = How::of(*act).is_some() && NEVER.iter().any(|it| origin.starts_with(it));
        is_vital.then(|| format!("origin = {origin:?} is never stopped without a person"))
    }
}

fn is_unit(offer: Offer, name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:\\".contains(c);
    let has_kind = name.rsplit_once('.').is_some_and(|(stem, kind)| {
        !stem.is_empty() && matches!(kind, "service" | "timer" | "socket" | "path")
    });
    let is_stopped = offer.stops(SubjectKind::Unit.name(), name);
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
            |old: &&Allow| old.act == new.act || How::of(old.act).and(How::of(new.act)).is_some();
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

    const OFFERS: [(&str, Offer); 4] = [
        (
            "UNIT001",
            Offer(&[Act::Bound, Act::Stop, Act::Mask, Act::Purge]),
        ),
        ("UNIT002", Offer(&[Act::Stop, Act::Mask, Act::Purge])),
        ("MCG001", Offer(&[Act::Purge])),
        ("NIC001", Offer::NOTHING),
    ];

    #[test]
    fn only_what_can_be_done_is_allowed() {
        let check = |code, origin, act, expected: &str| {
            let trouble = allow(code, origin, act)
                .trouble(&OFFERS)
                .unwrap_or_default();
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
