//! What benches measured, in the page; `cargo xtask bench all` is every one of them.
//!
//! A bench has a place of its own on the page, between two marks; all else there is prose and
//! stays. One that fails keeps its old figures and does not stop the others.

use std::fs;
use std::process::{ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::{BENCHES, Bench, WRITE, Writes};
use crate::workspace;

const PAGE: &str = "docs/benchmarks.md";

pub(super) fn all() -> Result<ExitCode> {
    let mut rows = Vec::new();
    for (i, bench) in BENCHES.iter().enumerate() {
        println!("\n=== {} ({} of {})", bench.name, i + 1, BENCHES.len());
        let start = Instant::now();
        let args = [WRITE].iter().chain(bench.in_all);
        let args: Vec<String> = args.map(ToString::to_string).collect();
        let done = measure_and_write(bench, &args);
        if let Err(error) = &done {
            eprintln!("error: {error:#}");
        }
        rows.push((bench.name, done.is_ok(), start.elapsed().as_secs()));
    }
    println!();
    for (name, is_done, seconds) in &rows {
        let word = if *is_done { "written" } else { "FAILED" };
        println!("{name:12} {word:8} {seconds:5} s");
    }
    Ok(match rows.iter().all(|(_, is_done, _)| *is_done) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Runs a bench with these arguments, of which one is [`WRITE`].
pub(super) fn measure_and_write(bench: &Bench, args: &[String]) -> Result<()> {
    if bench.writes == Writes::Itself {
        return super::run(bench, args);
    }
    let mut cargo = super::prepared(bench)?;
    let output = cargo
        .arg("--")
        .args(args.iter().filter(|arg| *arg != WRITE))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    ensure!(output.status.success(), "it ended with {}", output.status);
    let page = workspace::root().join(PAGE);
    let old =
        fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
    fs::write(&page, with_section(&old, bench, &text, &machine()))
        .with_context(|| format!("cannot write {}", page.display()))
}

/// The page with what a bench printed in its place. A bench without one gets it at the end.
fn with_section(page: &str, bench: &Bench, text: &str, machine: &str) -> String {
    let (begin, end) = (
        format!("<!-- {}: begin -->\n", bench.name),
        format!("<!-- {}: end -->", bench.name),
    );
    let text = text.trim_end();
    let body = match bench.writes {
        Writes::AsText => format!("{machine}\n\n```text\n{text}\n```\n"),
        _ => format!("{machine}\n\n{text}\n"),
    };
    let between = page
        .split_once(&begin)
        .and_then(|(head, rest)| Some((head, rest.split_once(&end)?.1)));
    match between {
        Some((head, tail)) => format!("{head}{begin}{body}{end}{tail}"),
        None => format!(
            "{}\n\n## {}\n\nRun: `cargo xtask bench {}`. It measures {}.\n\n{begin}{body}{end}\n",
            page.trim_end(),
            bench.name,
            bench.name,
            bench.measures
        ),
    }
}

/// What it was measured on.
fn machine() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{cores} cores, Linux {}.", release.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BENCH: Bench = Bench {
        name: "walk",
        package: "none",
        measures: "a walk",
        writes: Writes::AsText,
        in_all: &[],
    };

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let page = "# A\nbefore\n<!-- walk: begin -->\nold\n<!-- walk: end -->\nafter\n";
        let new = with_section(page, &BENCH, "1 ns\n", "2 cores.");
        assert_eq!(
            new,
            "# A\nbefore\n<!-- walk: begin -->\n2 cores.\n\n```text\n1 ns\n```\n\
             <!-- walk: end -->\nafter\n"
        );
        assert_eq!(with_section(&new, &BENCH, "1 ns\n", "2 cores."), new);
    }

    #[test]
    fn a_bench_without_a_place_gets_one() {
        let new = with_section("# A\n", &BENCH, "1 ns\n", "2 cores.");
        assert!(new.starts_with("# A\n\n## walk\n"), "{new}");
        assert_eq!(with_section(&new, &BENCH, "1 ns\n", "2 cores."), new);
    }

    #[test]
    fn the_page_has_a_place_for_every_bench_that_writes_itself() {
        let page = fs::read_to_string(workspace::root().join(PAGE)).expect("the page");
        for bench in BENCHES.iter().filter(|b| b.writes == Writes::Itself) {
            for mark in ["begin", "end"] {
                let mark = format!("<!-- {}: {mark} -->", bench.name);
                assert!(page.contains(&mark), "{mark} is not in {PAGE}");
            }
        }
    }
}
