//! The judgement for people: verdict first, then the chain, what to type, and the evidence.

use std::io::{self, Write};

use sexton_model::diagnosis::{Diagnosis, Forecast, Outcome, Passing, State};
use sexton_model::finding::{Evidence, Finding, Stance};
use sexton_model::moment::Moment;

use super::drawing::{draw, subject_words};
use super::remedies::{KINDS, in_one_plan, in_order, of_kind, state_words, to_see_more};
use super::{Judged, words};
use crate::gaps::grouped;
use crate::paint::{Look, Paint};
use crate::text::{WIDTH, duration, paragraph, wrap};

/// Evidence shown for each finding and each stance; JSON and HTML have all of it.
const MAX_EVIDENCE: usize = 6;

/// Chains that are drawn; of the others only the heads are named.
const MAX_CHAINS: usize = 5;

/// Writes the judgement for people, in 80 columns.
pub fn text(out: &mut dyn Write, judged: &Judged, paint: Paint) -> io::Result<()> {
    let page = Page { judged, paint };
    page.verdict(out)?;
    page.chains(out)?;
    page.remedies(out)?;
    page.evidence(out)?;
    page.separations(out)?;
    page.explanations(out)?;
    page.forecasts(out)?;
    page.not_judged(out)?;
    page.step_downs(out)?;
    page.gaps(out)
}

struct Page<'a> {
    judged: &'a Judged,
    paint: Paint,
}

