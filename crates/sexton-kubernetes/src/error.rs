//! What can go wrong between a node and its API server.

use std::time::Duration;

use sexton_http::HttpError;

/// Why something could not be told to, or asked of, the API server.
#[derive(Debug, thiserror::Error)]
pub enum KubernetesError {
    /// This is no pod, or one without a service account.
    #[error(
        "{name} is not set: this is no pod of a cluster; name a kubeconfig with kubeconfig = \"FILE\""
    )]
    NotInCluster {
        /// The variable.
        name: &'static str,
    },
    /// A kubeconfig, certificate or key says something that cannot be used.
    #[error("{what}: {why}")]
    Unusable {
        /// The file, or the part of it.
        what: String,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// The API server gave no answer, or a file with credentials cannot be used.
    #[error("cannot ask the API server of Kubernetes")]
    Ask(#[source] HttpError),
    /// It refused.
    #[error("{what}: the API server answered {status}: {said}")]
    Refused {
        /// What was asked.
        what: String,
        /// The status of HTTP.
        status: u16,
        /// Its words.
        said: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
}

impl KubernetesError {
    pub(crate) fn unusable(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Unusable {
            what: what.into(),
            why: why.into(),
        }
    }

    /// The status of HTTP, if it refused.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// When it wants to be asked again, if it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// It and its causes, in one line.
    pub fn chain(&self) -> String {
        sexton_model::text::chain(self)
    }
}
