//! The page of sexton and the HTTP interface behind it.
//!
//! `openapi.json` is the contract; `docs/http.md` says what it cannot. A recording is read
//! once, on a thread of its own, into an index ([`index`]) from which the time line is
//! answered; heat maps and flame graphs are worked out from the bundle when they are asked
//! for, by `sexton-profile`; the judgement by the program that starts the server, which also
//! reads profiles of others. A [`Site`] is another page behind the same server.

mod agent;
mod api;
mod app;
mod assets;
mod cache;
mod clock;
mod confine;
mod door;
mod guard;
mod heat;
mod http;
mod index;
mod site;
mod source;
mod stacks;
mod workshop;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sexton_report::diagnosis::Judged;

pub use agent::{Agent, AgentView, IncidentView, LifeView, Report, RingView};
use app::App;
pub use confine::{ConfineError, confine};
use door::Door;
pub use door::Stopper;
pub use http::{Tls, TlsError};
pub use site::{Answer, Asked, Refusal, Site, SiteOptions};

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
    door: Door,
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
        let door = Door::open(options.listen, options.token.as_deref())?;
        let app = App::new(options, bundle, name)
            .map_err(|error| ServeError::Open(bundle.to_owned(), error))?;
        Ok(Self {
            app: Arc::new(app),
            door,
        })
    }

    /// Speaks TLS, and nothing else.
    pub fn set_tls(&mut self, tls: Tls) {
        self.door.set_tls(tls);
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.door.address()
    }

    /// What to open in a browser, with the token if there is one.
    pub fn url(&self) -> String {
        self.door.url()
    }

    /// What ends it.
    pub fn stopper(&self) -> Stopper {
        self.door.stopper()
    }

    /// Answers until it is stopped. What was dropped on the page is gone then, even though
    /// clients may still be connected.
    pub fn run(self) {
        self.door.run(Arc::clone(&self.app));
        self.app.close();
    }
}

/// Whether the page was built into this program; if not, what is missing and what to type.
pub fn page_is_missing() -> Option<&'static str> {
    assets::is_missing().then_some(assets::REMEDY)
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
