//! For programs: JSON, JUnit, SARIF, Nagios, Prometheus.

use std::io::{self, Write};

use serde::Serialize;
use sexton_model::gate::{Check, Passed, worst};
use sexton_model::text::escape;

use super::text::{counted, figure, head};
use crate::junit::{self, Case, Outcome};
use crate::sarif::{self, Finding, Level, Place, Rule};

#[derive(Serialize)]
struct GateView<'a> {
    schema: &'static str,
    pass: Option<bool>,
    state: &'static str,
    checks: Vec<CheckView<'a>>,
}

#[derive(Serialize)]
struct CheckView<'a> {
    name: &'a str,
    pass: Option<bool>,
    value: Option<f64>,
    bound: &'static str,
    limit: f64,
    why: &'a str,
    title: &'a str,
    code: &'a str,
    subjects: &'a [String],
    next: Option<&'a str>,
}

/// Writes the checks in stable JSON, `sexton.check/1`. What is not known is neither true
/// nor false.
pub fn json(out: &mut dyn Write, checks: &[Check]) -> io::Result<()> {
    let view = GateView {
        schema: "sexton.check/1",
        pass: worst(checks).as_bool(),
        state: worst(checks).name(),
        checks: checks
            .iter()
            .map(|check| CheckView {
                name: check.name,
                pass: check.passed.as_bool(),
                value: check.value,
                bound: check.bound.name(),
                limit: check.limit,
                why: &check.why,
                title: check.title,
                code: check.code,
                subjects: &check.subjects,
                next: check.next.as_deref(),
            })
            .collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &view)?;
    writeln!(out)
}

/// Writes the checks as a suite of tests.
pub fn junit(out: &mut dyn Write, checks: &[Check]) -> io::Result<()> {
    let cases: Vec<Case<'_>> = checks
        .iter()
        .map(|check| Case {
            class: "sexton.check",
            name: check.name,
            outcome: match check.passed {
                Passed::Yes => Outcome::Passed,
                Passed::No => Outcome::Failed {
                    kind: check.code,
                    message: &check.why,
                    text: long(check),
                },
                Passed::Unknown => Outcome::Error {
                    message: &check.why,
                },
            },
        })
        .collect();
    junit::junit(out, "sexton check", &cases)
}

fn long(check: &Check) -> String {
    let mut text = format!(
        "{}: {}, at most {} pass",
        check.title,
        counted(check),
        figure(check.limit)
    );
    for subject in &check.subjects {
        text.push('\n');
        text.push_str(subject);
    }
    if let Some(next) = &check.next {
        text.push_str("\nnext: ");
        text.push_str(next);
    }
    text
}

/// Writes the checks that do not pass as results of a scanner.
pub fn sarif(out: &mut dyn Write, version: &str, checks: &[Check]) -> io::Result<()> {
    let mut rules: Vec<Rule<'_>> = Vec::new();
    for check in checks {
        if rules.iter().all(|rule| rule.id != check.code) {
            rules.push(Rule {
                id: check.code,
                title: check.title,
                help: format!("sexton explain {}", check.code),
            });
        }
    }
    let results: Vec<Finding<'_>> = checks
        .iter()
        .filter(|check| check.passed != Passed::Yes)
        .map(|check| Finding {
            rule: check.code,
            level: match check.passed {
                Passed::No => Level::Error,
                _ => Level::Open,
            },
            message: &check.why,
            place: Place::Thing("check", check.name),
        })
        .collect();
    sarif::sarif(out, version, &rules, &results)
}

/// Writes one line as monitoring plugins do: state, text, then the figures.
pub fn nagios(out: &mut dyn Write, checks: &[Check]) -> io::Result<()> {
    let word = match worst(checks) {
        Passed::Yes => "OK",
        Passed::No => "CRITICAL",
        Passed::Unknown => "UNKNOWN",
    };
    let head = head(checks);
    let text = head.split_once(": ").map_or("", |(_, text)| text);
    // A figure that is not known is left out: zero would be a lie.
    let figures: Vec<String> = checks
        .iter()
        .filter_map(|check| {
            let (value, limit) = (figure(check.value?), figure(check.limit));
            Some(format!("{}={value};;{limit};0", check.name))
        })
        .collect();
    writeln!(out, "SEXTON {word} - {text} | {}", figures.join(" "))
}

/// Writes metrics for the textfile collector of Prometheus.
pub fn prom(out: &mut dyn Write, checks: &[Check]) -> io::Result<()> {
    const STATES: [Passed; 3] = [Passed::Yes, Passed::No, Passed::Unknown];
    family(
        out,
        "sexton_check_state",
        "whether a check is in this state (1) or not (0)",
    )?;
    for check in checks {
        for state in STATES {
            let is = u8::from(check.passed == state);
            let (name, state) = (label(check.name), state.name());
            writeln!(
                out,
                "sexton_check_state{{check=\"{name}\",state=\"{state}\"}} {is}"
            )?;
        }
    }
    family(out, "sexton_check_value", "what a check counted")?;
    for check in checks {
        if let Some(value) = check.value {
            let name = label(check.name);
            writeln!(out, "sexton_check_value{{check=\"{name}\"}} {value}")?;
        }
    }
    family(out, "sexton_check_limit", "the most that passes a check")?;
    for check in checks {
        let name = label(check.name);
        writeln!(
            out,
            "sexton_check_limit{{check=\"{name}\"}} {}",
            check.limit
        )?;
    }
    Ok(())
}

fn family(out: &mut dyn Write, name: &str, help: &str) -> io::Result<()> {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge")
}

fn label(text: &str) -> String {
    escape(text.as_bytes())
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
}
