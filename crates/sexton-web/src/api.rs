//! What is asked, one file for each question.

mod diagnosis;
mod export;
mod flame;
mod heatmap;
mod lanes;
#[cfg(test)]
mod openapi;
mod params;
mod pprof;
mod samples;
mod sources;
mod tiles;
mod upload;
mod zombies;

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use sexton_report::diagnosis::SubjectView;

use crate::app::App;
use crate::clock::Clock;
use crate::http::{Payload, Problem, Request, Response, blocking};
use crate::index::{BlindSpan, Happening};
use crate::source::Source;
use params::{Params, Window};

pub(crate) use diagnosis::Kept;
pub(crate) use sources::{source_view, sources};
pub(crate) use upload::open;

/// How the agent is that records what is looked at.
pub(crate) async fn agent(app: &Arc<App>) -> Result<Response, Problem> {
    let works_in = Arc::clone(app);
    let app = Arc::clone(app);
    let work = move || {
        let Some(agent) = &app.options.agent else {
            let detail =
                "no agent records what is looked at; `sexton agent` with [listen] http does";
            return Err(Problem::new(404, detail));
        };
        let view = (agent.report)().map_err(|why| Problem::new(500, why))?;
        Ok(Response::json(&view))
    };
    works_in.workshop.work(work).await
}

/// What can be asked of a source.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Question {
    Diagnosis,
    Lanes,
    Tiles,
    HeatMap,
    Flame,
    Zombies,
    Pprof,
    Export,
}

impl Question {
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "diagnosis" => Self::Diagnosis,
            "lanes" => Self::Lanes,
            "tiles" => Self::Tiles,
            "heatmap" => Self::HeatMap,
            "flame" => Self::Flame,
            "zombies" => Self::Zombies,
            "profile.pb.gz" => Self::Pprof,
            "export.html" => Self::Export,
            _ => return None,
        })
    }

    /// Works the answer out, or finds it.
    pub(crate) async fn answer(
        self,
        app: &Arc<App>,
        source: &Arc<Source>,
        request: &Arc<Request>,
    ) -> Result<Response, Problem> {
        let (app, source) = (Arc::clone(app), Arc::clone(source));
        match self {
            Self::Diagnosis => {
                let judged = diagnosis::answer(&app, &source).await?;
                Ok(json_bytes(Arc::clone(&judged.json)))
            }
            Self::Lanes => {
                blocking(move || Ok(Response::json(&lanes::view(&source.state())))).await
            }
            Self::Zombies => {
                blocking(move || Ok(Response::json(&zombies::view(&source.state())))).await
            }
            Self::Tiles => {
                let asked = read(&source, request, tiles::Asked::read).await?;
                let work = move || Ok(Response::json(&asked.view(&source.state())?));
                app.workshop.work(work).await
            }
            Self::HeatMap => kept::<heatmap::Asked>(app, source, request).await,
            Self::Flame => kept::<flame::Asked>(app, source, request).await,
            Self::Pprof => {
                let asked = read(&source, request, <flame::Asked as Lasting>::read).await?;
                let work = move || pprof::answer(&source, &asked);
                app.workshop.work(work).await
            }
            Self::Export => {
                let window = read(&source, request, |params, source| params.window(source)).await?;
                let judged = diagnosis::answer(&app, &source).await?;
                let works_in = Arc::clone(&app);
                let work = move || export::answer(&app, &source, window, &judged);
                works_in.workshop.work(work).await
            }
        }
    }
}

/// Reads what is asked of a source, which may have to be waited for.
async fn read<A: Send + 'static>(
    source: &Arc<Source>,
    request: &Arc<Request>,
    read: fn(&Params<'_>, &Source) -> Result<A, Problem>,
) -> Result<A, Problem> {
    let (source, request) = (Arc::clone(source), Arc::clone(request));
    blocking(move || read(&Params::new(&request.query), &source)).await
}

