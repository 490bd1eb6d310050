//! TLS of the server, from files that may be renewed while it runs.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// A file of certificates is a few KiB; more is a mistake in its name.
const MOST_BYTES: u64 = 1 << 20;

/// Why certificate and key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// Others may read the key.
    #[error("{} can be read by every user; chmod o-r", .0.display())]
    Open(PathBuf),
    /// There is no certificate or key in a file.
    #[error("{} holds no {what} in PEM form", path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// The two do not fit, or are of a sort that is not known.
    #[error("cannot use {} with {}", cert.display(), key.display())]
    Unfit {
        /// The file of certificates.
        cert: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What is wrong.
        #[source]
        source: rustls::Error,
    },
}

/// Certificate and key of a server. Clones share them.
#[derive(Clone)]
pub struct Tls {
    cert: PathBuf,
    key: PathBuf,
    current: Arc<Mutex<Arc<ServerConfig>>>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls")
            .field("cert", &self.cert)
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads them: the certificate with those that lead to a known one, and its key, in PEM form.
    pub fn read(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        Ok(Self {
            cert: cert.to_owned(),
            key: key.to_owned(),
            current: Arc::new(Mutex::new(config(cert, key)?)),
        })
    }

    /// Reads them again. What holds now holds on if that fails; connections that are open keep
    /// what they began with.
    pub fn reload(&self) -> Result<(), TlsError> {
        let renewed = config(&self.cert, &self.key)?;
        *self.lock() = renewed;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.lock()))
    }

    fn lock(&self) -> MutexGuard<'_, Arc<ServerConfig>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn config(cert: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let nothing = |path: &Path, what| TlsError::Nothing {
        path: path.to_owned(),
        what,
    };
    let bytes = read(cert)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| nothing(cert, "certificate"))?;
    let bytes = read(key)?;
    let meta = fs::metadata(key).map_err(|source| TlsError::Read(key.to_owned(), source))?;
    if meta.permissions().mode() & 0o004 != 0 {
        return Err(TlsError::Open(key.to_owned()));
    }
    let private = PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| nothing(key, "private key"))?;
    let unfit = |source| TlsError::Unfit {
        cert: cert.to_owned(),
        key: key.to_owned(),
        source,
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unfit)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(unfit)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes))
        .map_err(|source| TlsError::Read(path.to_owned(), source))?;
    Ok(bytes)
}
