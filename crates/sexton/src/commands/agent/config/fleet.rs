//! The table `[fleet]` of the agent's configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_lake::Redact;

use super::reader::{Entry, Reader, Wrong};

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3600);
/// Shorter reports would be no summaries.
const SHORTEST: Duration = Duration::from_secs(10);
const MAX_LABELS: usize = 32;
const MAX_NAME: usize = 60;

const SCHEMES: [&str; 4] = ["file://", "s3://", "gs://", "az://"];

/// Whether and how the node reports to a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetConfig {
    /// The bucket; none when the node does not report.
    pub lake: Option<String>,
    /// How long each report covers.
    pub every: Duration,
    /// What the node is called by.
    pub labels: BTreeMap<String, String>,
    /// The name of the node; that of the host if none is given.
    pub node: Option<String>,
    /// What is left out.
    pub redact: Redact,
}

impl Default for FleetConfig {
    fn default() -> Self {
        Self {
            lake: None,
            every: HOUR,
            labels: BTreeMap::new(),
            node: None,
            redact: Redact::default(),
        }
    }
}

impl FleetConfig {
    pub(super) fn key(&mut self, reader: &Reader<'_>, key: &Entry<'_>) -> Result<(), Wrong> {
        match key.name() {
            "lake" => self.lake = lake(reader, key)?,
            "every" => self.every = every(reader, key)?,
            "labels" => reader.each(key, |label| {
                let (name, value) = (label.name(), reader.text(label)?);
                let is_right = (1..=MAX_NAME).contains(&name.len()) && !value.is_empty();
                if !is_right || self.labels.len() >= MAX_LABELS {
                    let text = format!(
                        "label {name}: give at most {MAX_LABELS} labels, each with a name of at \
                         most {MAX_NAME} characters and a value"
                    );
                    return Err(reader.wrong(label, text));
                }
                self.labels.insert(name.to_owned(), value);
                Ok(())
            })?,
            "node" => {
                let name = reader.text(key)?;
                if name.is_empty() || name.len() > 253 || name.chars().any(char::is_control) {
                    return Err(reader.wrong(key, format!("node = {name:?} is no name of a node")));
                }
                self.node = Some(name);
            }
            "redact" => {
                for what in reader.texts(key)? {
                    match what.as_str() {
                        "node" => self.redact.node = true,
                        "subjects" => self.redact.subjects = true,
                        _ => {
                            let text = format!("redact: {what:?} should be node or subjects");
                            return Err(reader.wrong(key, text));
                        }
                    }
                }
            }
            _ => return Err(reader.unknown(key, "lake, every, labels, node, redact")),
        }
        Ok(())
    }
}

fn lake(reader: &Reader<'_>, key: &Entry<'_>) -> Result<Option<String>, Wrong> {
    let lake = reader.text(key)?;
    let is_known = |scheme: &&str| {
        lake.strip_prefix(*scheme)
            .is_some_and(|rest| !rest.is_empty())
    };
    match lake.as_str() {
        "" => Ok(None),
        _ if lake.starts_with('/') || SCHEMES.iter().any(is_known) => Ok(Some(lake)),
        _ => {
            let text = format!(
                "lake = {lake:?} is no bucket; write file:///path, s3://bucket/folder, \
                 gs://bucket/folder or az://container/folder"
            );
            Err(reader.wrong(key, text))
        }
    }
}

/// Reports begin at the full hour, or at equal parts or multiples of it: names stay the same
/// after a restart.
fn every(reader: &Reader<'_>, key: &Entry<'_>) -> Result<Duration, Wrong> {
    let every = reader.time(key, SHORTEST)?;
    let divides = |whole: Duration| whole.as_nanos().is_multiple_of(every.as_nanos());
    let is_right = divides(HOUR) || divides(DAY) && every.as_secs().is_multiple_of(3600);
    match is_right {
        true => Ok(every),
        false => {
            let text = "every should divide an hour (10m, 30m, 1h) or be hours that divide a day \
                        (2h, 6h, 24h)";
            Err(reader.wrong(key, text))
        }
    }
}
