//! Copies a recording without what tells whose it is, to hand it on.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use sexton_model::fact::host::HOST_DESCRIPTION;
use sexton_model::moment::Moment;
use sexton_model::payload::{Fields, Value};
use sexton_model::record::{Body, Record};
use sexton_model::subject::Subject;
use sexton_store::{Bundle, BundleWriter, Limits, Node, Summary};

/// What of a machine's description is left: what judgements depend on.
const KEPT: [&str; 5] = [
    "kernel_release",
    "distribution_",
    "hypervisor_",
    "cpus_online",
    "sysctl_",
];

/// Records that are written at once.
const BATCH: usize = 4_096;

/// A copy is as large as what is copied, at most.
const MAX_BYTES: u64 = 16 << 30;

/// What to leave out and what to write instead.
pub(super) struct Redaction<'a> {
    /// Sensors whose records stay behind.
    pub(super) without: &'a [String],
    /// Texts: records that hold one stay behind.
    pub(super) drop: &'a [String],
    /// Texts and what is written in their place.
    pub(super) replace: Vec<(String, String)>,
}

/// `OLD=NEW`
pub(super) fn replacement(text: &str) -> Result<(String, String)> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() => Ok((old.to_owned(), new.to_owned())),
        _ => bail!("--replace {text}: give it as OLD=NEW"),
    }
}

/// Copies what may be handed on. Stacks and raw files are not copied.
pub(super) fn redact(from: &Path, to: &Path, redaction: &Redaction<'_>) -> Result<Summary> {
    let bundle = Bundle::open(from)?;
    if to.symlink_metadata().is_ok() {
        bail!("{} exists already", to.display());
    }
    let node = Node {
        name: "node".into(),
        kernel: redaction.text(&bundle.node().kernel),
        boot_id: "00000000-0000-0000-0000-000000000001".into(),
    };
    let limits = Limits::ring(MAX_BYTES, Duration::from_secs(100 * 366 * 86_400));
    let mut writer = BundleWriter::create(to, limits, node, bundle.created())
        .with_context(|| format!("cannot make {}", to.display()))?;
    let mut batch: Vec<Record> = Vec::with_capacity(BATCH);
    let mut last = bundle.created();
    for record in bundle.stream(None, None) {
        last = last.max(record.at);
        batch.extend(redaction.record(record));
        if batch.len() == BATCH {
            writer.append(&batch)?;
            batch.clear();
        }
    }
    writer.append(&batch)?;
    Ok(writer.finish(Moment::max(last, bundle.created()))?)
}

impl Redaction<'_> {
    fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (old, new) in &self.replace {
            text = text.replace(old, new);
        }
        text
    }

    fn fields(&self, fields: Fields) -> Fields {
        let field = |(name, value)| (name, self.value(value));
        fields.into_iter().map(field).collect()
    }

    /// A number whose digits are replaced is text; its field reads it again if it can.
    fn value(&self, value: Value) -> Value {
        match value {
            Value::List(values) => {
                Value::List(values.into_iter().map(|value| self.value(value)).collect())
            }
            Value::Group(fields) => Value::Group(self.fields(fields)),
            Value::Text(text) => Value::Text(self.text(&text)),
            other => {
                let said = other.to_string();
                let text = self.text(&said);
                if text == said {
                    other
                } else {
                    Value::Text(text)
                }
            }
        }
    }

    /// The record as it may be handed on; `None` when it stays behind.
    fn record(&self, record: Record) -> Option<Record> {
        let is_unwanted = self.without.iter().any(|sensor| record.sensor == **sensor);
        if is_unwanted || self.drop.iter().any(|text| holds(&record, text)) {
            return None;
        }
        let subject = Subject::new(record.subject.kind, self.text(&record.subject.name));
        let body = match record.body {
            Body::Event { fact, payload } => {
                let mut fields = self.fields(payload.fields());
                fields.retain(|(name, _)| *fact != HOST_DESCRIPTION.fact || is_kept(name));
                // What cannot be read without the text that was left out stays behind.
                Body::read_event(fact, &fields).ok()?
            }
            Body::Gap(mut gap) => {
                gap.text = self.text(&gap.text);
                gap.remedy = gap.remedy.map(|remedy| self.text(&remedy));
                Body::Gap(gap)
            }
            sample @ Body::Sample { .. } => sample,
        };
        Some(Record {
            subject,
            body,
            ..record
        })
    }
}

fn is_kept(key: &str) -> bool {
    KEPT.iter().any(|kept| key.starts_with(kept))
}

fn holds(record: &Record, text: &str) -> bool {
    let in_body = match &record.body {
        Body::Event { payload, .. } => any_holds(&payload.fields(), text),
        Body::Gap(gap) => gap.text.contains(text),
        Body::Sample { .. } => false,
    };
    in_body || record.subject.name.contains(text)
}

fn any_holds(fields: &Fields, text: &str) -> bool {
    fields.iter().any(|(_, value)| value_holds(value, text))
}

fn value_holds(value: &Value, text: &str) -> bool {
    match value {
        Value::List(values) => values.iter().any(|value| value_holds(value, text)),
        Value::Group(fields) => any_holds(fields, text),
        said => said.to_string().contains(text),
    }
}