/// A question whose answer is kept as long as it cannot change.
trait Lasting: Sized + Send + 'static {
    /// The answer.
    type View: Serialize;

    fn read(params: &Params<'_>, source: &Source) -> Result<Self, Problem>;

    /// A window that holds all that is asked about.
    fn window(&self) -> Window;

    fn answer(&self, source: &Source) -> Result<Self::View, Problem>;
}

/// Answers from what is kept, or works it out, and keeps what will not change.
async fn kept<A: Lasting>(
    app: Arc<App>,
    source: Arc<Source>,
    request: &Arc<Request>,
) -> Result<Response, Problem> {
    let asked = read(&source, request, A::read).await?;
    let key = {
        let (source, request, window) = (Arc::clone(&source), Arc::clone(request), asked.window());
        blocking(move || Ok(key(&source, &request, window))).await?
    };
    let found = |app: &App, key: &Option<String>| app.cache.get(key.as_deref()?);
    if let Some(bytes) = found(&app, &key) {
        return Ok(json_bytes(bytes));
    }
    let works_in = Arc::clone(&app);
    let work = move || {
        // Another client may have asked for the same and been before us.
        if let Some(bytes) = found(&app, &key) {
            return Ok(json_bytes(bytes));
        }
        let bytes: Arc<[u8]> = serde_json::to_vec(&asked.answer(&source)?)
            .map_err(|error| Problem::new(500, format!("cannot write the answer: {error}")))?
            .into();
        if let Some(key) = key {
            app.cache.put(key, &bytes);
        }
        Ok(json_bytes(bytes))
    };
    works_in.workshop.work(work).await
}

/// Under what name an answer is kept; `None` when it may change.
fn key(source: &Source, request: &Request, window: Window) -> Option<String> {
    let (is_settled, is_live) = {
        let state = source.state();
        let is_read = state.is_read && state.heat.reading_ns.is_none();
        let is_settled = is_read && (!state.is_live || window.to_ns < state.read_ns);
        (is_settled, state.is_live)
    };
    let is_explicit = request.query.all("to").next().is_some();
    let key = || format!("{}/{}?{}", source.id, request.path, request.query.key());
    (is_settled && (is_explicit || !is_live)).then(key)
}

fn json_bytes(bytes: Arc<[u8]>) -> Response {
    Response::new(200, "application/json", Payload::Shared(bytes))
}

/// Something that happened, as it is answered.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TimelineEvent")]
struct EventView<'a> {
    #[schemars(with = "Time")]
    at: u64,
    kind: Cow<'a, str>,
    text: Cow<'a, str>,
    subject: SubjectView<'a>,
    /// Alike events of one column that were put together.
    #[schemars(range(min = 1))]
    count: u64,
}

impl<'a> EventView<'a> {
    fn of(clock: Clock, event: &'a Happening) -> Self {
        Self {
            at: clock.us(event.at_ns),
            kind: Cow::Borrowed(&event.kind),
            text: Cow::Borrowed(&event.text),
            subject: SubjectView::from(&event.subject),
            count: event.n,
        }
    }

    fn into_owned(self) -> EventView<'static> {
        EventView {
            at: self.at,
            kind: self.kind.into_owned().into(),
            text: self.text.into_owned().into(),
            subject: self.subject.into_owned(),
            count: self.count,
        }
    }
}

/// From, to, and why nothing was seen.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "LaneGap")]
struct GapView(
    #[schemars(with = "Time")] u64,
    #[schemars(with = "Time")] u64,
    String,
);

/// Microseconds since the epoch; since boot where the source's clock is `boot`.
#[derive(JsonSchema)]
#[allow(
    dead_code,
    reason = "only its schema is used: it says what a number means"
)]
struct Time(#[schemars(range(max = MAX_US))] u64);

impl GapView {
    fn of(clock: Clock, span: &BlindSpan, end_ns: u64) -> Self {
        let to_ns = span.to_ns.unwrap_or(end_ns).max(span.from_ns);
        Self(
            clock.us(span.from_ns),
            clock.us(to_ns),
            span.why.to_string(),
        )
    }
}

/// An answer's time is told to the microsecond, and to no more than 2^53.
const MAX_US: u64 = 9_007_199_254_740_991;
