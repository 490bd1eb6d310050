//! How the API server is reached: from inside a pod, or by a kubeconfig.
//!
//! Files are named here and read at each connection: tokens and certificates rotate.

mod kubeconfig;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::error::KubernetesError;

/// Where a pod finds its service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A kubeconfig, a certificate, a token: all are a few kilobytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// How the API server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Its name or address.
    pub(crate) host: String,
    /// Its port.
    pub(crate) port: u16,
    /// Whom to trust; without it nothing is encrypted, which only tests want.
    pub(crate) authority: Option<Part>,
    /// What its certificate must say, where that is not the host.
    pub(crate) server_name: Option<String>,
    /// Who we are.
    pub(crate) identity: Identity,
}

/// A part of the credentials: in a file, or given.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// In a file, which may change.
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

/// Who we are to the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Identity {
    Token(Part),
    Certificate { chain: Part, key: Part },
    Anonymous,
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
            host: variable("KUBERNETES_SERVICE_HOST")?,
            port,
            authority: Some(Part::File(folder.join("ca.crt"))),
            server_name: None,
            identity: Identity::Token(Part::File(folder.join("token"))),
        })
    }

    /// By the current context of a kubeconfig. Programs that print credentials (`exec`) are not
    /// run, and the server's certificate is always checked.
    pub fn kubeconfig(path: &Path) -> Result<Self, KubernetesError> {
        let part = Part::File(path.to_owned());
        kubeconfig::read(path, &part.text()?)
    }

    /// Its name in messages.
    pub fn server(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl Part {
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, KubernetesError> {
        match self {
            Self::Given(bytes) => Ok(bytes.clone()),
            Self::File(path) => {
                let mut bytes = Vec::new();
                File::open(path)
                    .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
                    .map_err(|source| KubernetesError::file(path, source))?;
                match bytes.len() as u64 > MAX_FILE_BYTES {
                    true => Err(KubernetesError::unusable(
                        path.display().to_string(),
                        "larger than 1 MiB",
                    )),
                    false => Ok(bytes),
                }
            }
        }
    }

    pub(crate) fn text(&self) -> Result<String, KubernetesError> {
        String::from_utf8(self.bytes()?)
            .map_err(|_| KubernetesError::unusable(self.name(), "is no text"))
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Given(_) => "credentials in the kubeconfig".to_owned(),
        }
    }
}
