//! The table that ends a test run, and the verdict.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Failure, Need, NotRun, Tally};

pub(crate) struct Row {
    pub(crate) step: String,
    pub(crate) tally: Tally,
    pub(crate) seconds: f64,
}

/// Nothing failed, and whatever did not run was allowed not to.
pub(crate) fn is_good(rows: &[Row], allowed: &[Need]) -> bool {
    rows.iter().all(|row| {
        row.tally.failed == 0
            && row
                .tally
                .not_run
                .iter()
                .all(|test| is_allowed(test.need, allowed))
    })
}

fn is_allowed(need: Option<Need>, allowed: &[Need]) -> bool {
    need.is_some_and(|need| allowed.contains(&need))
}

/// The table, and after it the sum alone on the last line.
pub(crate) fn render(rows: &[Row], allowed: &[Need]) -> String {
    let mut text = format!(
        "{:10} {:>6} {:>6} {:>6} {:>7}  NOT RUN, and why\n",
        "step", "ran", "passed", "failed", "seconds"
    );
    for Row {
        step,
        tally,
        seconds,
    } in rows
    {
        let ran = tally.passed + tally.failed;
        let start = format!(
            "{step:10} {ran:>6} {:>6} {:>6} {seconds:>7.1}",
            tally.passed, tally.failed
        );
        let mut reasons = remarks(tally, allowed).into_iter();
        let first = reasons.next().unwrap_or_else(|| "-".to_owned());
        let _ = writeln!(text, "{start}  {first}");
        for reason in reasons {
            let _ = writeln!(
                text,
                "{:width$}  {reason}",
                "",
                width = start.chars().count()
            );
        }
    }
    let passed: usize = rows.iter().map(|row| row.tally.passed).sum();
    let failed: usize = rows.iter().map(|row| row.tally.failed).sum();
    let _ = write!(text, "\n{passed} passed, {failed} failed");
    text
}

/// What the figures do not tell.
fn remarks(tally: &Tally, allowed: &[Need]) -> Vec<String> {
    let failed = tally.failures.iter();
    let unsteady = tally.unsteady.iter();
    failed
        .map(|Failure { test, why }| format!("FAILED: {test}: {why}"))
        .chain(reasons(&tally.not_run, allowed))
        .chain(unsteady.map(|Failure { test, why }| {
            format!("UNSTEADY: {test} failed at first, then passed: {why}")
        }))
        .collect()
}

/// One line for each reason, with the number of tests it kept from running.
fn reasons(not_run: &[NotRun], allowed: &[Need]) -> Vec<String> {
    let mut groups: BTreeMap<(&str, &str), Vec<&NotRun>> = BTreeMap::new();
    for test in not_run {
        groups
            .entry((test.need.map_or("no need named", Need::name), &test.why))
            .or_default()
            .push(test);
    }
    let line = |((need, why), tests): ((&str, &str), Vec<&NotRun>)| {
        let allowed = if is_allowed(tests[0].need, allowed) {
            " (allowed)"
        } else {
            ""
        };
        let name = if tests.len() == 1 {
            format!("{}: ", tests[0].test)
        } else {
            String::new()
        };
        format!("{} NOT RUN{allowed}: {name}{need}: {why}", tests.len())
    };
    groups.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(step: &str, passed: usize, failed: usize, not_run: &[(&str, Option<Need>)]) -> Row {
        let not_run = not_run.iter().map(|&(test, need)| NotRun {
            test: test.into(),
            need,
            why: "no".into(),
        });
        Row {
            step: step.into(),
            tally: Tally {
                passed,
                failed,
                not_run: not_run.collect(),
                ..Tally::default()
            },
            seconds: 1.25,
        }
    }

    #[test]
    fn the_table_adds_up() {
        let rows = [
            row("format", 1, 0, &[]),
            row("plain", 120, 2, &[("c", None)]),
            row(
                "kernel",
                7,
                0,
                &[
                    ("a", Some(Need::Bpf)),
                    ("b", Some(Need::Bpf)),
                    ("d", Some(Need::Root)),
                ],
            ),
        ];
        let expected = "\
step          ran passed failed seconds  NOT RUN, and why
format          1      1      0     1.2  -
plain         122    120      2     1.2  1 NOT RUN: c: no need named: no
kernel          7      7      0     1.2  2 NOT RUN (allowed): bpf: no
                                         1 NOT RUN: d: root: no

128 passed, 2 failed";
        assert_eq!(render(&rows, &[Need::Bpf]), expected);
    }

    #[test]
    fn what_failed_once_or_twice_is_said_by_name() {
        let mut row = row("kernel", 7, 0, &[]);
        row.tally
            .fail(Failure::new("fix::frees", "3 are left\nof 7"));
        row.tally
            .unsteady
            .push(Failure::new("napi::stalls", "none was seen"));
        let expected = "\
kernel          8      7      1     1.2  FAILED: fix::frees: 3 are left
                                         UNSTEADY: napi::stalls failed at first, then passed: none was seen
";
        let text = render(&[row], &[]);
        assert!(text.contains(expected), "{text}");
    }

    fn check(row: Row, allowed: &[Need], good: bool) {
        assert_eq!(is_good(&[row], allowed), good);
    }

    #[test]
    fn a_failure_is_never_good() {
        check(row("plain", 3, 0, &[]), &[], true);
        check(
            row("plain", 3, 1, &[]),
            &[Need::Root, Need::Bpf, Need::Guest],
            false,
        );
    }

    #[test]
    fn what_did_not_run_is_good_only_if_allowed_by_need() {
        check(row("kernel", 0, 0, &[("a", Some(Need::Bpf))]), &[], false);
        check(
            row("kernel", 0, 0, &[("a", Some(Need::Bpf))]),
            &[Need::Root],
            false,
        );
        check(
            row("kernel", 0, 0, &[("a", Some(Need::Bpf))]),
            &[Need::Bpf],
            true,
        );
        check(
            row("kernel", 0, 0, &[("a", None)]),
            &[Need::Root, Need::Bpf, Need::Guest],
            false,
        );
    }
}
