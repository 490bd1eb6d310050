//! A process or thread in a payload.

use crate::payload::{Field, FieldSpec, Value, ValueKind, stored};

/// A process or thread, by name and number.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Task {
    /// Its name, escaped.
    pub comm: String,
    /// Its number.
    pub pid: u32,
}

impl Task {
    /// Of `bash[812]`, as older recordings have it.
    fn parse(text: &str) -> Option<Self> {
        let (comm, pid) = text.strip_suffix(']')?.rsplit_once('[')?;
        Some(Self {
            comm: comm.to_owned(),
            pid: pid.parse().ok()?,
        })
    }
}

impl Field for Task {
    const KIND: ValueKind = ValueKind::Group(&[
        FieldSpec {
            name: "comm",
            kind: ValueKind::Text,
            is_required: true,
            help: "its name",
        },
        FieldSpec {
            name: "pid",
            kind: ValueKind::Count,
            is_required: true,
            help: "its number",
        },
    ]);

    fn put(&self) -> Option<Value> {
        Some(Value::Group(vec![
            ("comm".into(), Value::Text(self.comm.clone())),
            ("pid".into(), Value::Count(self.pid.into())),
        ]))
    }

    fn take(value: Option<&Value>) -> Option<Self> {
        match value? {
            Value::Group(fields) => Some(Self {
                comm: Field::take(stored(fields, "comm"))?,
                pid: Field::take(stored(fields, "pid"))?,
            }),
            Value::Text(text) => Self::parse(text),
            _ => None,
        }
    }
}
