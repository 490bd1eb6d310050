//! The judgement for people: verdict first, then the chain, what to type, and the evidence.

use std::io::{self, Write};

use sexton_model::diagnosis::{Diagnosis, Forecast, Outcome, Passing, State};
use sexton_model::finding::{Evidence, Finding, Stance};
use sexton_model::moment::Moment;

use super::drawing::{draw, subject_words};
use super::remedies::{KINDS, in_one_plan, in_order, of_kind, state_line, to_see_more};
use super::{Judged, words};
use crate::gaps::grouped;
use crate::paint::{Canvas, Look};
use crate::text::{duration, paragraph_in, wrap};

/// Evidence shown for each finding and each stance; JSON and HTML have all of it.
const MAX_EVIDENCE: usize = 6;

/// Chains that are drawn; of the others only the heads are named.
const MAX_CHAINS: usize = 5;

/// Writes the whole verdict for people.
pub fn text(out: &mut dyn Write, judged: &Judged, canvas: Canvas) -> io::Result<()> {
    let page = Page { judged, canvas };
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
    canvas: Canvas,
}

impl Page<'_> {
    fn diagnosis(&self) -> &Diagnosis {
        &self.judged.diagnosis
    }

    fn heading(&self, out: &mut dyn Write, text: &str) -> io::Result<()> {
        writeln!(out, "\n{}", self.canvas.paint.on(Look::Heading, text))
    }

    fn verdict(&self, out: &mut dyn Write) -> io::Result<()> {
        let diagnosis = self.diagnosis();
        writeln!(out, "{}", state_line(diagnosis, self.canvas.paint))?;
        for line in wrap(&diagnosis.headline, self.canvas.width) {
            writeln!(out, "{}", self.canvas.paint.on(Look::Heading, &line))?;
        }
        paragraph_in(out, self.canvas.width, "", &words::about(self.judged))?;
        if diagnosis.state == State::Blind {
            self.see_more(out)?;
        }
        Ok(())
    }

    fn see_more(&self, out: &mut dyn Write) -> io::Result<()> {
        self.heading(out, "To see enough")?;
        let remedies = to_see_more(self.diagnosis());
        if remedies.is_empty() {
            return paragraph_in(
                out,
                self.canvas.width,
                "  ",
                "sexton doctor lists what is missing on this node, and why",
            );
        }
        for remedy in remedies {
            paragraph_in(out, self.canvas.width, "  - ", remedy)?;
        }
        Ok(())
    }

    fn chains(&self, out: &mut dyn Write) -> io::Result<()> {
        let chains = &self.diagnosis().chains;
        for (i, chain) in chains.iter().take(MAX_CHAINS).enumerate() {
            let heading = match (i, chains.len()) {
                (0, _) => words::chain_heading(self.diagnosis(), chain).to_owned(),
                (_, n) => format!("Causal chain {} of {n}", i + 1),
            };
            self.heading(out, &heading)?;
            draw(out, self.diagnosis(), chain, self.canvas)?;
        }
        let others = chains
            .iter()
            .skip(MAX_CHAINS)
            .filter_map(|chain| chain.first());
        let others: Vec<&str> = others.map(|id| id.as_str()).collect();
        if !others.is_empty() {
            self.heading(out, &format!("{} more chains", others.len()))?;
            paragraph_in(out, self.canvas.width, "  ", &others.join(", "))?;
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
                paragraph_in(out, self.canvas.width, "  ", &remedy.text)?;
                // Not wrapped: it is there to be copied.
                if let Some(command) = &remedy.command {
                    writeln!(
                        out,
                        "      {}",
                        self.canvas.paint.on(Look::Command, command)
                    )?;
                }
            }
        }
        if let Some(plan) = in_one_plan(self.diagnosis()) {
            self.heading(out, plan.heading)?;
            paragraph_in(out, self.canvas.width, "  ", plan.text)?;
            writeln!(
                out,
                "      {}",
                self.canvas.paint.on(Look::Command, plan.command)
            )?;
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
        for line in wrap(&head, self.canvas.width - 2) {
            writeln!(
                out,
                "  {}",
                self.canvas.paint.on(finding.severity.into(), &line)
            )?;
        }
        paragraph_in(out, self.canvas.width, "    ", &finding.title)?;
        self.pieces(out, &finding.evidence)?;
        let id = finding.id();
        for link in self.diagnosis().causes_of(&id) {
            paragraph_in(
                out,
                self.canvas.width,
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
        let lines = wrap(
            &format!("{at}{} [{}]", piece.text, piece.source),
            self.canvas.width - 6,
        );
        for (i, line) in lines.iter().enumerate() {
            match i {
                0 => writeln!(
                    out,
                    "    {} {line}",
                    self.canvas.paint.on(piece.stance.into(), mark)
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
        self.heading(out, "Considered, but not linked")?;
        for apart in separations {
            paragraph_in(
                out,
                self.canvas.width,
                "  ",
                &format!("{} and {}", apart.cause, apart.effect),
            )?;
            self.pieces(out, &apart.evidence)?;
        }
        Ok(())
    }

    fn explanations(&self, out: &mut dyn Write) -> io::Result<()> {
        for (outcome, heading) in [
            (Outcome::PlaysAPart, "Contributing factors"),
            (Outcome::RuledOut, "Ruled out"),
            (Outcome::NotSeen, "Not ruled out"),
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
                paragraph_in(
                    out,
                    self.canvas.width,
                    "  - ",
                    text.trim_end_matches([':', ' ']),
                )?;
            }
        }
        Ok(())
    }

    fn forecasts(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.diagnosis().forecasts.is_empty() {
            return Ok(());
        }
        self.heading(out, "Forecast")?;
        for forecast in &self.diagnosis().forecasts {
            paragraph_in(out, self.canvas.width, "  - ", &forecast_words(forecast))?;
            for passing in &forecast.passes {
                paragraph_in(out, self.canvas.width, "      ", &passing_words(passing))?;
            }
        }
        Ok(())
    }

    fn not_judged(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.diagnosis().not_judged.is_empty() {
            return Ok(());
        }
        self.heading(out, "Not assessed")?;
        // One reason may keep several rules from judging.
        for alike in grouped(&self.diagnosis().not_judged, |rule| &rule.because) {
            let rules = alike
                .iter()
                .map(|rule| format!("{} {}", rule.code, rule.what));
            let rules: Vec<String> = rules.collect();
            let because = alike.first().map_or("", |rule| &rule.because);
            let text = format!("{}: {because}", rules.join(", "));
            paragraph_in(out, self.canvas.width, "  - ", &text)?;
        }
        Ok(())
    }

    /// By what lesser means things were seen, in one line.
    fn step_downs(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(steps) = words::step_downs(self.diagnosis()) else {
            return Ok(());
        };
        writeln!(out)?;
        paragraph_in(out, self.canvas.width, words::OTHER_MEANS, &steps)
    }

    fn gaps(&self, out: &mut dyn Write) -> io::Result<()> {
        crate::gaps::write(out, self.canvas.width, &self.diagnosis().gaps)
    }
}

pub(super) fn forecast_words(forecast: &Forecast) -> String {
    format!(
        "{}: +{}/day (± {}, from {} counts)",
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
        None => format!("{}: not at this rate", passing.limit),
    }
}
