//! One request to the API server. There is one in five minutes.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::Value;
use sexton_http::{Ask, Bounds};

use crate::access::Access;
use crate::error::KubernetesError;

/// A node with all its images and labels has some ten kilobytes.
const BOUNDS: Bounds = Bounds {
    time: Duration::from_secs(15),
    answer_bytes: 4 << 20,
};

/// What is kept of a refusal.
const SAID_LIMIT_CHARS: usize = 200;

pub(crate) const JSON: &str = "application/json";
pub(crate) const STRATEGIC_MERGE: &str = "application/strategic-merge-patch+json";
pub(crate) const MERGE: &str = "application/merge-patch+json";

/// Asks one API server.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    access: Access,
    version: &'static str,
}

impl Client {
    pub(crate) fn new(access: Access, version: &'static str) -> Self {
        Self { access, version }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, KubernetesError> {
        self.ask(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, KubernetesError> {
        self.ask(Method::POST, path, Some((JSON, body))).await
    }

    pub(crate) async fn patch(
        &self,
        path: &str,
        kind: &str,
        body: &Value,
    ) -> Result<Value, KubernetesError> {
        self.ask(Method::PATCH, path, Some((kind, body))).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Value, KubernetesError> {
        let what = format!("{method} {path}");
        let agent = format!("sexton/{}", self.version);
        let mut headers = vec![("accept", JSON)];
        headers.extend(body.map(|(kind, _)| ("content-type", kind)));
        let ask = Ask {
            method,
            path,
            headers,
            body: body.map_or_else(Bytes::new, |(_, body)| Bytes::from(body.to_string())),
            agent: &agent,
        };
        let answer = self.access.server.ask(ask, BOUNDS).await;
        let answer = answer.map_err(KubernetesError::Ask)?;
        if !(200..300).contains(&answer.status) {
            return Err(KubernetesError::Refused {
                what,
                status: answer.status,
                said: said(&answer.bytes),
                retry_after: answer.retry_after,
            });
        }
        serde_json::from_slice(&answer.bytes)
            .map_err(|error| KubernetesError::unusable(what, format!("no JSON came: {error}")))
    }
}

/// What a refusal says: the message of a `Status`, or its first words.
fn said(bytes: &[u8]) -> String {
    let status: Option<Value> = serde_json::from_slice(bytes).ok();
    let message = status
        .as_ref()
        .and_then(|status| status["message"].as_str());
    let text = message.map_or_else(
        || String::from_utf8_lossy(bytes).into_owned(),
        str::to_owned,
    );
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let cut: String = plain.take(SAID_LIMIT_CHARS).collect();
    cut.trim().to_owned()
}
