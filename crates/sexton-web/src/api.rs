//! What is asked, one file for each question.

mod diagnosis;
mod export;
mod flame;
mod heatmap;
mod lanes;
mod params;
mod samples;
mod sources;
mod tiles;
mod upload;
mod zombies;

use std::sync::Arc;

use serde::Serialize;

use crate::app::App;
use crate::clock::Clock;
use crate::http::{Payload, Problem, Request, Response};
use crate::index::{BlindSpan, Happening};
use crate::source::Source;
use params::{Params, Window};

pub(crate) use sources::{source_view, sources};
pub(crate) use upload::open;

/// What can be asked of a source.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Question {
    Diagnosis,
    Lanes,
    Tiles,
    HeatMap,
    Flame,
    Zombies,
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
            "export.html" => Self::Export,
            _ => return None,
        })
    }

    /// Works the answer out, or finds it.
    pub(crate) fn answer(
        self,
        app: &App,
        source: &Source,
        request: &Request,
    ) -> Result<Response, Problem> {
        let params = Params::new(&request.query);
        match self {
            Self::Diagnosis => Ok(json_bytes(diagnosis::answer(app, source)?)),
            Self::Lanes => Ok(Response::json(&lanes::view(&source.state()))),
            Self::Zombies => Ok(Response::json(&zombies::view(&source.state()))),
            Self::Tiles => {
                let asked = tiles::Asked::read(&params, source)?;
                let _place = app.workshop.enter()?;
                Ok(json_bytes(asked.answer(&source.state())?.into()))
            }
            Self::HeatMap => {
                let asked = heatmap::Asked::read(&params, source)?;
                kept(app, source, request, asked.window, || asked.answer(source))
            }
            Self::Flame => {
                let asked = flame::Asked::read(&params, source)?;
                kept(app, source, request, asked.windows(), || {
                    asked.answer(source)
                })
            }
            Self::Export => {
                let window = params.window(source)?;
                let judged = diagnosis::answer(app, source)?;
                let _place = app.workshop.enter()?;
                export::answer(app, source, window, &judged)
            }
        }
    }
}

/// Answers from what is kept, or works it out, and keeps what will not change.
fn kept<T: Serialize>(
    app: &App,
    source: &Source,
    request: &Request,
    window: Window,
    answer: impl FnOnce() -> Result<T, Problem>,
) -> Result<Response, Problem> {
    let is_settled = {
        let state = source.state();
        let is_read = state.is_read && state.heat.reading_ns.is_none();
        is_read && (!state.is_live || window.to_ns < state.read_ns)
    };
    let explicit = request.query.all("to").next().is_some();
    let keeps = is_settled && (explicit || !source.state().is_live);
    let key = format!("{}/{}?{}", source.id, request.path, request.query.key());
    if keeps && let Some(bytes) = app.cache.get(&key) {
        return Ok(json_bytes(bytes));
    }
    let _place = app.workshop.enter()?;
    // Somebody else may have asked for the same and been before us.
    if keeps && let Some(bytes) = app.cache.get(&key) {
        return Ok(json_bytes(bytes));
    }
    let bytes: Arc<[u8]> = serde_json::to_vec(&answer()?)
        .map_err(|error| Problem::new(500, format!("cannot write the answer: {error}")))?
        .into();
    if keeps {
        app.cache.put(key, &bytes);
    }
    Ok(json_bytes(bytes))
}

fn json_bytes(bytes: Arc<[u8]>) -> Response {
    Response::new(200, "application/json", Payload::Shared(bytes))
}

/// Something that happened, as it is answered.
#[derive(Serialize)]
struct EventView<'a> {
    at: u64,
    kind: &'a str,
    text: &'a str,
    subject: SubjectView<'a>,
    count: u64,
}

#[derive(Serialize)]
struct SubjectView<'a> {
    kind: &'static str,
    name: &'a str,
}

impl<'a> From<&'a sexton_model::subject::Subject> for SubjectView<'a> {
    fn from(subject: &'a sexton_model::subject::Subject) -> Self {
        Self {
            kind: subject.kind.name(),
            name: &subject.name,
        }
    }
}

impl<'a> EventView<'a> {
    fn of(clock: Clock, event: &'a Happening) -> Self {
        Self {
            at: clock.us(event.at_ns),
            kind: &event.kind,
            text: &event.text,
            subject: SubjectView::from(&event.subject),
            count: event.n,
        }
    }
}

/// From, to, and why nothing was seen.
#[derive(Debug, Clone, Serialize)]
struct GapView(u64, u64, String);

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
