//! Answers as text of 80 columns.

use std::io::{Result, Write};

pub use sexton_model::figures::number as count;
use sexton_model::text::escape;

use crate::lake::Problems;

/// A part of a whole: `99 %`, `0.4 %`.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        p if p > 0.0 && p < 1.0 || p > 99.0 && p < 100.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// A number of three digits: `68,700`, `0.97`.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    let size = value.abs();
    if size >= 1000.0 {
        let scale = 10f64.powf(size.log10().floor() - 2.0);
        let rounded = (size / scale).round() * scale;
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", count(rounded as u64));
    }
    let decimals = match size {
        s if s == 0.0 || s >= 100.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// A chance: `q = 0.012`, `q < 1e-99`.
pub fn chance(name: &str, p: f64) -> String {
    match p {
        p if p < 1e-99 => format!("{name} < 1e-99"),
        p if p < 0.001 => format!("{name} = {p:.0e}"),
        p => format!("{name} = {p:.3}"),
    }
}

/// A table with a line of names.
pub fn table(out: &mut dyn Write, names: &[String], rows: &[Vec<String>]) -> Result<()> {
    let names: Vec<String> = names.iter().map(|name| escape(name.as_bytes())).collect();
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| escape(cell.as_bytes())).collect())
        .collect();
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let widths = cells.chain(names.get(at)).map(|cell| cell.chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    for row in std::iter::once(&names).chain(&rows) {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        writeln!(out, "{}", line.join("  ").trim_end())?;
    }
    Ok(())
}

/// What was wrong with the bucket.
pub fn problems(out: &mut dyn Write, problems: &Problems) -> Result<()> {
    let lines = problems.lines();
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nProblems of the bucket")?;
    for line in lines {
        wrapped(out, "  ", &escape(line.as_bytes()))?;
    }
    Ok(())
}

/// A text in lines of 80 columns.
pub fn wrapped(out: &mut dyn Write, indent: &str, text: &str) -> Result<()> {
    const WIDTH: usize = 80;
    let mut line = indent.to_owned();
    let mut is_empty = true;
    for word in text.split(' ') {
        let longer = line.chars().count() + 1 + word.chars().count();
        if !is_empty && longer > WIDTH {
            writeln!(out, "{line}")?;
            line = format!("{indent}  ");
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    writeln!(out, "{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_readable() {
        let check = |value: f64, expected: &str| assert_eq!(number(value), expected);
        check(68_681.0, "68,700");
        check(-1234.0, "-1,230");
        check(0.0, "0");
        check(0.9712, "0.971");
        check(42.26, "42.3");
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(count(1_234_567), "1,234,567");
    }
}
