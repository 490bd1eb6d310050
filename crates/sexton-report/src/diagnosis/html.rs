//! The judgement as one page that needs nothing else: no script, no network. All of the
//! evidence is there; what comes from outside is escaped.

use std::io::{self, Write};

use sexton_model::diagnosis::{Diagnosis, Link};
use sexton_model::finding::{Evidence, Finding, FindingId, Stance};
use sexton_model::text::xml;

use super::drawing::{link, subject_words};
use super::remedies::{KINDS, in_one_plan, in_order, of_kind, state_words, to_see_more};
use super::text::{forecast_words, passing_words};
use super::{Judged, words};

const STYLE: &str = include_str!("page.css");

/// Writes the judgement as a page.
pub fn html(out: &mut dyn Write, judged: &Judged) -> io::Result<()> {
    let diagnosis = &judged.diagnosis;
    let state = diagnosis.state;
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{}: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>",
        xml(&judged.node.name),
        state.name(),
    )?;
    writeln!(
        out,
        "<h1><span class=\"state {}\">{}</span>: {}</h1>\n<p class=\"about\">{}</p>",
        state.name(),
        state_words(state),
        xml(&diagnosis.headline),
        xml(&words::about(judged))
    )?;
    chains(out, diagnosis)?;
    remedies(out, diagnosis)?;
    evidence(out, judged)?;
    rest(out, judged)?;
    writeln!(out, "</main>\n</body>\n</html>")
}

fn chains(out: &mut dyn Write, diagnosis: &Diagnosis) -> io::Result<()> {
    for (i, chain) in diagnosis.chains.iter().enumerate() {
        match i {
            0 => writeln!(out, "<h2>Causal chain</h2>")?,
            i => writeln!(
                out,
                "<h2>Causal chain {} of {}</h2>",
                i + 1,
                diagnosis.chains.len()
            )?,
        }
        writeln!(out, "<ol class=\"chain\">")?;
        for (i, id) in chain.iter().enumerate() {
            let cause = i.checked_sub(1).and_then(|before| chain.get(before));
            if let Some(link) = cause.and_then(|cause| link(diagnosis, cause, id)) {
                write_link(out, link)?;
            }
            if let Some(finding) = diagnosis.finding(id) {
                write_step(out, finding)?;
            }
        }
        writeln!(out, "</ol>")?;
    }
    Ok(())
}

fn write_link(out: &mut dyn Write, link: &Link) -> io::Result<()> {
    let speaks = link
        .evidence
        .iter()
        .find(|evidence| evidence.stance == Stance::For);
    writeln!(
        out,
        "<li class=\"link\">{} ({})</li>",
        xml(speaks.map_or("", |evidence| &evidence.text)),
        link.confidence.word()
    )
}

fn write_step(out: &mut dyn Write, finding: &Finding) -> io::Result<()> {
    writeln!(
        out,
        "<li><a href=\"#{}\" class=\"{}\">{}</a> {}<span class=\"figure\">{}</span></li>",
        anchor(&finding.id()),
        finding.severity.name(),
        finding.code,
        xml(&subject_words(finding)),
        xml(&finding.figure)
    )
}

/// A name that needs no escaping and that no two findings share.
fn anchor(id: &FindingId) -> String {
    let mut name = String::from("f-");
    for byte in id.as_str().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => name.push(char::from(byte)),
            other => name.push_str(&format!("_{other:02x}")),
        }
    }
    name
}

fn remedies(out: &mut dyn Write, diagnosis: &Diagnosis) -> io::Result<()> {
    for (kind, heading) in KINDS {
        let remedies = of_kind(diagnosis, kind);
        if remedies.is_empty() {
            continue;
        }
        writeln!(out, "<h2>{heading}</h2>")?;
        for remedy in remedies {
            writeln!(out, "<p>{}</p>", xml(&remedy.text))?;
            if let Some(command) = &remedy.command {
                writeln!(out, "<pre>{}</pre>", xml(command))?;
            }
        }
    }
    if let Some(plan) = in_one_plan(diagnosis) {
        writeln!(out, "<h2>{}</h2>\n<p>{}</p>", plan.heading, plan.text)?;
        writeln!(out, "<pre>{}</pre>", plan.command)?;
    }
    Ok(())
}

