//! The verdict, the chain and its evidence, and when each of them was.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use sexton_model::diagnosis::Link;
use sexton_model::finding::Finding;
use sexton_model::moment::Moment;
use sexton_report::diagnosis::{self as report, Judged};

use super::Time;
use crate::app::App;
use crate::clock::Clock;
use crate::http::{Problem, blocking};
use crate::source::Source;

/// A recording that grows is judged again after this.
const FRESH: Duration = Duration::from_secs(15);

/// From and to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(super) struct Range(
    #[schemars(with = "Time")] pub(super) u64,
    #[schemars(with = "Time")] pub(super) u64,
);

/// When things of a diagnosis were seen.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DiagnosisTimes")]
pub(super) struct TimesView {
    window: Option<Range>,
    /// By finding id: when each was seen, in the order of time; a moment has from = to.
    pub(super) findings: BTreeMap<String, Vec<Range>>,
    /// In the order of `links`: where the times of cause and effect meet, to be looked at; null when
    /// unknown.
    links: Vec<Option<Range>>,
    /// By finding id: for each of its evidence, in order, when it was seen, or null.
    #[schemars(with = "BTreeMap<String, Vec<Option<Time>>>")]
    evidence: BTreeMap<String, Vec<Option<u64>>>,
}

/// `sexton.diagnosis/1`, as `sexton diagnose --from BUNDLE --format json` writes it, and `times`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Diagnosis")]
pub(super) struct DiagnosisView<'a> {
    #[serde(flatten)]
    judged: report::DiagnosisView<'a>,
    times: &'a TimesView,
}

/// A diagnosis that was made.
#[derive(Debug)]
pub(super) struct Diagnosed {
    judged: Judged,
    pub(super) times: TimesView,
    /// The same in JSON.
    pub(super) json: Arc<[u8]>,
}

/// A diagnosis to be given again.
#[derive(Debug)]
pub(crate) struct Kept {
    diagnosed: Arc<Diagnosed>,
    /// When it was made, of a recording that still grew.
    grew: Option<Instant>,
}

impl Kept {
    /// What was judged while it grew is judged once more when it has ended.
    fn is_fresh(&self, is_live: bool) -> bool {
        match self.grew {
            Some(made) => made.elapsed() < FRESH,
            None => !is_live,
        }
    }
}

impl Diagnosed {
    pub(super) fn view(&self) -> DiagnosisView<'_> {
        view(&self.judged, &self.times)
    }
}

fn view<'a>(judged: &'a Judged, times: &'a TimesView) -> DiagnosisView<'a> {
    DiagnosisView {
        judged: judged.into(),
        times,
    }
}

/// The diagnosis. Who asks while another has it worked out waits for that.
pub(super) async fn answer(
    app: &Arc<App>,
    source: &Arc<Source>,
) -> Result<Arc<Diagnosed>, Problem> {
    let mut kept = source.judged.lock().await;
    let is_live = {
        let source = Arc::clone(source);
        blocking(move || Ok(source.state().is_live)).await?
    };
    if let Some(kept) = &*kept
        && kept.is_fresh(is_live)
    {
        return Ok(Arc::clone(&kept.diagnosed));
    }
    let began = Instant::now();
    let work = {
        let (app, source) = (Arc::clone(app), Arc::clone(source));
        move || judge(&app, &source)
    };
    let diagnosed = Arc::new(app.workshop.work(work).await?);
    *kept = Some(Kept {
        diagnosed: Arc::clone(&diagnosed),
        grew: is_live.then_some(began),
    });
    Ok(diagnosed)
}

fn judge(app: &App, source: &Source) -> Result<Diagnosed, Problem> {
    let failed = |why: String| Problem::new(500, format!("cannot judge it: {why}"));
    let judged = (app.options.judge)(&source.path).map_err(failed)?;
    let clock = source.state().clock;
    // Before it was read, the clock of the page is not known; that of the judgement is.
    let times = times(&judged, clock.noted(&noted(&judged)));
    let json = serde_json::to_vec(&view(&judged, &times));
    let json = json.map_err(|error| failed(error.to_string()))?.into();
    Ok(Diagnosed {
        judged,
        times,
        json,
    })
}

/// What the judgement knows of the clock, at its window's end.
fn noted(judged: &Judged) -> Vec<(Moment, u64)> {
    let window = judged.diagnosis.window.as_ref();
    let end = window.map(|window| *window.end());
    let noted = end.and_then(|end| {
        let wall_ns = u64::try_from(judged.clock.ns(end)?).ok()?;
        Some((end, wall_ns))
    });
    noted.into_iter().collect()
}

fn times(judged: &Judged, clock: Clock) -> TimesView {
    let diagnosis = &judged.diagnosis;
    let range = |from: Moment, to: Moment| Range(clock.us(from.as_ns()), clock.us(to.as_ns()));
    let seen = |finding: &Finding| -> Vec<Range> {
        let episodes = finding.episodes.iter();
        let mut ranges: Vec<Range> = episodes
            .map(|episode| range(episode.from, episode.to))
            .collect();
        if ranges.is_empty() {
            let moments = finding.evidence.iter().filter_map(|evidence| evidence.at);
            let moments = moments.chain(finding.since);
            ranges.extend(moments.map(|at| range(at, at)));
            ranges.sort_unstable();
            ranges.dedup();
        }
        ranges
    };
    let ranges: BTreeMap<String, Vec<Range>> = diagnosis
        .findings
        .iter()
        .map(|finding| (finding.id().to_string(), seen(finding)))
        .collect();
    let evidence = diagnosis.findings.iter().map(|finding| {
        let moments = finding.evidence.iter();
        let moments = moments.map(|evidence| evidence.at.map(|at| clock.us(at.as_ns())));
        (finding.id().to_string(), moments.collect())
    });
    TimesView {
        window: diagnosis
            .window
            .as_ref()
            .map(|window| range(*window.start(), *window.end())),
        links: diagnosis
            .links
            .iter()
            .map(|link| meeting(link, &ranges))
            .collect(),
        evidence: evidence.collect(),
        findings: ranges,
    }
}

/// Where cause and effect meet: the effect's first time with the cause's nearest one that
/// began before it ended.
fn meeting(link: &Link, ranges: &BTreeMap<String, Vec<Range>>) -> Option<Range> {
    let effects = ranges.get(link.effect.as_str())?;
    let causes = ranges.get(link.cause.as_str())?;
    let pairs = effects.iter().flat_map(|effect| {
        let before = causes.iter().filter(|cause| cause.0 <= effect.1);
        before.map(move |cause| (cause, effect))
    });
    let apart = |(cause, effect): &(&Range, &Range)| effect.0.saturating_sub(cause.1);
    let nearest = pairs.min_by_key(apart);
    nearest
        .map(|(cause, effect)| Range(cause.0.min(effect.0), effect.1.max(cause.1)))
        .or_else(|| effects.first().copied())
}
