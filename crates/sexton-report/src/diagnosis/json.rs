//! The judgement in stable JSON, `sexton.diagnosis/1`. Keys may be added, none renamed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;
use sexton_model::diagnosis::{Diagnosis, Explanation, Forecast, Link, Passing};
use sexton_model::finding::{Evidence, Finding, Remedy};
use sexton_model::moment::Moment;
use sexton_model::subject::Subject;
use sexton_model::wall::WallClock;

use super::Judged;
use crate::gaps::GapView;

/// Writes the judgement for programs.
pub fn json(out: &mut dyn Write, judged: &Judged) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &DiagnosisView::from(judged))?;
    writeln!(out)
}

impl<'a> From<&'a Judged> for DiagnosisView<'a> {
    fn from(judged: &'a Judged) -> Self {
        let Judged {
            node,
            clock,
            diagnosis,
        } = judged;
        Self {
            schema: "sexton.diagnosis/1",
            node: NodeView {
                name: &node.name,
                kernel: &node.kernel,
                boot_id: &node.boot_id,
                cpus: node.cpus,
                memory_bytes: node.memory_bytes,
                description: &node.description,
            },
            window: WindowView::of(clock, diagnosis),
            verdict: VerdictView::of(diagnosis),
            findings: all(&diagnosis.findings, |finding| {
                FindingView::of(clock, diagnosis, finding)
            }),
            links: all(&diagnosis.links, |link| LinkView {
                confidence: Some(link.confidence.ratio()),
                ..LinkView::of(clock, (&link.cause, &link.effect), &link.evidence)
            }),
            separations: all(&diagnosis.separations, |apart| {
                LinkView::of(clock, (&apart.cause, &apart.effect), &apart.evidence)
            }),
            explanations: all(&diagnosis.explanations, |explanation| {
                ExplanationView::of(clock, explanation)
            }),
            forecast: all(&diagnosis.forecasts, ForecastView::from),
            not_judged: all(&diagnosis.not_judged, |rule| NotJudgedView {
                code: rule.code,
                because: &rule.because,
            }),
            seen_by: all(&diagnosis.step_downs, |step| StepDownView {
                what: &step.what,
                by: &step.by,
            }),
            gaps: all(&diagnosis.gaps, GapView::from),
        }
    }
}

fn all<'a, T, V>(items: &'a [T], view: impl Fn(&'a T) -> V) -> Vec<V> {
    items.iter().map(view).collect()
}

/// The judgement as it is written for programs.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Diagnosis")]
pub struct DiagnosisView<'a> {
    #[schemars(extend("const" = "sexton.diagnosis/1"))]
    schema: &'static str,
    node: NodeView<'a>,
    window: WindowView,
    verdict: VerdictView<'a>,
    findings: Vec<FindingView<'a>>,
    links: Vec<LinkView<'a>>,
    separations: Vec<LinkView<'a>>,
    explanations: Vec<ExplanationView<'a>>,
    forecast: Vec<ForecastView<'a>>,
    not_judged: Vec<NotJudgedView<'a>>,
    seen_by: Vec<StepDownView<'a>>,
    gaps: Vec<GapView<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct StepDownView<'a> {
    what: &'a str,
    by: &'a str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DiagnosedNode")]
struct NodeView<'a> {
    name: &'a str,
    kernel: &'a str,
    boot_id: &'a str,
    cpus: Option<f64>,
    memory_bytes: Option<f64>,
    description: &'a BTreeMap<String, String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DiagnosedWindow")]
struct WindowView {
    from: Option<String>,
    to: Option<String>,
    seconds: Option<f64>,
}

impl WindowView {
    fn of(clock: &WallClock, diagnosis: &Diagnosis) -> Self {
        let window = diagnosis.window.as_ref();
        let shown = |moment: Option<&Moment>| clock.rfc3339(*moment?);
        Self {
            from: shown(window.map(|window| window.start())),
            to: shown(window.map(|window| window.end())),
            seconds: window.map(|window| window.end().since(*window.start()).as_secs_f64()),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Verdict")]
struct VerdictView<'a> {
    /// `cause-found`, `symptoms-only`, `healthy` or `blind`.
    state: &'static str,
    headline: &'a str,
    /// The id of the finding that all others of the first chain come from.
    root: Option<&'a str>,
    confidence: Option<f64>,
    chain: Vec<&'a str>,
    /// Ids of findings, from cause to symptom, the gravest chain first.
    chains: Vec<Vec<&'a str>>,
}

impl<'a> VerdictView<'a> {
    fn of(diagnosis: &'a Diagnosis) -> Self {
        let chains = all(&diagnosis.chains, |chain| all(chain, |id| id.as_str()));
        Self {
            state: diagnosis.state.name(),
            headline: &diagnosis.headline,
            root: diagnosis.root().map(|id| id.as_str()),
            confidence: diagnosis.confidence.map(|confidence| confidence.ratio()),
            chain: chains.first().cloned().unwrap_or_default(),
            chains,
        }
    }
}

/// Whom or what something is about.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Subject")]
pub struct SubjectView<'a> {
    kind: &'static str,
    name: Cow<'a, str>,
}

impl<'a> From<&'a Subject> for SubjectView<'a> {
    fn from(subject: &'a Subject) -> Self {
        Self {
            kind: subject.kind.name(),
            name: Cow::Borrowed(&subject.name),
        }
    }
}