impl Page<'_> {
    fn diagnosis(&self) -> &Diagnosis {
        &self.judged.diagnosis
    }

    fn heading(&self, out: &mut dyn Write, text: &str) -> io::Result<()> {
        writeln!(out, "\n{}", self.paint.on(Look::Heading, text))
    }

    fn verdict(&self, out: &mut dyn Write) -> io::Result<()> {
        let diagnosis = self.diagnosis();
        let state = state_words(diagnosis.state);
        for (i, line) in wrap(&format!("{state}: {}.", diagnosis.headline), WIDTH)
            .into_iter()
            .enumerate()
        {
            match line.strip_prefix(state) {
                Some(rest) if i == 0 => {
                    let painted = self.paint.on(diagnosis.state.into(), state);
                    writeln!(out, "{painted}{}", self.paint.on(Look::Heading, rest))?;
                }
                _ => writeln!(out, "{}", self.paint.on(Look::Heading, &line))?,
            }
        }
        paragraph(out, "", &words::about(self.judged))?;
        if diagnosis.state == State::Blind {
            self.see_more(out)?;
        }
        Ok(())
    }

    fn see_more(&self, out: &mut dyn Write) -> io::Result<()> {
        self.heading(out, "To see enough")?;
        let remedies = to_see_more(self.diagnosis());
        if remedies.is_empty() {
            return paragraph(out, "  ", "sexton doctor says what is missing here and why");
        }
        for remedy in remedies {
            paragraph(out, "  - ", remedy)?;
        }
        Ok(())
    }

    fn chains(&self, out: &mut dyn Write) -> io::Result<()> {
        let chains = &self.diagnosis().chains;
        for (i, chain) in chains.iter().take(MAX_CHAINS).enumerate() {
            let heading = match (i, chains.len()) {
                (0, _) if chain.len() > 1 => "From cause to symptom".to_owned(),
                (0, _) => "What was found".to_owned(),
                (_, n) => format!("Apart from that ({} of {n})", i + 1),
            };
            self.heading(out, &heading)?;
            draw(out, self.diagnosis(), chain, self.paint)?;
        }
        let others = chains
            .iter()
            .skip(MAX_CHAINS)
            .filter_map(|chain| chain.first());
        let others: Vec<&str> = others.map(|id| id.as_str()).collect();
        if !others.is_empty() {
            self.heading(out, &format!("And {} more", others.len()))?;
            paragraph(out, "  ", &others.join(", "))?;
        }
        Ok(())
    }

    fn remedies(&self, out: &mut dyn Write) -> io::Result<()> {
        for (kind, heading) in KINDS {
            let remedies = of_kind(self.diagnosis(), kind);
            if remedies.is_empty() {
                continue;
            }
            self.heading(out, heading)?;
            for remedy in remedies {
                paragraph(out, "  ", &remedy.text)?;
                // Not wrapped: it is there to be copied.
                if let Some(command) = &remedy.command {
                    writeln!(out, "      {}", self.paint.on(Look::Command, command))?;
                }
            }
        }
        if let Some(plan) = in_one_plan(self.diagnosis()) {
            self.heading(out, plan.heading)?;
            paragraph(out, "  ", plan.text)?;
            writeln!(out, "      {}", self.paint.on(Look::Command, plan.command))?;
        }
        Ok(())
    }

    fn evidence(&self, out: &mut dyn Write) -> io::Result<()> {
        let findings = in_order(self.diagnosis());
        if findings.is_empty() {
            return Ok(());
        }
        self.heading(out, "Evidence (+ for, - against, ? missing)")?;
        for finding in findings {
            self.finding(out, finding)?;
        }
        Ok(())
    }

    fn finding(&self, out: &mut dyn Write, finding: &Finding) -> io::Result<()> {
        let head = format!(
            "{} {}: {}, {}{}",
            finding.code,
            subject_words(finding),
            finding.severity.name(),
            finding.confidence.word(),
            self.since(finding.since)
        );
        for line in wrap(&head, WIDTH - 2) {
            writeln!(out, "  {}", self.paint.on(finding.severity.into(), &line))?;
        }
        paragraph(out, "    ", &finding.title)?;
        self.pieces(out, &finding.evidence)?;
        let id = finding.id();
        for link in self.diagnosis().causes_of(&id) {
            paragraph(
                out,
                "    ",
                &format!("caused by {} ({})", link.cause, link.confidence.word()),
            )?;
            self.pieces(out, &link.evidence)?;
        }
        Ok(())
    }

    fn since(&self, since: Option<Moment>) -> String {
        let Some(since) = since else {
            return String::new();
        };
        let at = words::time(&self.judged.clock, since);
        let end = self.diagnosis().window.as_ref().map(|window| *window.end());
        let ago = end.map_or(0, |end| end.since(since).as_secs());
        format!(", since {at} ({} before the end)", duration(ago))
    }

    fn pieces(&self, out: &mut dyn Write, evidence: &[Evidence]) -> io::Result<()> {
        for (stance, mark) in [
            (Stance::For, "+"),
            (Stance::Against, "-"),
            (Stance::Missing, "?"),
        ] {
            let pieces: Vec<&Evidence> = evidence
                .iter()
                .filter(|evidence| evidence.stance == stance)
                .collect();
            for piece in pieces.iter().take(MAX_EVIDENCE) {
                self.piece(out, piece, mark)?;
            }
            if let Some(more) = pieces.len().checked_sub(MAX_EVIDENCE).filter(|n| *n > 0) {
                writeln!(out, "    {mark} and {more} more (--format html shows all)")?;
            }
        }
        Ok(())
    }

    fn piece(&self, out: &mut dyn Write, piece: &Evidence, mark: &str) -> io::Result<()> {
        let at = piece.at.map_or_else(String::new, |at| {
            format!("{}: ", words::time(&self.judged.clock, at))
        });
        let lines = wrap(&format!("{at}{} [{}]", piece.text, piece.source), WIDTH - 6);
        for (i, line) in lines.iter().enumerate() {
            match i {
                0 => writeln!(
                    out,
                    "    {} {line}",
                    self.paint.on(piece.stance.into(), mark)
                )?,
                _ => writeln!(out, "      {line}")?,
            }
        }
        Ok(())
    }

    fn separations(&self, out: &mut dyn Write) -> io::Result<()> {
        let separations = &self.diagnosis().separations;
        if separations.is_empty() {
            return Ok(());
        }
        self.heading(out, "Not joined, although it looks like it")?;
        for apart in separations {
            paragraph(out, "  ", &format!("{} and {}", apart.cause, apart.effect))?;
            self.pieces(out, &apart.evidence)?;
        }
        Ok(())
    }

    fn explanations(&self, out: &mut dyn Write) -> io::Result<()> {
        for (outcome, heading) in [
            (Outcome::PlaysAPart, "Plays a part, too"),
            (Outcome::RuledOut, "Ruled out"),
            (Outcome::NotSeen, "Could not be ruled out"),
        ] {
            let mut explanations = self
                .diagnosis()
                .explanations
                .iter()
                .filter(|explanation| explanation.outcome == outcome)
                .peekable();
            if explanations.peek().is_none() {
                continue;
            }
            self.heading(out, heading)?;
            for explanation in explanations {
                let because: Vec<&str> = explanation
                    .evidence
                    .iter()
                    .map(|evidence| evidence.text.as_str())
                    .collect();
                let text = format!("{}: {}", explanation.name, because.join("; "));
                paragraph(out, "  - ", text.trim_end_matches([':', ' ']))?;
            }
        }
        Ok(())
    }

    fn forecasts(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.diagnosis().forecasts.is_empty() {
            return Ok(());
        }
        self.heading(out, "If nobody does anything")?;
        for forecast in &self.diagnosis().forecasts {
            paragraph(out, "  - ", &forecast_words(forecast))?;
            for passing in &forecast.passes {
                paragraph(out, "      ", &passing_words(passing))?;
            }
        }
        Ok(())
    }

    fn not_judged(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.diagnosis().not_judged.is_empty() {
            return Ok(());
        }
        self.heading(out, "Not judged")?;
        // One reason may keep several rules from judging.
        for alike in grouped(&self.diagnosis().not_judged, |rule| &rule.because) {
            let codes: Vec<&str> = alike.iter().map(|rule| rule.code).collect();
            let because = alike.first().map_or("", |rule| &rule.because);
            paragraph(out, &format!("  {:<8} ", codes.join(", ")), because)?;
        }
        Ok(())
    }

    /// By what lesser means things were seen, in one line.
    fn step_downs(&self, out: &mut dyn Write) -> io::Result<()> {
        let steps = &self.diagnosis().step_downs;
        if steps.is_empty() {
            return Ok(());
        }
        let steps: Vec<String> = steps
            .iter()
            .map(|step| format!("{} by {}", step.what, step.by))
            .collect();
        writeln!(out)?;
        paragraph(out, "Seen by other means: ", &steps.join(", "))
    }

    fn gaps(&self, out: &mut dyn Write) -> io::Result<()> {
        crate::gaps::write(out, &self.diagnosis().gaps)
    }
}

pub(super) fn forecast_words(forecast: &Forecast) -> String {
    format!(
        "{}: {} a day, give or take {}, from {} points",
        forecast.what,
        words::amount(forecast.per_day),
        words::amount(forecast.per_day_error),
        forecast.n_points
    )
}

pub(super) fn passing_words(passing: &Passing) -> String {
    let range = passing.range_days.map_or_else(String::new, |(from, to)| {
        format!(" ({} to {})", words::days(from), words::days(to))
    });
    match passing.in_days {
        Some(days) => format!("{}: in {}{range}", passing.limit, words::days(days)),
        None => format!("{}: never at this rate", passing.limit),
    }
}
