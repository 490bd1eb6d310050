//! Signs that lead to who is behind something, and how strong they are.

use std::collections::BTreeSet;

use sexton_model::finding::{Confidence, Evidence};

use super::steps::Step;
use crate::evidence::creations::Creation;
use crate::evidence::known::Known;

/// How a sign leads to somebody, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// The cgroup lies in that of the unit.
    Path,
    /// The process in a scope came from the unit.
    Scope,
    /// Each is an instance of one template.
    Instances,
    /// The process that made it is in the unit, or came from it.
    Ancestry,
    /// One process made all of them, or is the nearest above all that did.
    Process,
    /// The program that asked for the container was in the unit and ended with it.
    Client,
    /// The image or the name of the container is known to be the unit's.
    Signature,
    /// The pod it belongs to.
    Pod,
    /// A program of the unit that asks the daemon was at work each time.
    AtWork,
    /// The container, its image or its project is named like the unit.
    Name,
    /// The unit was started each time.
    InStep,
    /// The unit wrote to the journal each time.
    Writes,
    /// Nobody made them all; they are alike.
    Pattern,
    /// A daemon made it, and nobody can be named who asked.
    Daemon,
}

impl Way {
    /// How sure it is by itself.
    pub(crate) fn strength(self) -> u8 {
        match self {
            Self::Path => 95,
            Self::Scope | Self::Instances | Self::Ancestry | Self::Process => 90,
            Self::Client => 85,
            Self::Signature => 80,
            Self::Pod | Self::AtWork => 75,
            Self::Name | Self::InStep => 60,
            Self::Writes | Self::Pattern => 55,
            Self::Daemon => 50,
        }
    }
}

/// A sign.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sign {
    pub(crate) way: Way,
    /// What was seen.
    pub(crate) text: String,
    /// Who saw it.
    source: &'static str,
    /// What is missing to be sure.
    missing: Option<&'static str>,
}

impl Sign {
    fn new(way: Way, source: &'static str, text: String) -> Self {
        Self {
            way,
            text,
            source,
            missing: None,
        }
    }

    pub(crate) fn path(unit: &str) -> Self {
        let text = format!("by path: they lie inside the cgroup of {unit}");
        Self::new(Way::Path, "cgroups: path", text)
    }

    pub(super) fn own(unit: &str) -> Self {
        let text = format!("by path: each is the cgroup of {unit} itself, made anew at a start");
        Self::new(Way::Path, "cgroups: path", text)
    }

    pub(super) fn scope(unit: &str, comm: &str) -> Self {
        let text = format!(
            "by the process inside: systemd made these scopes for {comm}, which is in {unit}"
        );
        Self::new(Way::Scope, "cgroups: cgroup.procs", text)
    }

    pub(super) fn instances(template: &str, socket: Option<&str>) -> Self {
        let text = format!("by path: each is the cgroup of an instance of {template}");
        match socket {
            Some(socket) => {
                let text = format!("{text}, which {socket} starts, one for each connection");
                Self::new(Way::Instances, "cgroups: path", text)
            }
            None => {
                let mut sign = Self::new(Way::Instances, "cgroups: path", text);
                sign.missing = Some("who starts them: no socket of that name runs");
                sign
            }
        }
    }

    /// Numbers change from birth to birth, so that only names are told.
    pub(super) fn ancestry(creation: &Creation<'_>, unit: &str) -> Self {
        let names: Vec<&str> = creation
            .makers
            .iter()
            .map(|maker| maker.comm)
            .take(5)
            .collect();
        let text = format!("by ancestry: made by {}, in {unit}", names.join(" < "));
        Self::new(Way::Ancestry, "cgroups: creator's ancestry", text)
    }

    pub(super) fn process(text: String) -> Self {
        Self::new(Way::Process, "cgroups: creator's ancestry", text)
    }

