//! Leads a request to what answers it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use sexton_store::StoreError;

use crate::Options;
use crate::api;
use crate::assets;
use crate::cache::Cache;
use crate::guard::Guard;
use crate::http::{Body, Handler, Payload, Problem, Request, Response, blocking};
use crate::source::Source;
use crate::workshop::Workshop;

/// The id of what the server was started with.
const MAIN: &str = "main";

/// What the ids of files begin with that were dropped on the page. Those of incidents begin
/// with their year.
const DROPPED: &str = "file";

/// Files that were dropped on the page and are kept open.
const MAX_DROPPED: usize = 7;

/// What a request is answered from.
pub(crate) struct App {
    pub(crate) options: Options,
    guard: Guard,
    sources: RwLock<Sources>,
    pub(crate) workshop: Workshop,
    pub(crate) cache: Cache,
}

#[derive(Default)]
struct Sources {
    open: Vec<Arc<Source>>,
    n_dropped: u64,
    /// What the server was started with, where that is opened when it is asked for, and when
    /// it last was.
    main: Option<Main>,
}

struct Main {
    bundle: PathBuf,
    name: String,
    is_open: bool,
    asked: Instant,
}

impl App {
    pub(crate) fn new(options: Options, bundle: &Path, name: &str) -> Result<Self, StoreError> {
        let mut sources = Sources::default();
        match options.is_lazy {
            false => sources.open.push(open_main(bundle, name)?),
            true => {
                sources.main = Some(Main {
                    bundle: bundle.to_owned(),
                    name: name.to_owned(),
                    is_open: false,
                    asked: Instant::now(),
                });
            }
        }
        Ok(Self {
            guard: Guard::new(options.token.clone()),
            options,
            sources: RwLock::new(sources),
            workshop: Workshop::default(),
            cache: Cache::default(),
        })
    }

    /// All sources, in the order in which they were opened.
    pub(crate) fn sources(&self) -> Vec<Arc<Source>> {
        self.wake();
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        sources.open.clone()
    }

    /// Opens what is opened when it is asked for. One that cannot be opened is tried again by
    /// the next question.
    fn wake(&self) {
        let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        let Some(main) = &mut sources.main else {
            return;
        };
        main.asked = Instant::now();
        if !main.is_open
            && let Ok(source) = open_main(&main.bundle, &main.name)
        {
            main.is_open = true;
            sources.open.insert(0, source);
        }
    }

    /// Closes what is opened when it is asked for, and was not for so long.
    pub(crate) fn rest(&self, idle: Duration) {
        // The agent's loop asks: it does not wait for one that is just being opened.
        let Ok(mut sources) = self.sources.try_write() else {
            return;
        };
        let Some(main) = &mut sources.main else {
            return;
        };
        if main.is_open && main.asked.elapsed() >= idle {
            main.is_open = false;
            // What was dropped on the page is nowhere else.
            let (dropped, closed): (Vec<_>, Vec<_>) = std::mem::take(&mut sources.open)
                .into_iter()
                .partition(|source| source.id.starts_with(DROPPED));
            sources.open = dropped;
            for source in closed {
                self.cache.forget(&format!("{}/", source.id));
            }
        }
    }

    /// The source of this id.
    pub(crate) fn source(&self, id: &str) -> Result<Arc<Source>, Problem> {
        let found = self.sources().into_iter().find(|source| source.id == id);
        let found = found.or_else(|| self.incident(id));
        found.ok_or_else(|| Problem::new(404, "there is no such source: it may have been dropped"))
    }

    /// An incident of the agent, which is opened when it is asked for.
    fn incident(&self, id: &str) -> Option<Arc<Source>> {
        let (name, bundle) = self.options.agent.as_ref()?.incident(id)?;
        let source = Source::open(id, &name, &bundle, None, Vec::new(), true).ok()?;
        Some(self.add(source))
    }

    /// An id for a source that is about to be opened.
    pub(crate) fn next_id(&self) -> String {
        let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        sources.n_dropped += 1;
        format!("{DROPPED}{}", sources.n_dropped)
    }

    /// Adds a source, unless another request has done so; the oldest of those beside the main one
    /// goes when there are too many.
    pub(crate) fn add(&self, source: Arc<Source>) -> Arc<Source> {
        let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sources.open.iter().find(|open| open.id == source.id) {
            return Arc::clone(known);
        }
        sources.open.push(Arc::clone(&source));
        let beside = |open: &Arc<Source>| open.id != MAIN;
        let n_beside = sources.open.iter().filter(|open| beside(open)).count();
        if n_beside > MAX_DROPPED
            && let Some(oldest) = sources.open.iter().position(beside)
        {
            let gone = sources.open.remove(oldest);
            self.cache.forget(&format!("{}/", gone.id));
        }
        source
    }

    /// Lets go of all sources, and with them of the files that were dropped on the page.
    pub(crate) fn close(&self) {
        let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        sources.open.clear();
    }

    async fn route(
        self: &Arc<Self>,
        request: &Arc<Request>,
        body: &mut Body,
    ) -> Result<Response, Problem> {
        let more = self.options.more.as_ref();
        if let Some(plain) = more.and_then(|more| more(&request.path, request.header("accept"))) {
            allow(request, "GET, HEAD")?;
            let text = Payload::Shared(plain.text.into_bytes().into());
            return Ok(Response::new(plain.status, plain.kind, text));
        }
        let path: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
        match path[..] {
            ["api", "v1", "sources"] if request.method == "POST" => {
                api::open(self, request, body).await
            }
            ["api", "v1", "sources"] => {
                allow(request, "GET, HEAD, POST")?;
                let app = Arc::clone(self);
                blocking(move || Ok(api::sources(&app))).await
            }
            ["api", "v1", "sources", id] => {
                allow(request, "GET, HEAD")?;
                let source = self.source(id)?;
                blocking(move || Ok(Response::json(&api::source_view(&source)))).await
            }
            ["api", "v1", "sources", id, what] => {
                let Some(question) = api::Question::by_name(what) else {
                    return Err(Problem::new(404, "there is nothing of that name"));
                };
                allow(request, "GET, HEAD")?;
                question.answer(self, &self.source(id)?, request).await
            }
            ["api", "v1", "agent"] => {
                allow(request, "GET, HEAD")?;
                api::agent(self).await
            }
            ["openapi.json"] => {
                allow(request, "GET, HEAD")?;
                let body = Payload::Static(include_bytes!("../openapi.json"));
                Ok(Response::new(200, "application/json", body))
            }
            _ => {
                let asset = assets::find(assets::OF_NODE, &request.path)?;
                allow(request, "GET, HEAD")?;
                Ok(asset)
            }
        }
    }
}

fn open_main(bundle: &Path, name: &str) -> Result<Arc<Source>, StoreError> {
    Source::open(MAIN, name, bundle, None, Vec::new(), true)
}

pub(crate) fn allow(request: &Request, methods: &'static str) -> Result<(), Problem> {
    let is_allowed = methods.split(", ").any(|method| method == request.method);
    if is_allowed {
        Ok(())
    } else {
        Err(Problem::only(methods))
    }
}

impl Handler for App {
    async fn answer(self: Arc<Self>, request: Arc<Request>, body: &mut Body) -> Response {
        let is_open = self.options.open.contains(&request.path.as_str());
        match self.guard.check(&request, is_open) {
            Err(response) => response,
            Ok(()) => {
                let answer = self.route(&request, body).await;
                answer.unwrap_or_else(Response::from)
            }
        }
    }
}
