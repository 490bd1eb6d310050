//! A test of this machine's kernel that failed is run once more, alone.
//!
//! Such a test measures a whole machine, and a machine that others use as well has moments in
//! which nothing is as it should be. A test that passes the second time is no failure, but
//! the table at the end names it, so that its cause is looked for. What fails twice has failed.
//!
//! All other tests of cargo lean on nothing but themselves and have one run: one that would
//! pass only when run again has failed.

use anyhow::Result;

use super::libtest::Outcome;

/// More than this is no bad moment.
const MOST: usize = 4;

/// How often the tests of a step may run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Runs {
    /// A failure is a failure.
    Once,
    /// A test that failed is run once more: it leans on a machine that others use.
    TwiceOnFailure,
}

/// The arguments for `cargo` that run one of the tests of an earlier call alone.
fn alone<'a>(args: &[&'a str], name: &'a str) -> Vec<&'a str> {
    let of_cargo = args.iter().take_while(|arg| **arg != "--").copied();
    let is_ignored = args.contains(&"--ignored");
    of_cargo
        .chain(["--"])
        .chain(is_ignored.then_some("--ignored"))
        .chain(["--exact", name])
        .collect()
}

/// Runs those that failed once more by `run` where their step allows it, and counts what
/// they come to now.
pub(super) fn give_a_second_chance(
    outcome: &mut Outcome,
    runs: Runs,
    args: &[&str],
    mut run: impl FnMut(&[&str]) -> Result<Outcome>,
) {
    if runs == Runs::Once {
        return;
    }
    let tally = &mut outcome.tally;
    // A suite that died has failures without names: its tests may never have run.
    if tally.failures.len() > MOST || tally.failures.len() != tally.failed {
        return;
    }
    for failure in std::mem::take(&mut tally.failures) {
        println!("\n=== once more: {}", failure.test);
        let again = run(&alone(args, &failure.test)).map(|outcome| outcome.tally);
        let again = again.inspect_err(|error| eprintln!("error: {error:#}"));
        if again
            .is_ok_and(|again| again.failed == 0 && again.passed > 0 && again.not_run.is_empty())
        {
            tally.failed -= 1;
            tally.passed += 1;
            tally.unsteady.push(failure);
        } else {
            tally.failures.push(failure);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Failure, Tally};
    use super::*;

    #[test]
    fn one_test_is_run_as_it_was_among_the_others() {
        assert_eq!(
            alone(&["test", "--workspace"], "a::b"),
            ["test", "--workspace", "--", "--exact", "a::b"]
        );
        assert_eq!(
            alone(&["test", "--", "--ignored", "--skip", "c"], "a::b"),
            ["test", "--", "--ignored", "--exact", "a::b"]
        );
    }

    fn outcome(passed: usize, failed: &[&str]) -> Outcome {
        Outcome {
            tally: Tally {
                passed,
                failed: failed.len(),
                failures: failed.iter().map(|name| Failure::new(*name, "")).collect(),
                ..Tally::default()
            },
            ..Outcome::default()
        }
    }

    /// `steady` are those that fail each time.
    #[track_caller]
    fn check(mut first: Outcome, steady: &[&str], expected: (usize, usize, &[&str])) {
        give_a_second_chance(&mut first, Runs::TwiceOnFailure, &["test"], |args| {
            Ok(match steady.contains(args.last().expect("a name")) {
                true => outcome(0, &args[args.len() - 1..]),
                false => outcome(1, &[]),
            })
        });
        let Tally {
            passed,
            failed,
            failures,
            unsteady,
            ..
        } = &first.tally;
        assert_eq!((*passed, *failed), (expected.0, expected.1));
        assert!(failures.len() <= *failed);
        let unsteady: Vec<&str> = unsteady.iter().map(|was| was.test.as_str()).collect();
        assert_eq!(unsteady, expected.2);
    }

    #[test]
    fn what_fails_twice_has_failed() {
        check(outcome(3, &["a", "b"]), &["a"], (4, 1, &["b"]));
        check(outcome(3, &["a"]), &["a"], (3, 1, &[]));
        check(outcome(3, &[]), &[], (3, 0, &[]));
    }

    #[test]
    fn what_would_pass_when_run_again_has_failed_elsewhere() {
        let mut first = outcome(3, &["a"]);
        give_a_second_chance(&mut first, Runs::Once, &["test"], |_| {
            panic!("it is run again")
        });
        assert_eq!((first.tally.passed, first.tally.failed), (3, 1));
        assert_eq!(first.tally.failures.len(), 1);
        assert!(first.tally.unsteady.is_empty());
    }

    #[test]
    fn many_failures_are_no_bad_moment() {
        let five = ["a", "b", "c", "d", "e"];
        check(outcome(1, &five), &[], (1, 5, &[]));
    }

    #[test]
    fn a_suite_that_died_has_no_second_chance() {
        let mut died = outcome(2, &["a"]);
        died.tally.failed += 1;
        check(died, &[], (2, 2, &[]));
    }

    #[test]
    fn that_no_test_ran_is_no_success() {
        let mut first = outcome(0, &["a"]);
        let run = |_: &[&str]| Ok(outcome(0, &[]));
        give_a_second_chance(&mut first, Runs::TwiceOnFailure, &["test"], run);
        assert_eq!((first.tally.passed, first.tally.failed), (0, 1));
    }
}
