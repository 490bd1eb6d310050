//! A part of the credentials: in a file, or given.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use crate::error::HttpError;

/// A certificate, a key, a token: all are a few kilobytes. Those of a distribution together have
/// a quarter of this.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A part of the credentials.
#[derive(Clone, PartialEq, Eq)]
pub enum Part {
    /// In a file, which may change; it is read for each request.
    File(PathBuf),
    /// As it stands.
    Given(Vec<u8>),
}

// Keys are not for logs.
impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "File({})", path.display()),
            Self::Given(_) => f.write_str("Given"),
        }
    }
}

impl Part {
    /// Its bytes.
    pub fn bytes(&self) -> Result<Vec<u8>, HttpError> {
        let path = match self {
            Self::Given(bytes) => return Ok(bytes.clone()),
            Self::File(path) => path,
        };
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|source| HttpError::File {
                path: path.clone(),
                source,
            })?;
        match bytes.len() as u64 > MAX_FILE_BYTES {
            true => Err(HttpError::unusable(
                path.display().to_string(),
                "larger than 1 MiB",
            )),
            false => Ok(bytes),
        }
    }

    /// Its text.
    pub fn text(&self) -> Result<String, HttpError> {
        String::from_utf8(self.bytes()?).map_err(|_| HttpError::unusable(self.name(), "is no text"))
    }

    /// What it is called in messages.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Given(_) => "credentials in the configuration".to_owned(),
        }
    }
}
