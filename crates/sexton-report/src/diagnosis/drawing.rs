//! A chain as a drawing: one line for each finding with its decisive figure, and between
//! two of them why they belong together.

use std::io::{self, Write};

use sexton_model::diagnosis::{Diagnosis, Link};
use sexton_model::finding::{Finding, FindingId, Stance};
use sexton_model::subject::SubjectKind;

use crate::paint::{Canvas, Look};
use crate::text::{shorten, wrap};

/// Columns of a code and the blanks around it.
const CODE: usize = 11;

/// Draws a chain from cause to symptom.
pub(super) fn draw(
    out: &mut dyn Write,
    diagnosis: &Diagnosis,
    chain: &[FindingId],
    canvas: Canvas,
) -> io::Result<()> {
    for (i, id) in chain.iter().enumerate() {
        let Some(finding) = diagnosis.finding(id) else {
            continue;
        };
        if let Some(cause) = i.checked_sub(1).and_then(|before| chain.get(before)) {
            write_link(out, link(diagnosis, cause, id), canvas)?;
        }
        write_finding(out, finding, canvas)?;
    }
    Ok(())
}

pub(super) fn link<'a>(
    diagnosis: &'a Diagnosis,
    cause: &FindingId,
    effect: &FindingId,
) -> Option<&'a Link> {
    let joins = |link: &&Link| link.cause == *cause && link.effect == *effect;
    diagnosis.links.iter().find(joins)
}

/// What a finding is about, in few words.
pub(super) fn subject_words(finding: &Finding) -> String {
    match finding.subject.kind {
        SubjectKind::Unit
        | SubjectKind::Image
        | SubjectKind::Device
        | SubjectKind::Cgroup
        | SubjectKind::Mount
        | SubjectKind::Task
        | SubjectKind::Limit => finding.subject.name.to_string(),
        SubjectKind::Cpu => format!("core {}", finding.subject.name),
        _ => finding.subject.to_string(),
    }
}

fn write_finding(out: &mut dyn Write, finding: &Finding, canvas: Canvas) -> io::Result<()> {
    let subject = subject_words(finding);
    let figure = &finding.figure;
    let code = canvas
        .paint
        .on(finding.severity.into(), &format!("{:<8}", finding.code));
    let room = canvas.width.saturating_sub(CODE);
    let both = subject.chars().count() + 2 + figure.chars().count();
    if both <= room {
        let between = " ".repeat(room - both + 2);
        let figure = canvas.paint.on(Look::Heading, figure);
        return writeln!(out, "  {code} {subject}{between}{figure}");
    }
    writeln!(out, "  {code} {}", shorten(&subject, room))?;
    for line in wrap(figure, room) {
        writeln!(
            out,
            "{}{}",
            " ".repeat(CODE),
            canvas.paint.on(Look::Heading, &line)
        )?;
    }
    Ok(())
}

/// The arrow, and what joins the two: the first thing that speaks for it.
fn write_link(out: &mut dyn Write, link: Option<&Link>, canvas: Canvas) -> io::Result<()> {
    let bar = canvas.paint.on(Look::Quiet, "│");
    let Some(link) = link else {
        return writeln!(out, "     {bar}");
    };
    let speaks = link
        .evidence
        .iter()
        .find(|evidence| evidence.stance == Stance::For);
    let reason = speaks.map_or("", |evidence| evidence.text.as_str());
    let text = format!("{reason} ({})", link.confidence.word());
    for line in wrap(text.trim_start(), canvas.width.saturating_sub(CODE)) {
        writeln!(
            out,
            "     {bar}     {}",
            canvas.paint.on(Look::Quiet, &line)
        )?;
    }
    writeln!(out, "     {}", canvas.paint.on(Look::Quiet, "▼"))
}
