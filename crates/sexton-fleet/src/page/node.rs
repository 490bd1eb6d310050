//! One node: what it is, how it was, and what it had, with links to its own page.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sexton_lake::{LakeError, column};
use sexton_web::{Asked, Refusal};

use super::links::{Linked, Links};
use super::refusal;
use super::view::{NONE, View};
use crate::lake::{Group, signs};

/// More findings of a node are not shown.
const MAX_FINDINGS: usize = 200;

/// An agent keeps an incident from this severity on.
const SERIOUS_RANK: f64 = 3.0;

/// A finding as the newest report has it.
struct Told {
    at_us: i64,
    code: String,
    title: String,
    severity: String,
    rank: f64,
    life: String,
    subject: String,
    caused_by: String,
    since_us: i64,
    opened_us: Option<i64>,
    resolved_us: Option<i64>,
}

pub(super) fn answer(
    view: &View,
    asked: &Asked<'_>,
    links: Option<&Links>,
) -> Result<Value, Refusal> {
    let name = asked.one("name").unwrap_or_default();
    let node = view.names().binary_search_by(|known| (**known).cmp(name));
    let node = node.or_else(|_| {
        let found = view.names().iter().position(|known| known == name);
        found.ok_or_else(|| {
            refusal(
                404,
                format!("no node called {name:?} reported in this time"),
            )
        })
    })? as u32;
    let findings = findings(view, node).map_err(|error| refusal(500, error.to_string()))?;
    let mut told: Vec<(&String, &Told)> = findings.iter().collect();
    told.sort_by(|(a_id, a), (b_id, b)| {
        let worse = b.rank.total_cmp(&a.rank);
        worse.then(a.since_us.cmp(&b.since_us)).then(a_id.cmp(b_id))
    });
    let reported = reported_name(name, view);
    let shown = told.iter().take(MAX_FINDINGS).map(|(id, told)| {
        json!({
            "finding": id,
            "code": told.code,
            "title": told.title,
            "severity": told.severity,
            "life": told.life,
            "subject": told.subject,
            "caused_by": Some(&told.caused_by).filter(|cause| !cause.is_empty()),
            "since": told.since_us,
            "opened": told.opened_us,
            "resolved": told.resolved_us,
            "link": links.map(|links| links.finding(reported, &Linked {
                id,
                code: &told.code,
                since_us: told.since_us,
                opened_us: told.opened_us,
                is_serious: told.rank >= SERIOUS_RANK,
            })),
        })
    });
    let attributes = view.columns.iter().filter_map(|(name, column)| {
        let value = column.of_node[node as usize];
        (value != NONE).then(|| json!({ "name": name, "value": column.values[value as usize] }))
    });
    Ok(json!({
        "name": name,
        "cells": signs(view.hours.severity(node)),
        "attributes": attributes.collect::<Vec<_>>(),
        "findings": shown.collect::<Vec<_>>(),
        "left_out": told.len().saturating_sub(MAX_FINDINGS),
        "link": links.map(|links| links.page(reported)),
    }))
}

/// The name that a node gave itself: machines that share one have numbers here.
fn reported_name<'a>(name: &'a str, view: &View) -> &'a str {
    let mut shared = view.lake().problems.shared_names.iter();
    match name.rsplit_once('#') {
        Some((before, _)) if shared.any(|(shared, _)| shared == before) => before,
        _ => name,
    }
}

/// The findings of a node, by their id.
fn findings(view: &View, node: u32) -> Result<BTreeMap<String, Told>, LakeError> {
    let mut found = BTreeMap::new();
    for group in &view.lake().claimed.groups {
        let rows = group.nodes.iter().enumerate();
        let rows = rows.filter(|(row, of)| **of == node && !group.is_report[*row]);
        let rows: Vec<usize> = rows.map(|(row, _)| row).collect();
        if !rows.is_empty() {
            read(group, &rows, &mut found)?;
        }
    }
    Ok(found)
}

fn read(
    group: &Group,
    rows: &[usize],
    found: &mut BTreeMap<String, Told>,
) -> Result<(), LakeError> {
    let texts = |name| group.file.texts(group.group, name);
    let times = |name| group.file.times(group.group, name);
    let (ids, codes, titles) = (
        texts(column::FINDING)?,
        texts(column::CODE)?,
        texts(column::TITLE)?,
    );
    let (severities, lives) = (texts(column::SEVERITY)?, texts(column::LIFE)?);
    let (subjects, causes) = (texts(column::SUBJECT)?, texts(column::CAUSED_BY)?);
    let ranks = group.file.numbers(group.group, column::SEVERITY_RANK)?;
    let (since, opened, resolved) = (
        times(column::SINCE)?,
        times(column::OPENED)?,
        times(column::RESOLVED)?,
    );
    for row in rows.iter().copied() {
        let at_us = group.at_us[row];
        let code = codes.get(row).unwrap_or_default();
        // Without an id, a finding is told from others by its code.
        let id = ids.get(row).unwrap_or(code).to_owned();
        let since_us = since[row].unwrap_or(at_us);
        let known = found.get(&id);
        let first_us = known.map_or(since_us, |known: &Told| known.since_us.min(since_us));
        if let Some(known) = found.get_mut(&id).filter(|known| known.at_us > at_us) {
            known.since_us = first_us;
            continue;
        }
        let text = |texts: &sexton_lake::TextColumn| texts.get(row).unwrap_or_default().to_owned();
        let told = Told {
            at_us,
            code: code.to_owned(),
            title: text(&titles),
            severity: text(&severities),
            rank: ranks[row],
            life: text(&lives),
            subject: text(&subjects),
            caused_by: text(&causes),
            since_us: first_us,
            opened_us: opened[row],
            resolved_us: resolved[row],
        };
        found.insert(id, told);
    }
    Ok(())
}
