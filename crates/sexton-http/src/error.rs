//! What can go wrong between a node and a server.

use std::path::PathBuf;
use std::time::Duration;

/// Why a server gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// A file with a token or a certificate cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// An address, certificate, key or token cannot be used.
    #[error("{what}: {why}")]
    Unusable {
        /// The file, or the part of it.
        what: String,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// No connection.
    #[error("cannot connect to {server}")]
    Connect {
        /// Which.
        server: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The connection broke, or what came was no HTTP.
    #[error("{server} closed the connection or sent no HTTP")]
    Http {
        /// Which.
        server: String,
        /// Why.
        #[source]
        source: hyper::Error,
    },
    /// No answer in time.
    #[error("{server} did not answer within {} s", limit.as_secs())]
    Late {
        /// Which.
        server: String,
        /// The time.
        limit: Duration,
    },
    /// It answered with more than an answer may have.
    #[error("{server} answered with more than {limit} bytes")]
    TooLarge {
        /// Which.
        server: String,
        /// The bound.
        limit: usize,
    },
}

impl HttpError {
    pub(crate) fn unusable(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Unusable {
            what: what.into(),
            why: why.into(),
        }
    }

    /// It and its causes, in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            text.push_str(": ");
            text.push_str(&error.to_string());
            source = error.source();
        }
        text
    }
}
