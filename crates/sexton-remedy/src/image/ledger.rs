//! What was there before a change, as text inside the image.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sexton_model::text::{escape, unescape};

/// Where it is kept.
pub const UNDO_FILE: &str = "/etc/sexton/image-undo.json";

const SCHEMA: &str = "sexton.image-undo/1";

/// Seconds and nanoseconds.
pub(super) type Time = (i64, i64);

/// What was at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Was {
    Nothing,
    Link {
        #[serde(with = "bytes")]
        target: Vec<u8>,
        owner: (u32, u32),
        time: Time,
    },
    File {
        #[serde(with = "bytes")]
        content: Vec<u8>,
        mode: u32,
        owner: (u32, u32),
        time: Time,
    },
}

/// Bytes as text that can be read and turned back.
mod bytes {
    use super::{escape, unescape};
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&escape(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        Ok(unescape(&String::deserialize(from)?))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    path: String,
    pub(super) was: Was,
    /// Where the file itself waits, with its labels and its other names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
}

impl Entry {
    pub(super) fn new(path: &Path, was: Was, kept: Option<&Path>) -> Self {
        Self {
            path: path.display().to_string(),
            was,
            kept: kept.map(|kept| kept.display().to_string()),
        }
    }

    pub(super) fn kept(&self) -> Option<PathBuf> {
        self.kept.as_ref().map(PathBuf::from)
    }

    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(&self.path)
    }
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ledger {
    schema: String,
    pub(super) entries: Vec<Entry>,
    /// Folders that were made, outermost first.
    pub(super) made: Vec<String>,
    /// Folders that were there, and when they were last changed.
    pub(super) times: BTreeMap<String, Time>,
}

impl Ledger {
    pub(super) fn to_text(&self) -> String {
        let ledger = Self {
            schema: SCHEMA.into(),
            entries: self.entries.clone(),
            made: self.made.clone(),
            times: self.times.clone(),
        };
        serde_json::to_string_pretty(&ledger).expect("numbers and text become JSON") + "\n"
    }

    pub(super) fn from_text(text: &[u8]) -> Result<Self, String> {
        let ledger: Self = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if ledger.schema != SCHEMA {
            return Err(format!("its schema is not {SCHEMA}"));
        }
        Ok(ledger)
    }
}
