//! TLS of a client: whom it trusts, and its own certificate.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use crate::error::HttpError;
use crate::part::Part;
use crate::server::{Identity, Server};

/// Where distributions keep the certificates that a node trusts: Debian and Alpine, Red Hat,
/// SUSE, others.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The certificates that this node trusts.
pub(crate) fn system() -> Result<Part, HttpError> {
    let found = SYSTEM.iter().find(|path| Path::new(path).exists());
    let found = found.ok_or_else(|| {
        let why = "this node has no list of authorities; name one with tls_ca";
        HttpError::unusable("TLS", why)
    })?;
    Ok(Part::File(found.into()))
}

/// What the server's certificate must say.
pub(crate) fn server_name(server: &Server) -> Result<ServerName<'static>, HttpError> {
    let name = server.server_name.as_ref().unwrap_or(&server.host);
    ServerName::try_from(name.clone()).map_err(|error| HttpError::unusable(name, error.to_string()))
}

/// The settings of one connection.
pub(crate) fn config(authority: &Part, identity: &Identity) -> Result<ClientConfig, HttpError> {
    let wrong = |part: &Part, why: String| HttpError::unusable(part.name(), why);
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority)? {
        roots
            .add(certificate)
            .map_err(|error| wrong(authority, error.to_string()))?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(authority, error.to_string()))?
        .with_root_certificates(roots);
    match identity {
        Identity::Certificate { chain, key } => {
            let certificates = certificates(chain)?;
            let found = PrivateKeyDer::from_pem_slice(&key.bytes()?);
            let found = found.map_err(|error| wrong(key, error.to_string()))?;
            config
                .with_client_auth_cert(certificates, found)
                .map_err(|error| wrong(chain, error.to_string()))
        }
        Identity::Token(_) | Identity::Anonymous => Ok(config.with_no_client_auth()),
    }
}

fn certificates(part: &Part) -> Result<Vec<CertificateDer<'static>>, HttpError> {
    let bytes = part.bytes()?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| HttpError::unusable(part.name(), error.to_string()))?;
    match found.is_empty() {
        true => Err(HttpError::unusable(part.name(), "holds no certificate")),
        false => Ok(found),
    }
}
