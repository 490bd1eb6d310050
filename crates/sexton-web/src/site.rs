//! Another page behind the same server: its files, and answers of the program that has it.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::app::allow;
use crate::assets;
use crate::door::{Door, Stopper};
use crate::guard::Guard;
use crate::http::{Body, Handler, Payload, Problem, Query, Request, Response};
use crate::workshop::Workshop;
use crate::{ServeError, Tls};

/// What its answers are below.
const API: &str = "/api/v1/";

/// Works an answer out, on a thread where it may take its time.
pub type Answer = Box<dyn Fn(&Asked<'_>) -> Result<Vec<u8>, Refusal> + Send + Sync>;

/// What is asked.
pub struct Asked<'a> {
    /// The path behind `/api/v1/`.
    pub path: &'a str,
    query: &'a Query,
}

impl<'a> Asked<'a> {
    /// All values of a parameter, in order.
    pub fn all(&self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.query.all(name)
    }

    /// The first value of a parameter.
    pub fn one(&self, name: &'a str) -> Option<&'a str> {
        self.all(name).next()
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status of HTTP.
    pub status: u16,
    /// A sentence.
    pub detail: String,
}

/// What a site is to do.
pub struct SiteOptions {
    /// Where to listen; port 0 takes any.
    pub listen: SocketAddr,
    /// The access token. Off loopback there must be one.
    pub token: Option<String>,
    /// The folder of its page in the build of all pages: `/fleet`.
    pub folder: &'static str,
    /// Its answers, as JSON.
    pub answer: Answer,
}

/// A server of such a page.
pub struct Site {
    shared: Arc<Shared>,
    door: Door,
}

struct Shared {
    guard: Guard,
    workshop: Workshop,
    folder: &'static str,
    answer: Answer,
}

impl Site {
    /// Listens.
    pub fn start(options: SiteOptions) -> Result<Self, ServeError> {
        let door = Door::open(options.listen, options.token.as_deref())?;
        let shared = Shared {
            guard: Guard::new(options.token),
            workshop: Workshop::default(),
            folder: options.folder,
            answer: options.answer,
        };
        Ok(Self {
            shared: Arc::new(shared),
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

    /// Answers until it is stopped.
    pub fn run(self) {
        self.door.run(self.shared);
    }
}

impl Shared {
    async fn route(self: &Arc<Self>, request: &Arc<Request>) -> Result<Response, Problem> {
        allow(request, "GET, HEAD")?;
        if !request.path.starts_with(API) {
            return assets::find(self.folder, &request.path);
        }
        let (shared, request) = (Arc::clone(self), Arc::clone(request));
        let work = move || {
            let asked = Asked {
                path: request.path.strip_prefix(API).unwrap_or_default(),
                query: &request.query,
            };
            let refused = |refusal: Refusal| Problem::new(refusal.status, refusal.detail);
            let json = (shared.answer)(&asked).map_err(refused)?;
            let body = Payload::Shared(json.into());
            Ok(Response::new(200, "application/json", body))
        };
        self.workshop.work(work).await
    }
}

impl Handler for Shared {
    async fn answer(self: Arc<Self>, request: Arc<Request>, _: &mut Body) -> Response {
        if let Err(response) = self.guard.check(&request, false) {
            return response;
        }
        let answer = self.route(&request).await;
        answer.unwrap_or_else(Response::from)
    }
}
