//! The answer in one screen: state, headline, causal chain, what to type, what else was found
//! and what sexton could not see. Evidence and everything else is in the full text.
//!
//! Lines are cut to the width, apart from the headline, which is wrapped, and from commands,
//! which are there to be copied.

use std::io::{self, Write};

use sexton_model::diagnosis::{Diagnosis, State};
use sexton_model::finding::{Confidence, Finding, FindingId, RemedyKind};
use sexton_model::gap::Why;

use super::drawing::{link, subject_words};
use super::remedies::{in_order, now, state_line};
use super::{Judged, words};
use crate::paint::{Canvas, Look};
use crate::text::{count, cut, shorten, wrap};

/// Lines of a screen, less the one for the next prompt.
const HEIGHT: usize = 23;

/// Columns of a code and the blanks around it.
const CODE: usize = 11;

/// Lines of a heading, with the blank one above it.
const HEADING: usize = 2;

/// The line of the chain's first finding, below its heading.
const ROOT_ROW: usize = HEADING;

/// Links of the chain that are always shown: the root, the last, and what is before it.
const LEAST_LINKS: usize = 4;

/// Writes the answer in one screen.
pub fn screen(out: &mut dyn Write, judged: &Judged, canvas: Canvas) -> io::Result<()> {
    let screen = Screen { judged, canvas };
    let head = screen.head();
    let room =
        |n_rows: usize, foot: &[String]| HEIGHT.saturating_sub(head.len() + n_rows + foot.len());
    let notes = {
        let (_, n_rows) = screen.commands(true);
        room(n_rows, &screen.foot(true)) >= screen.n_wanted()
    };
    let (commands, n_rows) = screen.commands(notes);
    let mut foot = screen.foot(notes);
    let room = room(n_rows, &foot);
    let chain = screen.chain(room);
    let (others, in_short) = screen.others(room.saturating_sub(chain.len()));
    foot.splice(1..1, in_short);
    for line in [head, chain, commands, others, foot].concat() {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

struct Screen<'a> {
    judged: &'a Judged,
    canvas: Canvas,
}

impl Screen<'_> {
    fn diagnosis(&self) -> &Diagnosis {
        &self.judged.diagnosis
    }

    /// Rows of what says more than what a command or a name means: all links of the chain, the
    /// words of its root, and two other findings.
    fn n_wanted(&self) -> usize {
        let n_links = self.diagnosis().chains.first().map_or(0, Vec::len);
        let n_others = in_order(self.diagnosis()).len().saturating_sub(n_links);
        let others = match n_others {
            0 => 0,
            n => HEADING + n.min(2),
        };
        HEADING + n_links + 1 + others
    }

    fn heading(&self, text: &str) -> [String; 2] {
        [String::new(), self.canvas.paint.on(Look::Heading, text)]
    }

    /// State, headline, node and window.
    fn head(&self) -> Vec<String> {
        let diagnosis = self.diagnosis();
        let paint = self.canvas.paint;
        let mut lines = vec![state_line(diagnosis, paint)];
        let headline = wrap(&diagnosis.headline, self.canvas.width);
        lines.extend(headline.iter().map(|line| paint.on(Look::Heading, line)));
        let about = words::about_in(self.judged, self.canvas.width);
        lines.push(paint.on(Look::Quiet, &about));
        lines
    }

    /// One line for each link of the gravest chain; of a long one the middle is left out.
    fn chain(&self, room: usize) -> Vec<String> {
        let Some(chain) = self.diagnosis().chains.first() else {
            return Vec::new();
        };
        let heading = words::chain_heading(self.diagnosis(), chain);
        let mut lines = self.heading(heading).to_vec();
        let most = room.saturating_sub(lines.len()).max(LEAST_LINKS);
        let left_out = match chain.len() > most {
            true => 1..(chain.len() + 2 - most),
            false => 0..0,
        };
        for (i, id) in chain.iter().enumerate() {
            if i == left_out.start && !left_out.is_empty() {
                let text = format!("→ … {} (--full)", count(left_out.len() as u64, "more link"));
                lines.push(self.canvas.paint.on(Look::Quiet, &text));
            }
            if !left_out.contains(&i) {
                let cause = i.checked_sub(1).and_then(|before| chain.get(before));
                lines.extend(self.link(cause, id));
            }
        }
        // What the root says itself, where there is room for it.
        if lines.len() < room
            && let Some(words) = chain.first().and_then(|root| self.quote(root))
        {
            lines.insert(ROOT_ROW + 1, words);
        }
        lines
    }

    /// The words of what a finding accuses, in one line.
    fn quote(&self, id: &FindingId) -> Option<String> {
        let finding = self.diagnosis().finding(id)?;
        let words = finding
            .evidence
            .iter()
            .find_map(|piece| piece.quote.as_deref())?;
        let room = self.canvas.width.saturating_sub(CODE);
        let words = format!("{}{}", " ".repeat(CODE), cut(words, room));
        Some(self.canvas.paint.on(Look::Quiet, &words))
    }

    fn link(&self, cause: Option<&FindingId>, id: &FindingId) -> Option<String> {
        let finding = self.diagnosis().finding(id)?;
        let joined = cause.and_then(|cause| link(self.diagnosis(), cause, id));
        let doubt = joined.map_or(finding.confidence, |link| {
            link.confidence.at_most(finding.confidence)
        });
        let mark = if cause.is_some() { "→ " } else { "  " };
        Some(self.row(mark, finding, doubt))
    }

    /// A finding in one line: code, subject, decisive figure.
    fn row(&self, mark: &str, finding: &Finding, sure: Confidence) -> String {
        let doubt = match sure.word() {
            "certain" => String::new(),
            word => format!(" ({word})"),
        };
        let paint = self.canvas.paint;
        let room = self.canvas.width.saturating_sub(CODE);
        let over = match self.diagnosis().is_history(finding) {
            true => ", over",
            false => "",
        };
        let figure = format!("{}{over}{doubt}", finding.figure);
        let figure = cut(&figure, room.saturating_sub(14).max(room / 2));
        let subject = subject_words(finding);
        let subject = shorten(&subject, room.saturating_sub(figure.chars().count() + 2));
        let gap = room - (subject.chars().count() + figure.chars().count()).min(room);
        let code = paint.on(finding.severity.into(), &format!("{:<8}", finding.code));
        let figure = paint.on(Look::Heading, &figure);
        format!("{mark}{code} {subject}{}{figure}", " ".repeat(gap))
    }

    /// At most three commands, each with what it is for, and the rows that they take: a long
    /// command is not cut.
    fn commands(&self, notes: bool) -> (Vec<String>, usize) {
        let rows: Vec<(&str, String)> = match self.diagnosis().state {
            State::Healthy => Vec::new(),
            State::Blind => self.to_see(),
            State::CauseFound | State::SymptomsOnly => now(self.diagnosis())
                .into_iter()
                .map(|(kind, command)| (label(kind), command.to_owned()))
                .collect(),
        };
        if rows.is_empty() {
            return (Vec::new(), 0);
        }
        let mut lines = self.heading("Type now").to_vec();
        let mut n_rows = lines.len();
        let width = rows.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        for (label, command) in rows {
            let n_columns = 4 + width + command.chars().count();
            n_rows += n_columns.div_ceil(self.canvas.width.max(1));
            let note = note(&command);
            let painted = self.canvas.paint.on(Look::Command, &command);
            let line = format!("  {label:<width$}  {painted}");
            // A long command goes on in the next row, and the note with it.
            let used = (n_columns - 1) % self.canvas.width.max(1) + 1;
            match note.map(|note| (self.canvas.paint.on(Look::Quiet, note), note)) {
                None => lines.push(line),
                Some((painted, note)) if used + note.chars().count() <= self.canvas.width => {
                    lines.push(format!("{line}{painted}"));
                }
                Some(_) if !notes => lines.push(line),
                Some((painted, _)) => {
                    lines.extend([line, format!("  {:<width$}{painted}", "")]);
                    n_rows += 1;
                }
            }
        }
        (lines, n_rows)
    }

    /// What lets sexton see enough.
    fn to_see(&self) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        if self.needs_root() {
            rows.push(("See it all", "sudo sexton diagnose".to_owned()));
        }
        rows.push(("See why", "sexton doctor".to_owned()));
        rows
    }

    /// Whether root would see more. Root is denied things too: by a seccomp filter, in a container.
    fn needs_root(&self) -> bool {
        let mut gaps = self.diagnosis().gaps.iter();
        gaps.any(|gap| {
            let remedy = gap.remedy.as_deref().unwrap_or_default();
            gap.why == Why::Denied && remedy.starts_with("run as root")
        })
    }

    /// Findings that are not in the gravest chain, one line each, as many as there is room for;
    /// or, where there is none, all of them in one line.
    fn others(&self, room: usize) -> (Vec<String>, Option<String>) {
        let chain = self.diagnosis().chains.first();
        let is_shown =
            |finding: &&Finding| chain.is_some_and(|chain| chain.contains(&finding.id()));
        let mut others = in_order(self.diagnosis());
        others.retain(|finding| !is_shown(finding));
        others.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        if others.is_empty() {
            return (Vec::new(), None);
        }
        let room = room.saturating_sub(2);
        if room < others.len().min(2) {
            let mut codes: Vec<&str> = others.iter().map(|finding| finding.code).collect();
            codes.dedup();
            let n = count(others.len() as u64, "other finding");
            let text = format!("Also found: {n} ({})", codes.join(", "));
            return (Vec::new(), Some(cut(&text, self.canvas.width)));
        }
        let mut lines = self.heading("Also found").to_vec();
        let n_shown = if others.len() > room {
            room - 1
        } else {
            others.len()
        };
        for finding in &others[..n_shown] {
            lines.push(self.row("  ", finding, finding.confidence));
        }
        if let Some(n) = others.len().checked_sub(n_shown).filter(|n| *n > 0) {
            let text = format!("  … {} (--full)", count(n as u64, "more finding"));
            lines.push(self.canvas.paint.on(Look::Quiet, &text));
        }
        (lines, None)
    }

    /// What could not be seen, in one line, and where the rest is.
    fn foot(&self, notes: bool) -> Vec<String> {
        let mut lines = vec![String::new()];
        if notes && self.has_patterns() {
            let words = "<id> and <n> stand for any id and any number.";
            let words = cut(words, self.canvas.width);
            lines.push(self.canvas.paint.on(Look::Quiet, &words));
        }
        lines.extend(self.other_means());
        lines.extend(self.blind_spots());
        let more = match self.diagnosis().findings.is_empty() {
            true => "Add --full for what was ruled out, and each blind spot.",
            false => "Add --full for the evidence, the forecast and each blind spot.",
        };
        let more = cut(more, self.canvas.width);
        lines.push(self.canvas.paint.on(Look::Quiet, &more));
        lines
    }

    /// Whether a shown subject is a kind of cgroups, whose ids and numbers are left out.
    fn has_patterns(&self) -> bool {
        let findings = self.diagnosis().findings.iter();
        let mut names = findings.map(|finding| &*finding.subject.name);
        names.any(|name| name.contains("<id>") || name.contains("<n>"))
    }

    /// What was measured by lesser means than usual, as far as the line holds it.
    fn other_means(&self) -> Option<String> {
        let steps = words::step_downs(self.diagnosis())?;
        let line = format!("{}{steps}", words::OTHER_MEANS);
        Some(cut(&line, self.canvas.width))
    }

    /// As many names as the line holds, then their number.
    fn blind_spots(&self) -> Option<String> {
        let diagnosis = self.diagnosis();
        let unseen: Vec<&str> = diagnosis.not_judged.iter().map(|rule| rule.what).collect();
        if unseen.is_empty() && diagnosis.gaps.is_empty() {
            return None;
        }
        let start = match self.needs_root() {
            true => "Blind spots (not run as root): ",
            false => "Blind spots: ",
        };
        // What a rule lacked and what a sensor could not see are both listed by --full.
        let line = |n_named: usize| {
            let names = unseen[..n_named].join(", ");
            match (unseen.len() - n_named + diagnosis.gaps.len(), n_named) {
                (0, _) => format!("{start}{names}"),
                (n, 0) => format!("{start}{n}"),
                (n, _) => format!("{start}{names}, {n} more"),
            }
        };
        let fits = |n: &usize| line(*n).chars().count() <= self.canvas.width;
        let n_named = (0..=unseen.len()).rev().find(fits).unwrap_or(0);
        Some(cut(&line(n_named), self.canvas.width))
    }
}

/// What a command does that does not say so itself.
fn note(command: &str) -> Option<&'static str> {
    let is_fix = command.starts_with("sudo sexton fix ");
    is_fix.then_some("  # plan first, then asks")
}

fn label(kind: RemedyKind) -> &'static str {
    match kind {
        RemedyKind::Stop => "Stop it now",
        RemedyKind::CleanUp => "Clean up",
        RemedyKind::Prevent => "Prevent it",
        RemedyKind::Look => "Investigate",
    }
}
