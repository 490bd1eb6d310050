//! One request to the API server, within a time and a size. Each has a connection of its own:
//! there is one in five minutes, and tokens and certificates are read anew for it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::access::{Access, Identity, Part};
use crate::error::KubernetesError;

/// How long one request may take, from the connection to the end of the answer.
const LIMIT: Duration = Duration::from_secs(15);

/// The largest answer. A node with all its images and labels has some ten kilobytes.
const ANSWER_LIMIT_BYTES: usize = 4 << 20;

/// What is kept of a refusal.
const SAID_LIMIT_CHARS: usize = 200;

/// The longest that a server may make us wait.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(600);

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
        let server = self.access.server();
        let late = |_| KubernetesError::Late {
            server: server.clone(),
            limit: LIMIT,
        };
        let asked = tokio::time::timeout(LIMIT, self.exchange(method, path, body));
        let (status, retry_after, bytes) = asked.await.map_err(late)??;
        if !(200..300).contains(&status) {
            return Err(KubernetesError::Refused {
                what,
                status,
                said: said(&bytes),
                retry_after,
            });
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| KubernetesError::unusable(what, format!("no JSON came: {error}")))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<(u16, Option<Duration>, Vec<u8>), KubernetesError> {
        let server = self.access.server();
        let request = self.request(method, path, body)?;
        let source = TcpStream::connect((self.access.host.as_str(), self.access.port)).await;
        let connect = |source| KubernetesError::Connect {
            server: server.clone(),
            source,
        };
        let stream = source.map_err(connect)?;
        match &self.access.authority {
            None => send(&server, stream, request).await,
            Some(authority) => {
                let connector = TlsConnector::from(Arc::new(self.tls(authority)?));
                let stream = connector.connect(self.server_name()?, stream).await;
                send(&server, stream.map_err(connect)?, request).await
            }
        }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Request<Full<Bytes>>, KubernetesError> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.access.server())
            .header(USER_AGENT, format!("sexton/{}", self.version))
            .header(ACCEPT, JSON);
        if let Identity::Token(token) = &self.access.identity {
            let token = token.text()?;
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.trim()));
        }
        let bytes = match body {
            Some((kind, body)) => {
                request = request.header(CONTENT_TYPE, kind);
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        request.body(Full::new(bytes)).map_err(|error| {
            KubernetesError::unusable(format!("request {path}"), error.to_string())
        })
    }

    fn server_name(&self) -> Result<ServerName<'static>, KubernetesError> {
        let name = self
            .access
            .server_name
            .as_ref()
            .unwrap_or(&self.access.host);
        ServerName::try_from(name.clone())
            .map_err(|error| KubernetesError::unusable(name, error.to_string()))
    }

    fn tls(&self, authority: &Part) -> Result<ClientConfig, KubernetesError> {
        let wrong = |part: &Part, why: String| KubernetesError::unusable(part.name(), why);
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
        match &self.access.identity {
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
}

fn certificates(part: &Part) -> Result<Vec<CertificateDer<'static>>, KubernetesError> {
    let bytes = part.bytes()?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| KubernetesError::unusable(part.name(), error.to_string()))?;
    match found.is_empty() {
        true => Err(KubernetesError::unusable(
            part.name(),
            "holds no certificate",
        )),
        false => Ok(found),
    }
}

async fn send(
    server: &str,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<(u16, Option<Duration>, Vec<u8>), KubernetesError> {
    let broke = |source| KubernetesError::Http {
        server: server.to_owned(),
        source,
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broke)?;
    // What goes wrong there is told to the reader of the answer as well.
    let connection = tokio::spawn(async { drop(connection.await) });
    let response = sender.send_request(request).await.map_err(broke)?;
    let status = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map(|seconds| Duration::from_secs(seconds).min(LONGEST_RETRY_AFTER));
    let body = Limited::new(response.into_body(), ANSWER_LIMIT_BYTES);
    let collected = body.collect().await;
    connection.abort();
    let bytes = collected.map_err(|error| match error.downcast::<hyper::Error>() {
        Ok(source) => broke(*source),
        Err(error) => {
            debug_assert!(error.is::<LengthLimitError>());
            KubernetesError::TooLarge {
                server: server.to_owned(),
                limit: ANSWER_LIMIT_BYTES,
            }
        }
    })?;
    Ok((status, retry_after, bytes.to_bytes().to_vec()))
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