    pub(super) fn pattern(text: String) -> Self {
        let mut sign = Self::new(Way::Pattern, "cgroups", text);
        sign.missing = Some("one process that made all of them: each was made by another");
        sign
    }

    pub(super) fn client(unit: &str, comm: &str) -> Self {
        let text = format!(
            "by client: {comm} in {unit} began before them, and ended when they did and with \
             their status"
        );
        Self::new(Way::Client, "exits, containers", text)
    }

    pub(super) fn at_work(unit: &str, comm: &str) -> Self {
        let text = format!(
            "by client: {comm} in {unit} was at work when at least 80 % of them were made, and \
             seldom otherwise"
        );
        Self::new(Way::AtWork, "exits, cgroups", text)
    }

    pub(super) fn signature(known: &Known, what: &str, is_seen: bool) -> Self {
        let text = format!(
            "by image and name: {what} is run by {}: {} ({})",
            known.unit, known.why, known.source
        );
        let mut sign = Self::new(Way::Signature, "signatures/requesters.toml", text);
        if !is_seen {
            sign.missing = Some("whether that unit runs here: systemd was not heard");
        }
        sign
    }

    pub(super) fn name(unit: &str, what: &str) -> Self {
        let text = format!("by name: {what} is named like {unit}, which runs");
        Self::new(Way::Name, "containers, units", text)
    }

    pub(super) fn in_step(unit: &str, step: Step) -> Self {
        match step {
            Step::Starts => {
                let text =
                    format!("by time: {unit} was started within 3 s before at least 80 % of them");
                Self::new(Way::InStep, "units: starts", text)
            }
            Step::Writes => {
                let text = format!(
                    "by its log: {unit} wrote to the journal in step with them, at each or once \
                     or twice between each and the next, and no other unit did"
                );
                let mut sign = Self::new(Way::Writes, "journal: entries", text);
                sign.missing = Some("whether it asks for them or only follows them");
                sign
            }
        }
    }

    pub(super) fn pod(pod: &str) -> Self {
        let text = format!("by label: they are of the pod {pod}");
        Self::new(Way::Pod, "containers: labels", text)
    }

    pub(super) fn daemon(creation: &Creation<'_>, daemon: &str) -> Self {
        let names: Vec<&str> = creation
            .makers
            .iter()
            .map(|maker| maker.comm)
            .take(5)
            .collect();
        let text = format!("made by {}, in {daemon}", names.join(" < "));
        let mut sign = Self::new(Way::Daemon, "cgroups: creator's ancestry", text);
        sign.missing = Some(
            "who asked it to: neither client, image, name, starts nor log in step lead to a unit",
        );
        sign
    }

    /// As evidence.
    pub(crate) fn evidence(&self) -> Vec<Evidence> {
        let strength = Confidence::percent(self.way.strength()).word();
        let text = format!("{} ({strength})", self.text);
        let mut evidence = vec![Evidence::speaks_for(self.source, text)];
        evidence.extend(
            self.missing
                .map(|text| Evidence::missing(self.source, text)),
        );
        evidence
    }
}

/// How sure several signs are together: as the strongest, and a little more for each other
/// way that leads to the same.
pub(crate) fn confidence<'s>(signs: impl IntoIterator<Item = &'s Sign>) -> Confidence {
    let signs: Vec<&Sign> = signs.into_iter().collect();
    let ways: BTreeSet<Way> = signs.iter().map(|sign| sign.way).collect();
    let best = ways.iter().map(|way| way.strength()).max().unwrap_or(0);
    let more = u8::try_from(ways.len().saturating_sub(1) * 10).unwrap_or(u8::MAX);
    let doubt = match signs
        .iter()
        .any(|sign| sign.missing.is_some() && sign.way == Way::Signature)
    {
        true => 10,
        false => 0,
    };
    let sure = best
        .saturating_add(more)
        .min(95.max(best))
        .saturating_sub(doubt);
    Confidence::percent(sure)
}
