//! How the API server is reached: from inside a pod, or by a kubeconfig.
//!
//! Files are named here and read at each connection: tokens and certificates rotate.

mod kubeconfig;

use std::path::Path;

use sexton_http::{Identity, Part, Server, Trust};

use crate::error::KubernetesError;

/// Where a pod finds its service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How the API server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    pub(crate) server: Server,
}

impl Access {
    /// As the kubelet tells each pod.
    pub fn in_cluster() -> Result<Self, KubernetesError> {
        let variable = |name: &'static str| {
            std::env::var(name)
                .ok()
                .filter(|value| !value.is_empty())
                .ok_or(KubernetesError::NotInCluster { name })
        };
        let port = variable("KUBERNETES_SERVICE_PORT")?;
        let port = port.parse().map_err(|_| {
            KubernetesError::unusable("KUBERNETES_SERVICE_PORT", format!("{port:?} is no port"))
        })?;
        let folder = Path::new(SERVICE_ACCOUNT);
        Ok(Self {
            server: Server {
                host: variable("KUBERNETES_SERVICE_HOST")?,
                port,
                trust: Trust::Authority(Part::File(folder.join("ca.crt"))),
                server_name: None,
                identity: Identity::Token(Part::File(folder.join("token"))),
            },
        })
    }

    /// By the current context of a kubeconfig. Programs that print credentials (`exec`) are not
    /// run, and the server's certificate is always checked.
    pub fn kubeconfig(path: &Path) -> Result<Self, KubernetesError> {
        let part = Part::File(path.to_owned());
        kubeconfig::read(path, &part.text().map_err(KubernetesError::Ask)?)
    }

    /// Its name in messages.
    pub fn server(&self) -> String {
        self.server.name()
    }
}
