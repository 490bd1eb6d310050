//! For people, and for node-problem-detector, which keeps 80 bytes.

use std::io::{self, Write};

use sexton_model::gate::{Check, Passed, worst};

use crate::paint::{Look, Paint};
use crate::text::{count, paragraph};

/// What node-problem-detector keeps of a plugin's output unless told otherwise
/// (`max_output_length` in its `pkg/custompluginmonitor/types/config.go`).
const HEAD_BYTES: usize = 80;

/// A figure without needless digits.
pub(super) fn figure(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

/// What a check counted: `17`, `<=4`, or `?` where nothing was.
pub(super) fn counted(check: &Check) -> String {
    match check.value {
        Some(value) => format!("{}{}", check.bound.sign(), figure(value)),
        None => "?".into(),
    }
}

/// All of it in one line of at most 80 bytes, plain ASCII.
pub(super) fn head(checks: &[Check]) -> String {
    let of = |passed| checks.iter().filter(move |check| check.passed == passed);
    let (word, said): (&str, Vec<String>) = match worst(checks) {
        Passed::Yes => ("PASS", vec![count(checks.len() as u64, "check")]),
        Passed::No => ("FAIL", of(Passed::No).map(over).collect()),
        Passed::Unknown => (
            "UNKNOWN",
            of(Passed::Unknown)
                .map(|check| check.name.to_owned())
                .collect(),
        ),
    };
    fit(word, &said)
}

fn over(check: &Check) -> String {
    format!(
        "{} {} > {}",
        check.name,
        counted(check),
        figure(check.limit)
    )
}

/// As many as fit, and how many more there are.
fn fit(word: &str, said: &[String]) -> String {
    for shown in (0..=said.len()).rev() {
        let more = match said.len() - shown {
            0 => String::new(),
            n => format!(", +{n}"),
        };
        let line = format!("{word}: {}{more}", said[..shown].join(", "));
        if line.len() <= HEAD_BYTES {
            return line;
        }
    }
    word.to_owned()
}

/// Writes what node-problem-detector makes the message of its condition.
pub fn npd(out: &mut dyn Write, checks: &[Check]) -> io::Result<()> {
    writeln!(out, "{}", head(checks))
}

/// Writes the checks for people, worst first.
pub fn text(out: &mut dyn Write, checks: &[Check], paint: Paint) -> io::Result<()> {
    let look = |passed| match passed {
        Passed::No => Look::Bad,
        Passed::Unknown => Look::Warning,
        Passed::Yes => Look::Good,
    };
    writeln!(out, "{}\n", paint.on(look(worst(checks)), &head(checks)))?;
    let mut sorted: Vec<&Check> = checks.iter().collect();
    sorted.sort_by_key(|check| check.passed);
    for check in sorted {
        writeln!(
            out,
            "{} {:<26} {:>10}  at most {}",
            paint.on(look(check.passed), &format!("{:<8}", check.passed.name())),
            check.name,
            counted(check),
            figure(check.limit)
        )?;
        // What passes over its limit needs a reason, too.
        let is_over = check.value.is_some_and(|value| value > check.limit);
        if check.passed != Passed::Yes || is_over {
            paragraph(out, "         ", &check.why)?;
            if let Some(next) = check.next.as_ref().filter(|_| check.passed == Passed::No) {
                writeln!(out, "         next: {}", paint.on(Look::Command, next))?;
            }
        }
    }
    Ok(())
}
