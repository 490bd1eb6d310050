//! Every fact that a recording may hold, as a page for people who query one.

use std::io::{self, Write};

use sexton_model::fact::metric::Metric;
use sexton_model::fact::{self, Area, Fact};
use sexton_model::payload::{FieldSpec, ValueKind};

/// Prints the page.
pub fn markdown(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<!-- Printed from the definitions of facts by `cargo xtask docs`; change those instead. -->

# Facts

Everything that a recording can hold. A gauge goes up and down, a counter only grows until it is
reset, and an event happens: what it says are the fields in the column `details` of a
[recording](recording.md). A field that is not called required may be missing: then it was not
known. A fact with a metric is exported under that name, in seconds, bytes or ratios."
    )?;
    for area in fact::areas() {
        values(out, area)?;
        payloads(out, area)?;
    }
    Ok(())
}

fn values(out: &mut dyn Write, area: &Area) -> io::Result<()> {
    writeln!(out, "\n## {}\n", area.title)?;
    writeln!(
        out,
        "| fact | kind | measure | metric | meaning |\n| --- | --- | --- | --- | --- |"
    )?;
    for fact in area.facts {
        let (kind, measure) = (fact.kind.name(), fact.measure.name());
        let (name, help) = (fact.name, cell(fact.help));
        let metric = fact.metric.as_ref().map(metric).unwrap_or_default();
        writeln!(out, "| `{name}` | {kind} | {measure} | {metric} | {help} |")?;
    }
    Ok(())
}

/// Its name, what its series are told apart by, and how many there are at most.
fn metric(metric: &Metric) -> String {
    let labels: Vec<&str> = metric.labels.iter().map(|label| label.name).collect();
    match labels.is_empty() {
        true => format!("`{}`", metric.name),
        false => {
            let (labels, most) = (labels.join(", "), metric.max_series);
            format!("`{}` by {labels}, at most {most}", metric.name)
        }
    }
}

/// The fields of events; those that say the same are put together.
fn payloads(out: &mut dyn Write, area: &Area) -> io::Result<()> {
    let mut known: Vec<(&'static [FieldSpec], Vec<&'static Fact>)> = Vec::new();
    for fact in area.facts {
        let Some(payload) = fact.payload else {
            continue;
        };
        match known
            .iter_mut()
            .find(|(fields, _)| *fields == payload.fields)
        {
            Some((_, facts)) => facts.push(fact),
            None => known.push((payload.fields, vec![fact])),
        }
    }
    for (fields, facts) in known.iter().filter(|(fields, _)| !fields.is_empty()) {
        let names: Vec<String> = facts
            .iter()
            .map(|fact| format!("`{}`", fact.name))
            .collect();
        writeln!(out, "\n### {}\n", names.join(", "))?;
        writeln!(out, "| field | kind | meaning |\n| --- | --- | --- |")?;
        for field in *fields {
            row(out, "", field)?;
        }
    }
    Ok(())
}

fn row(out: &mut dyn Write, within: &str, field: &FieldSpec) -> io::Result<()> {
    let name = format!("{within}{}", field.name);
    let required = if field.is_required { ", required" } else { "" };
    let (kind, parts) = named(&field.kind);
    let help = cell(field.help);
    writeln!(out, "| `{name}` | {kind}{required} | {help} |")?;
    for part in parts {
        row(out, &format!("{name}."), part)?;
    }
    Ok(())
}

/// The kind in words, and the fields of a group, which have rows of their own.
fn named(kind: &ValueKind) -> (String, &'static [FieldSpec]) {
    match kind {
        ValueKind::List(of) => {
            let (of, parts) = named(of);
            (format!("list of {of}"), parts)
        }
        ValueKind::Group(parts) => ("group".into(), parts),
        ValueKind::Choice(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            (format!("one of {}", words.join(", ")), &[])
        }
        plain => (plain.to_string(), &[]),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_and_field_has_a_row() {
        let mut page = Vec::new();
        markdown(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        for fact in fact::all() {
            let row = format!("| `{}` | {} |", fact.name, fact.kind.name());
            assert!(page.contains(&row), "{row}");
            if let Some(metric) = fact.metric {
                assert!(page.contains(&format!("| `{}`", metric.name)));
            }
            for field in fact.payload.iter().flat_map(|payload| payload.fields) {
                let row = format!("\n| `{}` | ", field.name);
                assert!(page.contains(&row), "{row}");
                assert!(!field.help.trim().is_empty(), "{}", field.name);
            }
        }
        assert!(page.contains("| `pins.zombies` | whole number, required | how many of them |"));
        assert!(page.contains("| `by` | one of `restart`, `start` | what began it |"));
    }
}
