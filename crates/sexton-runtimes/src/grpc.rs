//! Calls a method of a gRPC service on a Unix socket, within a time and a size.
//!
//! Each call has a connection of its own, as each question to Docker has: a stuck call
//! then holds up no other, and ending one is closing its socket.

use std::error::Error;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{HeaderMap, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::task::JoinHandle;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status, Streaming};
use tonic_prost::ProstCodec;
use tower_service::Service;

use crate::connection::{Tasks, connect, within};
use crate::http::ANSWER_LIMIT_BYTES;
use crate::trouble::{Trouble, find, said};

/// The most that a daemon may send before we have read it. What every peer opens with.
const WINDOW_BYTES: u32 = (64 << 10) - 1;

/// The longest frame. What every peer may send.
const FRAME_LIMIT_BYTES: u32 = 16 << 10;

/// The longest headers.
const HEADERS_LIMIT_BYTES: u32 = 64 << 10;

/// Where a call goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Method<'m> {
    pub(crate) socket: &'m Path,
    /// As in `/containerd.services.version.v1.Version/Version`.
    pub(crate) path: &'static str,
    /// What containerd keeps apart by; empty where nothing is.
    pub(crate) namespace: &'m str,
}

/// A call that is answered with any number of messages. Dropped, it closes its connection.
pub(crate) struct Call<A> {
    /// Done once the answer begins, which may be with its first message only.
    begins: JoinHandle<Result<Streaming<A>, Status>>,
    messages: Option<Streaming<A>>,
    is_status_told: Arc<AtomicBool>,
    _tasks: Tasks,
}

impl Method<'_> {
    /// Asks, and waits at most so long for the first message of the answer.
    pub(crate) async fn ask<Q, A>(self, question: Q, limit: Duration) -> Result<A, Trouble>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let answer = async {
            let mut call = self.begin(question).await?;
            call.next().await
        };
        let message = within(limit, answer).await?;
        message.ok_or_else(|| Trouble::Malformed("it holds no message".into()))
    }

    /// Asks, which may take so long, and waits for nothing yet.
    pub(crate) async fn call<Q, A>(self, question: Q, limit: Duration) -> Result<Call<A>, Trouble>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        within(limit, self.begin(question)).await
    }

    async fn begin<Q, A>(self, question: Q) -> Result<Call<A>, Trouble>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let request = self.request(question)?;
        let tasks = Tasks::default();
        let is_status_told = Arc::new(AtomicBool::new(false));
        let connection = Connection {
            sender: handshake(self.socket, &tasks).await?,
            is_status_told: Arc::clone(&is_status_told),
        };
        let mut client = Grpc::with_origin(connection, Uri::from_static("http://localhost"))
            .max_decoding_message_size(ANSWER_LIMIT_BYTES);
        let path = PathAndQuery::from_static(self.path);
        let begins = tasks.spawn(async move {
            let codec = ProstCodec::<Q, A>::new();
            let answer = client.server_streaming(request, path, codec).await?;
            Ok(answer.into_inner())
        });
        Ok(Call {
            begins,
            messages: None,
            is_status_told,
            _tasks: tasks,
        })
    }

    fn request<Q>(self, question: Q) -> Result<tonic::Request<Q>, Trouble> {
        let mut request = tonic::Request::new(question);
        if !self.namespace.is_empty() {
            let namespace = MetadataValue::try_from(self.namespace);
            let namespace = namespace
                .map_err(|_| Trouble::Malformed("it has a namespace that is no name".into()))?;
            let metadata = request.metadata_mut();
            metadata.insert("containerd-namespace", namespace);
        }
        Ok(request)
    }
}

async fn handshake(socket: &Path, tasks: &Tasks) -> Result<SendRequest<Body>, Trouble> {
    let stream = TokioIo::new(connect(socket).await?);
    let (sender, connection) = http2::Builder::new(tasks.spawner())
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_frame_size(FRAME_LIMIT_BYTES)
        .max_header_list_size(HEADERS_LIMIT_BYTES)
        .header_table_size(0)
        .handshake(stream)
        .await
        .map_err(|error| Trouble::of_http(&error))?;
    // What goes wrong there is told to the reader of the answer as well.
    tasks.spawn(async { drop(connection.await) });
    Ok(sender)
}

impl<A> Call<A> {
    /// The next message, or nothing after the last. May be dropped while it waits.
    pub(crate) async fn next(&mut self) -> Result<Option<A>, Trouble> {
        let is_told = || self.is_status_told.load(Ordering::Relaxed);
        let messages = match &mut self.messages {
            Some(messages) => messages,
            none => {
                let begun = (&mut self.begins).await;
                let begun = begun.map_err(|error| Trouble::Malformed(error.to_string()))?;
                none.insert(begun.map_err(|status| trouble(&status, is_told()))?)
            }
        };
        let message = messages.message().await;
        message.map_err(|status| trouble(&status, is_told()))
    }
}

/// What a status means, whether the daemon told it or tonic made it of what it could not read.
fn trouble(status: &Status, is_told: bool) -> Trouble {
    if is_told {
        return Trouble::Declined {
            code: status.code().into(),
            message: said(status.message().as_bytes()),
        };
    }
    if let Some(&Refusal(status)) = find(status) {
        return Trouble::Refused {
            status: status.as_u16(),
            message: "this is no gRPC".into(),
        };
    }
    match (find::<hyper::Error>(status), status.code()) {
        (Some(error), _) => Trouble::of_http(error),
        (None, Code::OutOfRange) => Trouble::TooLarge,
        (None, Code::Unknown) => Trouble::Unfinished,
        (None, _) => Trouble::Malformed(said(status.message().as_bytes())),
    }
}

/// One connection of HTTP/2, as tonic wants it.
struct Connection {
    sender: SendRequest<Body>,
    /// Whether the daemon itself has said that something went wrong.
    is_status_told: Arc<AtomicBool>,
}

/// An answer that is HTTP but no gRPC.
#[derive(Debug, thiserror::Error)]
#[error("status {0}")]
struct Refusal(StatusCode);

type BoxError = Box<dyn Error + Send + Sync>;

impl Service<Request<Body>> for Connection {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let agent = HeaderValue::from_static("sexton");
        request.headers_mut().insert(USER_AGENT, agent);
        let response = self.sender.send_request(request);
        let is_status_told = Arc::clone(&self.is_status_told);
        let note = move |fields: &HeaderMap| {
            if fields
                .get(Status::GRPC_STATUS)
                .is_some_and(|code| code != "0")
            {
                is_status_told.store(true, Ordering::Relaxed);
            }
        };
        Box::pin(async move {
            let response = response.await?;
            note(response.headers());
            let is_status_there = response.headers().contains_key(Status::GRPC_STATUS);
            if response.status() != StatusCode::OK && !is_status_there {
                return Err(Refusal(response.status()).into());
            }
            Ok(response.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    frame.trailers_ref().map(&note);
                    frame
                }))
            }))
        })
    }
}
