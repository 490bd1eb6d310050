//! Asks a server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::error::HttpError;
use crate::server::{Identity, Server, Trust};
use crate::tls;

/// The longest that a server may make us wait.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(600);

/// A request.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// `GET`, `POST`, `PATCH`.
    pub method: Method,
    /// The path and the query.
    pub path: &'a str,
    /// Headers, but those that every request has.
    pub headers: Vec<(&'a str, &'a str)>,
    /// Its body; empty for none.
    pub body: Bytes,
    /// How this program calls itself.
    pub agent: &'a str,
}

/// What an answer may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// From the connection to the end of the answer.
    pub time: Duration,
    /// The bytes of the answer.
    pub answer_bytes: usize,
}

/// An answer, whatever it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// When the server wants to be asked again, if it says so in seconds; ten minutes at most.
    pub retry_after: Option<Duration>,
    /// Its body.
    pub bytes: Vec<u8>,
}

impl Server {
    /// Asks it, over a connection of its own.
    pub async fn ask(&self, ask: Ask<'_>, bounds: Bounds) -> Result<Answer, HttpError> {
        let late = |_| HttpError::Late {
            server: self.name(),
            limit: bounds.time,
        };
        let asked = tokio::time::timeout(bounds.time, self.exchange(ask, bounds.answer_bytes));
        asked.await.map_err(late)?
    }

    async fn exchange(&self, ask: Ask<'_>, most: usize) -> Result<Answer, HttpError> {
        let server = self.name();
        let request = self.request(ask)?;
        let connect = |source| HttpError::Connect {
            server: server.clone(),
            source,
        };
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream.map_err(connect)?;
        let authority = match &self.trust {
            Trust::Plain => return send(&server, stream, request, most).await,
            Trust::Authority(part) => part.clone(),
            Trust::System => tls::system()?,
        };
        let config = tls::config(&authority, &self.identity)?;
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(tls::server_name(self)?, stream).await;
        send(&server, stream.map_err(connect)?, request, most).await
    }

    fn request(&self, ask: Ask<'_>) -> Result<Request<Full<Bytes>>, HttpError> {
        let wrong = |what: &str, why: String| HttpError::unusable(what, why);
        let mut request = Request::builder()
            .method(ask.method)
            .uri(ask.path)
            .header(HOST, self.name())
            .header(USER_AGENT, ask.agent);
        for (name, value) in ask.headers {
            let named: HeaderName = name
                .parse()
                .map_err(|_| wrong(name, "is no name of a header".into()))?;
            let value = HeaderValue::from_str(value)
                .map_err(|_| wrong(name, "a header is one line of text".into()))?;
            request = request.header(named, value);
        }
        if let Identity::Token(token) = &self.identity {
            let text = token.text()?;
            let value = HeaderValue::from_str(&format!("Bearer {}", text.trim()));
            let mut value =
                value.map_err(|_| wrong(&token.name(), "a token is one line of text".into()))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        request
            .body(Full::new(ask.body))
            .map_err(|error| wrong(ask.path, error.to_string()))
    }
}

async fn send(
    server: &str,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
    most: usize,
) -> Result<Answer, HttpError> {
    let broke = |source| HttpError::Http {
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
    let body = Limited::new(response.into_body(), most);
    let collected = body.collect().await;
    connection.abort();
    let bytes = collected.map_err(|error| match error.downcast::<hyper::Error>() {
        Ok(source) => broke(*source),
        Err(error) => {
            debug_assert!(error.is::<LengthLimitError>());
            HttpError::TooLarge {
                server: server.to_owned(),
                limit: most,
            }
        }
    })?;
    Ok(Answer {
        status,
        retry_after,
        bytes: bytes.to_bytes().to_vec(),
    })
}
