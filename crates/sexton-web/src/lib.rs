//! The page of sexton and the HTTP interface behind it.
//!
//! `openapi.json` is the contract; `docs/http.md` says what it cannot. A recording is read
//! once, on a thread of its own, into an index ([`index`]) from which the time line is
//! answered; heat maps and flame graphs are worked out from the bundle when they are asked
//! for, by `sexton-profile`; the judgement by whoever starts the server, who also reads
//! profiles of others.

mod agent;
mod api;
mod app;
mod assets;
mod cache;
mod clock;
mod confine;
mod guard;
mod heat;
mod http;
mod index;
mod source;
mod stacks;
mod workshop;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sexton_report::diagnosis::Judged;

pub use agent::{Agent, AgentView, IncidentView, LifeView, Report, RingView};
use app::App;
pub use confine::{ConfineError, confine};
use http::{Listener, StopHandle};
pub use http::{Tls, TlsError};

/// Judges a bundle. The error is a sentence.
pub type Judge = Box<dyn Fn(&Path) -> Result<Judged, String> + Send + Sync>;

/// Reads a profile of others, the first path, into a bundle at the second.
pub type Import = Box<dyn Fn(&Path, &Path) -> Result<Imported, String> + Send + Sync>;

/// What became of a profile of others.
#[derive(Debug, Clone)]
pub struct Imported {
    /// Whether its samples have times.
    pub has_times: bool,
    /// What could not be read of it, in sentences.
    pub notes: Vec<String>,
}

/// Answers addresses that are not of the page or its interface, such as `/metrics`; `None`
/// where it has no such thing. The second is the client's `Accept`.
pub type More = Box<dyn Fn(&str, Option<&str>) -> Option<Plain> + Send + Sync>;

/// A short answer in plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    /// The status of HTTP.
    pub status: u16,
    /// What it is: `text/plain`.
    pub kind: &'static str,
    /// The text.
    pub text: String,
}

/// What a server is to do.
pub struct Options {
    /// Where to listen; port 0 takes any.
    pub listen: SocketAddr,
    /// What a client must know. Off loopback there must be one.
    pub token: Option<String>,
    /// The largest upload.
    pub max_upload_bytes: u64,
    /// The version of sexton.
    pub version: &'static str,
    /// Judges bundles.
    pub judge: Judge,
    /// Reads profiles of others.
    pub import: Import,
    /// Whether the recording is opened only when it is first asked for. An agent serves its
    /// ring all the time and is looked at now and then.
    pub is_lazy: bool,
    /// The agent that records what is looked at, if one does.
    pub agent: Option<Agent>,
    /// Answers other addresses.
    pub more: Option<More>,
    /// Of these, the ones that need no token: probes of health have none to send. What is
    /// answered there must be fit for anyone who reaches the server.
    pub open: &'static [&'static str],
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Nothing may be open to the network.
    #[error("listening on {0} needs a token: --token, or SEXTON_TOKEN")]
    NoToken(SocketAddr),
    /// The address is in use, or not ours.
    #[error("cannot listen on {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// There is nothing to look at.
    #[error("cannot open {path}", path = .0.display())]
    Open(PathBuf, #[source] sexton_store::StoreError),
}

/// A server.
pub struct Server {
    app: Arc<App>,
    listener: Listener,
    address: SocketAddr,
    token: Option<String>,
}

/// Ends a server from another thread.
#[derive(Debug, Clone)]
pub struct Stopper(StopHandle);

impl Stopper {
    /// No further connection is taken.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// Closes a recording that is not used, from another thread.
#[derive(Clone)]
pub struct Rester(Arc<App>);

impl Rester {
    /// Closes a recording that is opened when it is asked for, if it was not asked for in
    /// this time.
    pub fn rest(&self, idle: Duration) {
        self.0.rest(idle);
    }
}

impl std::fmt::Debug for Rester {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rester").finish_non_exhaustive()
    }
}

impl Server {
    /// What closes its recording while it is not used.
    pub fn rester(&self) -> Rester {
        Rester(Arc::clone(&self.app))
    }

    /// Opens a bundle, which may be one that is being written, and listens.
    pub fn start(options: Options, bundle: &Path, name: &str) -> Result<Self, ServeError> {
        let listen = options.listen;
        if options.token.is_none() && !is_loopback(listen.ip()) {
            return Err(ServeError::NoToken(listen));
        }
        let token = options.token.clone();
        let app = App::new(options, bundle, name)
            .map_err(|error| ServeError::Open(bundle.to_owned(), error))?;
        let failed = |error| ServeError::Listen(listen, error);
        let listener = Listener::bind(listen).map_err(failed)?;
        Ok(Self {
            app: Arc::new(app),
            address: listener.address().map_err(failed)?,
            listener,
            token,
        })
    }

    /// Speaks TLS, and nothing else.
    pub fn set_tls(&mut self, tls: Tls) {
        self.listener.set_tls(tls);
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What to open in a browser, with the token if there is one.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        match &self.token {
            Some(token) => format!("http://{address}/?token={token}"),
            None => format!("http://{address}/"),
        }
    }

    /// What ends it.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.listener.stop_handle())
    }

    /// Answers until it is stopped. What was dropped on the page is gone then, even though
    /// clients may still be connected.
    pub fn run(self) {
        self.listener.run(Arc::clone(&self.app));
        self.app.close();
    }
}

/// Whether the page was built into this program; if not, what is missing and what to type.
pub fn page_is_missing() -> Option<&'static str> {
    assets::is_missing().then_some(assets::REMEDY)
}

fn is_loopback(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => {
            ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback())
        }
    }
}

/// A token that nobody guesses: 128 bits from the kernel, in hex. A token that is given
/// must be plain: it goes into an address and a cookie.
pub fn new_token() -> io::Result<String> {
    let mut bytes = [0; 16];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether a token can go into an address and a cookie, and is long enough.
pub fn is_good_token(token: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    (8..=256).contains(&token.len()) && token.bytes().all(is_plain)
}
