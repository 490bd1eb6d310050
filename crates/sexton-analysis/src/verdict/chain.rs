//! Chains: from a cause over its strongest links to a symptom.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use sexton_model::diagnosis::Link;
use sexton_model::finding::{Confidence, Finding, FindingId, Severity};
use sexton_model::moment::Moment;

use super::age;
use crate::rules;

/// All chains, gravest first. Each finding is in one at least: alone, if nothing joins it.
pub(crate) fn chains(
    findings: &[Finding],
    links: &[Link],
    began: Option<Moment>,
) -> Vec<Vec<FindingId>> {
    let net = Net {
        findings,
        links,
        began,
    };
    let mut chains: Vec<Vec<FindingId>> = Vec::new();
    let mut told: BTreeSet<FindingId> = BTreeSet::new();
    let (ends, others): (Vec<_>, Vec<_>) = findings
        .iter()
        .map(Finding::id)
        .partition(|id| net.strongest_effect(id).is_none());
    for id in ends.into_iter().chain(others) {
        if told.contains(&id) {
            continue;
        }
        let chain = net.through(id);
        told.extend(chain.iter().cloned());
        chains.push(chain);
    }
    chains.sort_by_cached_key(|chain| net.gravity(chain));
    chains
}

struct Net<'a> {
    findings: &'a [Finding],
    links: &'a [Link],
    /// When the watch began.
    began: Option<Moment>,
}

/// Sorts chains, gravest first.
type Gravity = (
    bool,
    Reverse<Severity>,
    Reverse<bool>,
    Reverse<usize>,
    Reverse<Confidence>,
    Reverse<u64>,
    Vec<FindingId>,
);

impl Net<'_> {
    /// The chain that a finding is in: back to the root, and on to the symptom.
    fn through(&self, id: FindingId) -> Vec<FindingId> {
        let mut chain = vec![id];
        while let Some(link) = self.strongest_cause(&chain[chain.len() - 1]) {
            chain.push(link.cause.clone());
        }
        chain.reverse();
        while let Some(link) = self.strongest_effect(&chain[chain.len() - 1]) {
            chain.push(link.effect.clone());
        }
        chain
    }

    /// The strongest cause; of what lies between it and the effect, the nearest, because
    /// that is part of the story.
    fn strongest_cause(&self, effect: &FindingId) -> Option<&Link> {
        let causes = || self.links.iter().filter(|link| link.effect == *effect);
        let mut nearest = causes().max_by_key(|link| {
            let severity = self.finding(&link.cause).map(|finding| finding.severity);
            (link.confidence, severity, Reverse(&link.cause))
        })?;
        let lies_between = |between: &&Link, far: &Link| {
            let mut links = self.links.iter();
            links.any(|link| link.cause == far.cause && link.effect == between.cause)
        };
        // Cause runs down the list of rules, so this ends.
        while let Some(between) = causes()
            .filter(|between| lies_between(between, nearest))
            .max_by_key(|link| (link.confidence, Reverse(&link.cause)))
        {
            nearest = between;
        }
        Some(nearest)
    }

    fn strongest_effect(&self, cause: &FindingId) -> Option<&Link> {
        let effects = self.links.iter().filter(|link| link.cause == *cause);
        effects.max_by_key(|link| {
            let severity = self.finding(&link.effect).map(|finding| finding.severity);
            (severity, link.confidence, Reverse(&link.effect))
        })
    }

    fn finding(&self, id: &FindingId) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.id() == *id)
    }

    /// The decisive figure of a finding, which its evidence begins with: of two alike the one
    /// that did more comes first.
    fn weight(&self, id: &FindingId) -> u64 {
        let finding = self.finding(id);
        let figure = finding.and_then(|finding| finding.evidence.iter().find_map(|one| one.value));
        figure.map_or(0, |figure| figure.max(0.0) as u64)
    }

    fn gravity(&self, chain: &[FindingId]) -> Gravity {
        let findings = chain.iter().filter_map(|id| self.finding(id));
        let severity = findings.clone().map(|finding| finding.severity).max();
        let confidence = findings.map(|finding| finding.confidence).min();
        (
            age::is_over(self.findings, chain, self.began),
            Reverse(severity.unwrap_or(Severity::Note)),
            Reverse(begins_with_a_cause(self.findings, chain)),
            Reverse(chain.len()),
            Reverse(confidence.unwrap_or(Confidence::WEAK)),
            Reverse(chain.first().map_or(0, |root| self.weight(root))),
            chain.to_vec(),
        )
    }
}

/// Whether a chain begins with a rule whose findings can be root causes.
pub(crate) fn begins_with_a_cause(findings: &[Finding], chain: &[FindingId]) -> bool {
    let first = chain.first();
    let root = findings.iter().find(|finding| Some(&finding.id()) == first);
    root.is_some_and(|root| rules::by_code(root.code).is_some_and(|rule| rule.explains(root)))
}