impl SubjectView<'_> {
    /// The same, of its own.
    pub fn into_owned(self) -> SubjectView<'static> {
        SubjectView {
            kind: self.kind,
            name: self.name.into_owned().into(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
struct FindingView<'a> {
    id: String,
    code: &'static str,
    subject: SubjectView<'a>,
    severity: &'static str,
    confidence: f64,
    title: &'a str,
    figure: &'a str,
    since: Option<String>,
    /// Ids of findings, the surest cause first.
    caused_by: Vec<&'a str>,
    evidence: Vec<EvidenceView<'a>>,
    remedies: Vec<RemedyView<'a>>,
}

impl<'a> FindingView<'a> {
    fn of(clock: &WallClock, diagnosis: &'a Diagnosis, finding: &'a Finding) -> Self {
        let id = finding.id();
        let effects = diagnosis.links.iter().filter(|link| link.effect == id);
        let mut causes: Vec<&Link> = effects.collect();
        causes.sort_by(|a, b| (b.confidence, &a.cause).cmp(&(a.confidence, &b.cause)));
        Self {
            id: id.to_string(),
            code: finding.code,
            subject: SubjectView::from(&finding.subject),
            severity: finding.severity.name(),
            confidence: finding.confidence.ratio(),
            title: &finding.title,
            figure: &finding.figure,
            since: finding.since.and_then(|since| clock.rfc3339(since)),
            caused_by: causes.into_iter().map(|link| link.cause.as_str()).collect(),
            evidence: evidence(clock, &finding.evidence),
            remedies: all(&finding.remedies, RemedyView::from),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Evidence")]
struct EvidenceView<'a> {
    /// `for`, `against` or `missing`.
    stance: &'static str,
    text: &'a str,
    source: &'a str,
    value: Option<f64>,
    /// When, as in RFC 3339.
    at: Option<String>,
}

fn evidence<'a>(clock: &WallClock, evidence: &'a [Evidence]) -> Vec<EvidenceView<'a>> {
    all(evidence, |evidence| EvidenceView {
        stance: evidence.stance.name(),
        text: &evidence.text,
        source: &evidence.source,
        value: evidence.value,
        at: evidence.at.and_then(|at| clock.rfc3339(at)),
    })
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Remedy")]
struct RemedyView<'a> {
    kind: &'static str,
    text: &'a str,
    command: Option<&'a str>,
}

impl<'a> From<&'a Remedy> for RemedyView<'a> {
    fn from(remedy: &'a Remedy) -> Self {
        Self {
            kind: remedy.kind.name(),
            text: &remedy.text,
            command: remedy.command.as_deref(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Link")]
struct LinkView<'a> {
    cause: &'a str,
    effect: &'a str,
    /// From 0 to 1; left out where cause and effect were not linked.
    #[schemars(with = "f64")]
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    evidence: Vec<EvidenceView<'a>>,
}

impl<'a> LinkView<'a> {
    fn of(
        clock: &WallClock,
        (cause, effect): (
            &'a sexton_model::finding::FindingId,
            &'a sexton_model::finding::FindingId,
        ),
        shown: &'a [Evidence],
    ) -> Self {
        Self {
            cause: cause.as_str(),
            effect: effect.as_str(),
            confidence: None,
            evidence: evidence(clock, shown),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Explanation")]
struct ExplanationView<'a> {
    name: &'static str,
    outcome: &'static str,
    evidence: Vec<EvidenceView<'a>>,
}

impl<'a> ExplanationView<'a> {
    fn of(clock: &WallClock, explanation: &'a Explanation) -> Self {
        Self {
            name: explanation.name,
            outcome: explanation.outcome.name(),
            evidence: evidence(clock, &explanation.evidence),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Forecast")]
struct ForecastView<'a> {
    what: &'a str,
    per_day: f64,
    per_day_error: f64,
    n_points: u64,
    passes: Vec<PassingView<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Passing")]
struct PassingView<'a> {
    limit: &'a str,
    in_days: Option<f64>,
    range_days: Option<(f64, f64)>,
}

impl<'a> From<&'a Forecast> for ForecastView<'a> {
    fn from(forecast: &'a Forecast) -> Self {
        Self {
            what: &forecast.what,
            per_day: forecast.per_day,
            per_day_error: forecast.per_day_error,
            n_points: forecast.n_points,
            passes: all(&forecast.passes, PassingView::from),
        }
    }
}

impl<'a> From<&'a Passing> for PassingView<'a> {
    fn from(passing: &'a Passing) -> Self {
        Self {
            limit: &passing.limit,
            in_days: passing.in_days,
            range_days: passing.range_days,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "NotJudged")]
struct NotJudgedView<'a> {
    code: &'static str,
    because: &'a str,
}
