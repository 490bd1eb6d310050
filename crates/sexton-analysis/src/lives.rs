//! Lives of containers, as their runtime told them: of the watch, and of the minutes before.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::fact::container as fact;
use sexton_model::moment::Moment;
use sexton_model::record::Record;

use crate::case::Case;

/// One life of a container, from a start to an exit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Life<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) image: &'a str,
    pub(crate) runtime: Option<&'a str>,
    /// `namespace/pod`.
    pub(crate) pod: Option<String>,
    /// How often a kubelet or Docker had started it before.
    pub(crate) attempt: Option<u64>,
    pub(crate) project: Option<&'a str>,
    pub(crate) started: Option<Moment>,
    pub(crate) ended: Option<Moment>,
    pub(crate) lived: Option<Duration>,
    pub(crate) exit_code: Option<i64>,
}

impl Life<'_> {
    /// When it was first heard of.
    pub(crate) fn at(&self) -> Moment {
        self.started.or(self.ended).unwrap_or_default()
    }
}

/// All lives by image, in the order of time. What has no image goes by its name.
pub(crate) fn by_image<'a>(case: &Case<'a>) -> BTreeMap<&'a str, Vec<Life<'a>>> {
    let mut open: BTreeMap<&'a str, Life<'a>> = BTreeMap::new();
    let mut lives: Vec<Life<'a>> = Vec::new();
    let mut records: Vec<&'a Record> = case.of(&fact::CONTAINER_STARTED).to_vec();
    records.extend(case.of(&fact::CONTAINER_EXITED));
    // Of one moment the start comes first.
    records.sort_by_key(|record| (record.at, record.fact() != Some(&fact::CONTAINER_STARTED)));
    for record in records {
        let id = record.detail("id").unwrap_or(&record.subject.name);
        if record.fact() == Some(&fact::CONTAINER_STARTED) {
            let mut life = life(record, id);
            life.started = Some(record.at);
            lives.extend(open.insert(id, life));
        } else {
            let mut life = open.remove(id).unwrap_or_else(|| life(record, id));
            end(&mut life, record);
            lives.push(life);
        }
    }
    lives.extend(open.into_values());
    let mut by_image: BTreeMap<&'a str, Vec<Life<'a>>> = BTreeMap::new();
    for life in lives {
        by_image.entry(life.image).or_default().push(life);
    }
    for lives in by_image.values_mut() {
        lives.sort_by_key(|life| (life.at(), life.id));
    }
    by_image
}

fn life<'a>(record: &'a Record, id: &'a str) -> Life<'a> {
    let pod = record
        .detail("pod")
        .map(|pod| match record.detail("pod_namespace") {
            Some(namespace) => format!("{namespace}/{pod}"),
            None => pod.to_owned(),
        });
    let name = record.detail("name");
    Life {
        id,
        name,
        image: record.detail("image").or(name).unwrap_or("unknown"),
        runtime: record.detail("runtime"),
        pod,
        attempt: record.detail("attempt").and_then(|n| n.parse().ok()),
        project: record.detail("compose_project"),
        started: None,
        ended: None,
        lived: None,
        exit_code: None,
    }
}

fn end(life: &mut Life<'_>, record: &Record) {
    life.ended = Some(record.at);
    life.exit_code = record
        .detail("exit_code")
        .and_then(|code| code.parse().ok());
    let told = record.detail("lifetime_ms").and_then(|ms| ms.parse().ok());
    let seen = life.started.map(|started| record.at.since(started));
    life.lived = told.map(Duration::from_millis).or(seen);
}
