//! The table `[kubernetes]` of the agent's configuration.

use std::path::PathBuf;

use anyhow::{Context, Result};
use sexton_model::finding::Severity;

use super::reader::{Entry, Reader, Wrong};

/// Where the DaemonSet puts the name of its node.
const NODE_NAME: &str = "NODE_NAME";

const SEVERITIES: [Severity; 4] = [
    Severity::Note,
    Severity::Warning,
    Severity::Serious,
    Severity::Critical,
];

/// Whether and how Kubernetes is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubernetesConfig {
    pub enabled: bool,
    pub node: Option<String>,
    pub kubeconfig: Option<PathBuf>,
    pub severity: Severity,
    pub runbooks: String,
}

impl Default for KubernetesConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            node: None,
            kubeconfig: None,
            severity: Severity::Warning,
            runbooks: "docs/codes/".to_owned(),
        }
    }
}

impl KubernetesConfig {
    pub(super) fn key(&mut self, reader: &Reader<'_>, key: &Entry<'_>) -> Result<(), Wrong> {
        match key.name() {
            "enabled" => self.enabled = reader.truth(key)?,
            "node" => {
                let node = reader.text(key)?;
                if !is_node_name(&node) {
                    return Err(reader.wrong(key, format!("node = {node:?} is no name of a node")));
                }
                self.node = Some(node);
            }
            "kubeconfig" => self.kubeconfig = Some(reader.path(key)?),
            "severity" => {
                let name = reader.text(key)?;
                let severity = SEVERITIES.into_iter().find(|it| it.name() == name);
                self.severity = severity.ok_or_else(|| {
                    let text = "severity should be note, warning, serious or critical";
                    reader.wrong(key, text)
                })?;
            }
            "runbooks" => self.runbooks = reader.text(key)?,
            _ => {
                return Err(reader.unknown(key, "enabled, node, kubeconfig, severity, runbooks"));
            }
        }
        Ok(())
    }

    /// The name that this node has in its cluster.
    pub fn node_name(&self) -> Result<String> {
        if let Some(node) = &self.node {
            return Ok(node.clone());
        }
        let given = std::env::var(NODE_NAME).ok().filter(|it| is_node_name(it));
        let named = given.or_else(|| {
            let name = rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .to_lowercase();
            is_node_name(&name).then_some(name)
        });
        named.context(
            "cannot tell the name of this node in its cluster; set node in [kubernetes], or NODE_NAME",
        )
    }
}

/// Whether the API server would take it: a DNS name. It becomes part of a path.
fn is_node_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    (1..=253).contains(&name.len())
        && name.chars().all(is_plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
}
