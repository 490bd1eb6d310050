//! `bundle.json`: whose records these are, and what their times mean.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sexton_model::moment::Moment;

use crate::error::StoreError;

/// The newest format that is read, and the one that is written.
pub const FORMAT: u32 = 1;

pub(crate) const FILE: &str = "bundle.json";

/// A larger `bundle.json` is none: ours have some hundred bytes.
const MAX_BYTES: u64 = 64 << 10;

const CLOCK: &str = "time_ns: nanoseconds of CLOCK_BOOTTIME of this boot; \
                     wall_ns: nanoseconds since 1970, null until the wall clock was sampled";

/// The node that a bundle is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its host name.
    pub name: String,
    /// The release of its kernel.
    pub kernel: String,
    /// The boot that is recorded; times of two boots cannot be compared.
    pub boot_id: String,
}

/// How much a bundle may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// All its files together are never larger, not even for a moment.
    pub max_bytes: u64,
    /// A segment goes once all of it is older.
    pub max_age: Duration,
    /// The open segment is sealed before it grows beyond this.
    pub segment_bytes: u64,
    /// The open segment is sealed once its first record is older.
    pub segment_age: Duration,
}

impl Limits {
    /// The smallest open segment that makes sense: a few batches.
    pub const MIN_SEGMENT_BYTES: u64 = 128 << 10;
    /// So many open segments must fit: itself, its sealed form (whose size is not known
    /// before it is written), the raw files, and one to spare.
    pub const MIN_SEGMENTS: u64 = 5;

    /// A ring of so many bytes, for so long, with fitting segments.
    pub fn ring(max_bytes: u64, max_age: Duration) -> Self {
        Self {
            max_bytes,
            max_age,
            segment_bytes: (max_bytes / 16).clamp(Self::MIN_SEGMENT_BYTES, 4 << 20),
            segment_age: Duration::from_secs(3600).min(max_age / 4),
        }
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let wrong = |text: String| Err(StoreError::Limits(text));
        if self.segment_bytes < Self::MIN_SEGMENT_BYTES {
            return wrong(format!(
                "a segment of {} bytes is smaller than {}",
                self.segment_bytes,
                Self::MIN_SEGMENT_BYTES
            ));
        }
        let least = self.segment_bytes.saturating_mul(Self::MIN_SEGMENTS);
        if self.max_bytes < least {
            return wrong(format!(
                "{} bytes in all are less than {} segments of {} bytes",
                self.max_bytes,
                Self::MIN_SEGMENTS,
                self.segment_bytes
            ));
        }
        Ok(())
    }

    /// Raw files may take a fifth.
    pub(crate) fn max_raw_bytes(&self) -> u64 {
        self.max_bytes / Self::MIN_SEGMENTS
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) format: u32,
    pub(crate) node: Node,
    pub(crate) created_ns: u64,
    pub(crate) created_wall_ns: Option<u64>,
    pub(crate) clock: String,
    /// Events of an imported profile, where there are several, in the order of its list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) events: Vec<String>,
}

impl Meta {
    pub(crate) fn new(node: Node, now: Moment) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        Self {
            format: FORMAT,
            node,
            created_ns: now.as_ns(),
            created_wall_ns: wall.and_then(|time| u64::try_from(time.as_nanos()).ok()),
            clock: CLOCK.into(),
            events: Vec::new(),
        }
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec_pretty(self)
            .expect("strings and numbers can always be written as JSON");
        json.push(b'\n');
        json
    }

    /// `None` when there is no such file.
    pub(crate) fn read(dir: &Path) -> Result<Option<Self>, StoreError> {
        let path = dir.join(FILE);
        let mut json = Vec::new();
        let read =
            File::open(&path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut json));
        match read {
            Ok(_) if json.len() as u64 > MAX_BYTES => Err(StoreError::NotABundle {
                dir: dir.to_owned(),
                why: format!("{FILE} is over {MAX_BYTES} bytes"),
            }),
            Ok(_) => Self::parse(dir, &json).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io("read", &path)(error)),
        }
    }

    pub(crate) fn parse(dir: &Path, json: &[u8]) -> Result<Self, StoreError> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let malformed = |error: serde_json::Error| StoreError::NotABundle {
            dir: dir.to_owned(),
            why: format!("{FILE}: {error}"),
        };
        let Format { format } = serde_json::from_slice(json).map_err(malformed)?;
        if format > FORMAT {
            return Err(StoreError::Newer {
                dir: dir.to_owned(),
                found: format,
                known: FORMAT,
            });
        }
        serde_json::from_slice(json).map_err(malformed)
    }
}
