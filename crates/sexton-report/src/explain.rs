//! `sexton explain`: manual pages of rules, for the terminal and as Markdown.

use std::io::{self, Write};

use sexton_model::fact::Measure;

use crate::text::paragraph;

/// What there is to say of a rule.
#[derive(Debug, Clone)]
pub struct RulePage<'a> {
    /// Its code.
    pub code: &'a str,
    /// The trouble, in a few words.
    pub title: &'a str,
    /// Its manual: lines of text, the first `CODE: title`.
    pub manual: String,
    /// Sensors without which it cannot judge.
    pub needs: &'a [&'a str],
    /// Sensors that make it see more.
    pub uses: &'a [&'a str],
    /// What it is to a verdict, if that is not told by the two below.
    pub standing: Option<&'a str>,
    /// Whether "healthy" cannot be said without it.
    pub is_essential: bool,
    /// Whether it can be what all began with.
    pub is_cause: bool,
    /// What its judgement depends on.
    pub thresholds: Vec<ThresholdLine<'a>>,
}

/// One threshold.
#[derive(Debug, Clone)]
pub struct ThresholdLine<'a> {
    /// Its name in a policy.
    pub name: &'a str,
    /// Its value.
    pub default: f64,
    /// The least and the greatest.
    pub range: (f64, f64),
    /// Its unit.
    pub unit: Measure,
    /// What it means and where it comes from.
    pub why: &'a str,
}

/// Lists all rules, from cause to symptom.
pub fn list(out: &mut dyn Write, pages: &[RulePage<'_>]) -> io::Result<()> {
    for page in pages {
        paragraph(out, &format!("{:<8} ", page.code), page.title)?;
    }
    writeln!(out, "\nsexton explain CODE says more of each.")
}

/// The page for a terminal.
pub fn text(out: &mut dyn Write, page: &RulePage<'_>) -> io::Result<()> {
    writeln!(out, "{}: {}\n", page.code, page.title)?;
    for part in parts(&page.manual) {
        match part.split_once(": ") {
            Some((label, text)) if is_label(label) => {
                paragraph(out, &format!("{:<10} ", format!("{label}:")), text)?;
            }
            _ => paragraph(out, "", &part)?,
        }
    }
    writeln!(out)?;
    paragraph(out, "Needs:     ", &sensors(page))?;
    paragraph(out, "Standing:  ", standing(page))?;
    for threshold in &page.thresholds {
        let head = format!(
            "{} = {} ({} to {})",
            threshold.name,
            value(threshold.default, threshold.unit),
            value(threshold.range.0, threshold.unit),
            value(threshold.range.1, threshold.unit)
        );
        writeln!(out, "\n  {head}")?;
        paragraph(out, "    ", threshold.why)?;
    }
    if !page.thresholds.is_empty() {
        let example = &page.thresholds[0];
        writeln!(
            out,
            "\nSet in a policy file (--policy FILE):\n  [rules.{}]\n  {} = {}",
            page.code, example.name, example.default
        )?;
    }
    Ok(())
}

/// The page as Markdown.
pub fn markdown(out: &mut dyn Write, page: &RulePage<'_>) -> io::Result<()> {
    writeln!(
        out,
        "<!-- Printed from the rule by `cargo xtask docs`; change the rule instead. -->\n\n\
         # {}: {}\n",
        page.code, page.title
    )?;
    for part in parts(&page.manual) {
        match part.split_once(": ") {
            Some((label, text)) if is_label(label) => writeln!(out, "**{label}:** {text}\n")?,
            _ => writeln!(out, "{part}\n")?,
        }
    }
    writeln!(
        out,
        "**Needs:** {}\n\n**Standing:** {}",
        sensors(page),
        standing(page)
    )?;
    if page.thresholds.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n| threshold | value | range | why |\n| --- | ---: | ---: | --- |"
    )?;
    for threshold in &page.thresholds {
        writeln!(
            out,
            "| `{}` | {} | {} to {} | {} |",
            threshold.name,
            value(threshold.default, threshold.unit),
            value(threshold.range.0, threshold.unit),
            value(threshold.range.1, threshold.unit),
            threshold.why.replace('|', "\\|")
        )?;
    }
    Ok(())
}

/// The manual in parts: a part begins with a label or after an empty line. The first line,
/// which is the title, is left out.
fn parts(manual: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut is_new = true;
    for line in manual.lines().skip(1) {
        let line = line.trim();
        let label = line
            .split_once(": ")
            .is_some_and(|(label, _)| is_label(label));
        if line.is_empty() {
            is_new = true;
        } else if is_new || label || parts.is_empty() {
            parts.push(line.to_owned());
            is_new = false;
        } else if let Some(part) = parts.last_mut() {
            part.push(' ');
            part.push_str(line);
        }
    }
    parts
}

/// `Means`, `Not this`, `By hand`, `Next`, `Source`: a word or two with a capital.
fn is_label(text: &str) -> bool {
    let words = text.split(' ').count();
    let plain = text.chars().all(|c| c.is_ascii_alphabetic() || c == ' ');
    plain && words <= 2 && text.starts_with(|c: char| c.is_ascii_uppercase())
}

fn sensors(page: &RulePage<'_>) -> String {
    let list = |names: &[&str]| match names {
        [] => "no sensor".to_owned(),
        names => names.join(", "),
    };
    match page.uses {
        [] => list(page.needs),
        uses => format!("{}; sees more with {}", list(page.needs), uses.join(", ")),
    }
}

fn standing<'a>(page: &RulePage<'a>) -> &'a str {
    if let Some(standing) = page.standing {
        return standing;
    }
    match (page.is_cause, page.is_essential) {
        (true, true) => {
            "can be a root cause; a vital sign: without its data no node is called healthy"
        }
        (true, false) => "can be a root cause",
        (false, true) => "a symptom; a vital sign: without its data no node is called healthy",
        (false, false) => "a symptom",
    }
}

/// A value in its unit.
fn value(value: f64, unit: Measure) -> String {
    let unit = match unit {
        Measure::Count | Measure::Ratio | Measure::None => "",
        Measure::Bytes => " B",
        Measure::Nanoseconds => " ns",
        Measure::Seconds => " s",
    };
    let digits = if value != 0.0 && (value.abs() >= 1e7 || value.abs() < 1e-3) {
        format!("{value:e}")
    } else {
        value.to_string()
    };
    format!("{digits}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_is_split_by_its_labels() {
        let manual = "X001: title\n\nMeans: this\nand that.\nNot this: the other: thing.\n\nMore.";
        assert_eq!(
            parts(manual),
            [
                "Means: this and that.",
                "Not this: the other: thing.",
                "More."
            ]
        );
    }

    #[test]
    fn values_are_short() {
        assert_eq!(value(0.5, Measure::Ratio), "0.5");
        assert_eq!(value(5e8, Measure::Nanoseconds), "5e8 ns");
        assert_eq!(value(1000.0, Measure::Count), "1000");
    }
}
