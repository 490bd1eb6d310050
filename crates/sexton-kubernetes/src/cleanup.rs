//! Removes our conditions from nodes, whichever agent set them.

use serde_json::{Value, json};

use crate::access::Access;
use crate::client::{Client, STRATEGIC_MERGE};
use crate::conditions::{PREFIX, dropped};
use crate::error::KubernetesError;

/// Which nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nodes {
    /// One.
    Named(String),
    /// All of the cluster; wants the right to list nodes.
    All,
}

/// Removes them. Gives the nodes that had some, and how many each.
pub fn clean_up(
    access: Access,
    nodes: &Nodes,
    version: &'static str,
) -> Result<Vec<(String, usize)>, KubernetesError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| KubernetesError::unusable("a runtime", error.to_string()))?;
    runtime.block_on(remove(&Client::new(access, version), nodes))
}

async fn remove(client: &Client, nodes: &Nodes) -> Result<Vec<(String, usize)>, KubernetesError> {
    let mut cleaned = Vec::new();
    match nodes {
        Nodes::Named(name) => {
            let node = client.get(&path(name)).await?;
            cleaned.extend(remove_from(client, &node).await?);
        }
        Nodes::All => {
            let mut next = String::new();
            loop {
                let page = client
                    .get(&format!("/api/v1/nodes?limit=100&continue={next}"))
                    .await?;
                for node in page["items"].as_array().into_iter().flatten() {
                    cleaned.extend(remove_from(client, node).await?);
                }
                next = page["metadata"]["continue"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                if next.is_empty() {
                    break;
                }
            }
        }
    }
    Ok(cleaned)
}

async fn remove_from(
    client: &Client,
    node: &Value,
) -> Result<Option<(String, usize)>, KubernetesError> {
    let name = node["metadata"]["name"].as_str().unwrap_or_default();
    let conditions = node["status"]["conditions"].as_array();
    let kinds = conditions.into_iter().flatten();
    let ours: Vec<Value> = kinds
        .filter_map(|condition| condition["type"].as_str())
        .filter(|kind| kind.starts_with(PREFIX))
        .map(dropped)
        .collect();
    if ours.is_empty() {
        return Ok(None);
    }
    let patch = json!({ "status": { "conditions": ours } });
    let status = format!("{}/status", path(name));
    client.patch(&status, STRATEGIC_MERGE, &patch).await?;
    Ok(Some((name.to_owned(), ours.len())))
}

/// The path of a node.
pub(crate) fn path(node: &str) -> String {
    format!("/api/v1/nodes/{node}")
}