fn evidence(out: &mut dyn Write, judged: &Judged) -> io::Result<()> {
    let diagnosis = &judged.diagnosis;
    let findings = in_order(diagnosis);
    if !findings.is_empty() {
        writeln!(out, "<h2>Evidence</h2>")?;
    }
    for finding in findings {
        let id = finding.id();
        let since = finding.since.map_or_else(String::new, |since| {
            format!(", since {}", words::time(&judged.clock, since))
        });
        writeln!(
            out,
            "<details open id=\"{}\"><summary><span class=\"{}\">{}</span> {}: {}, {}{}</summary>\n<p>{}</p>",
            anchor(&id),
            finding.severity.name(),
            finding.code,
            xml(&subject_words(finding)),
            finding.severity.name(),
            finding.confidence.word(),
            xml(&since),
            xml(&finding.title)
        )?;
        pieces(out, judged, &finding.evidence)?;
        for link in diagnosis.causes_of(&id) {
            writeln!(
                out,
                "<p>Caused by <a href=\"#{}\">{}</a> ({}):</p>",
                anchor(&link.cause),
                xml(link.cause.as_str()),
                link.confidence.word()
            )?;
            pieces(out, judged, &link.evidence)?;
        }
        writeln!(out, "</details>")?;
    }
    Ok(())
}

fn pieces(out: &mut dyn Write, judged: &Judged, evidence: &[Evidence]) -> io::Result<()> {
    writeln!(out, "<ul class=\"evidence\">")?;
    for piece in evidence {
        let mark = match piece.stance {
            Stance::For => "+",
            Stance::Against => "\u{2212}",
            Stance::Missing => "?",
        };
        let at = piece.at.map_or_else(String::new, |at| {
            format!(
                "<span class=\"at\">{}</span> ",
                xml(&words::time(&judged.clock, at))
            )
        });
        writeln!(
            out,
            "<li><b class=\"{0}\" title=\"{0}\">{mark}</b> {at}{1} <span class=\"source\">[{2}]</span></li>",
            piece.stance.name(),
            xml(&piece.text),
            xml(&piece.source)
        )?;
    }
    writeln!(out, "</ul>")
}

fn rest(out: &mut dyn Write, judged: &Judged) -> io::Result<()> {
    let diagnosis = &judged.diagnosis;
    if !diagnosis.separations.is_empty() {
        writeln!(out, "<h2>Considered, but not linked</h2>")?;
    }
    for apart in &diagnosis.separations {
        writeln!(
            out,
            "<p>{} and {}</p>",
            xml(apart.cause.as_str()),
            xml(apart.effect.as_str())
        )?;
        pieces(out, judged, &apart.evidence)?;
    }
    if !diagnosis.explanations.is_empty() {
        writeln!(out, "<h2>Other explanations</h2>")?;
    }
    for explanation in &diagnosis.explanations {
        writeln!(
            out,
            "<p>{}: {}</p>",
            xml(explanation.name),
            explanation.outcome.name()
        )?;
        pieces(out, judged, &explanation.evidence)?;
    }
    let forecasts = diagnosis.forecasts.iter().flat_map(|forecast| {
        let passes = forecast.passes.iter().map(passing_words);
        std::iter::once(forecast_words(forecast)).chain(passes)
    });
    list(out, "Forecast", forecasts)?;
    let not_judged = diagnosis.not_judged.iter();
    let not_judged = not_judged.map(|rule| format!("{}: {}", rule.code, rule.because));
    list(out, "Not assessed", not_judged)?;
    let gaps = diagnosis.gaps.iter();
    let gaps = gaps.map(|gap| format!("{}: {} ({})", gap.sensor, gap.text, gap.why));
    list(out, "Blind spots", gaps)?;
    let remedies = to_see_more(diagnosis).into_iter().map(str::to_owned);
    list(out, "To see more", remedies)
}

fn list(out: &mut dyn Write, heading: &str, items: impl Iterator<Item = String>) -> io::Result<()> {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return Ok(());
    }
    writeln!(out, "<h2>{heading}</h2>\n<ul>")?;
    for item in items {
        writeln!(out, "<li>{}</li>", xml(&item))?;
    }
    writeln!(out, "</ul>")
}
