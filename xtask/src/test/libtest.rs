//! Reads what libtest prints.
//!
//! A test that finds its need unmet panics with a line of its own,
//! `sexton-missing: NEED: reason`. libtest calls it failed; here it is *not run*.

use super::{Failure, Need, NotRun, Tally};

const MISSING: &str = "sexton-missing: ";

/// What one `cargo test` came to.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    /// Tests that are marked as ignored.
    pub(crate) ignored: Vec<NotRun>,
    /// Names of the tests that were started.
    pub(crate) seen: Vec<String>,
}

#[derive(Default)]
pub(crate) struct Parser {
    outcome: Outcome,
    /// Counts of the suite being read, from its lines.
    suite: Option<Suite>,
    /// The failed test whose captured output is being read.
    output_of: Option<String>,
    /// Whether the next line says why it panicked.
    why_follows: bool,
}

#[derive(Default)]
struct Suite {
    n_passed: usize,
    n_failed: usize,
}

impl Parser {
    pub(crate) fn line(&mut self, line: &str) {
        let is_why = std::mem::replace(&mut self.why_follows, is_panic(line));
        if is_suite_start(line) {
            self.close_cut_suite();
            self.suite = Some(Suite::default());
        } else if let Some(summary) = line.strip_prefix("test result: ") {
            self.summary(summary);
        } else if let Some((name, result)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.split_once(" ... "))
        {
            self.test(name, result);
        } else if let Some(name) = line
            .strip_prefix("---- ")
            .and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.output_of = Some(name.to_owned());
        } else if line == "failures:" {
            self.output_of = None;
        } else if let Some(missing) = line.trim_start().strip_prefix(MISSING) {
            self.missing(missing);
        } else if is_why {
            self.why(line);
        }
    }

    fn test(&mut self, name: &str, result: &str) {
        let suite = self.suite.get_or_insert_default();
        match result.split_once(", ").unwrap_or((result, "")) {
            ("ignored", reason) => {
                let ignored = not_run(name, reason.strip_prefix("needs ").unwrap_or(reason));
                self.outcome.ignored.push(ignored);
                return;
            }
            ("FAILED", _) => {
                suite.n_failed += 1;
                self.outcome.tally.failures.push(Failure::new(name, ""));
            }
            _ => suite.n_passed += 1,
        }
        self.outcome.seen.push(name.to_owned());
    }

    /// The summary has the last word: a test that writes past the capture can garble its own line.
    fn summary(&mut self, summary: &str) {
        let count = |what: &str| {
            summary
                .split(['.', ';'])
                .find_map(|part| part.trim().strip_suffix(what)?.trim().parse::<usize>().ok())
        };
        let lines = self.suite.take().unwrap_or_default();
        self.outcome.tally.passed += count(" passed").unwrap_or(lines.n_passed);
        self.outcome.tally.failed += count(" failed").unwrap_or(lines.n_failed);
        self.output_of = None;
    }

    fn missing(&mut self, text: &str) {
        if let Some(name) = self.output_of.take() {
            let tally = &mut self.outcome.tally;
            tally.failures.retain(|failure| failure.test != name);
            tally.not_run.push(not_run(&name, text));
        }
    }

    /// The first panic of a test is what it failed of.
    fn why(&mut self, line: &str) {
        let mut failures = self.outcome.tally.failures.iter_mut();
        let is_it = |failure: &&mut Failure| Some(&failure.test) == self.output_of.as_ref();
        if let Some(failure) = failures.find(is_it).filter(|found| found.why.is_empty()) {
            line.clone_into(&mut failure.why);
        }
    }

    /// A suite without a summary was cut short: the process died, which is a failure of its own.
    fn close_cut_suite(&mut self) {
        if let Some(suite) = self.suite.take() {
            self.outcome.tally.passed += suite.n_passed;
            self.outcome.tally.failed += suite.n_failed + 1;
        }
    }

    pub(crate) fn finish(mut self) -> Outcome {
        self.close_cut_suite();
        let tally = &mut self.outcome.tally;
        tally.failed = tally.failed.saturating_sub(tally.not_run.len());
        self.outcome
    }
}

fn is_panic(line: &str) -> bool {
    line.starts_with("thread '") && line.contains(" panicked at ")
}

fn is_suite_start(line: &str) -> bool {
    line.strip_prefix("running ")
        .and_then(|rest| {
            rest.strip_suffix(" tests")
                .or_else(|| rest.strip_suffix(" test"))
        })
        .is_some_and(|count| count.parse::<usize>().is_ok())
}

/// Reads `NEED: reason`.
fn not_run(test: &str, text: &str) -> NotRun {
    let (need, why) = match text.split_once(": ") {
        Some((name, why)) if Need::parse(name).is_some() => (Need::parse(name), why),
        _ => (None, text),
    };
    let why = if why.is_empty() {
        "ignored without a reason"
    } else {
        why
    };
    NotRun {
        test: test.to_owned(),
        need,
        why: why.to_owned(),
    }
}

/// Takes from `ignored` the tests that a later run has started, one for one.
pub(crate) fn forget_those_that_ran(ignored: &mut Vec<NotRun>, seen: &[String]) {
    for name in seen {
        if let Some(at) = ignored.iter().position(|test| test.test == *name) {
            ignored.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Outcome {
        let mut parser = Parser::default();
        text.lines().for_each(|line| parser.line(line));
        parser.finish()
    }

    #[track_caller]
    fn check(text: &str, passed: usize, failed: usize, not_run: &[(&str, Option<Need>, &str)]) {
        let found = parse(text).tally;
        let not_run = not_run.iter().map(|&(test, need, why)| NotRun {
            test: test.into(),
            need,
            why: why.into(),
        });
        assert_eq!((found.passed, found.failed), (passed, failed));
        assert_eq!(found.not_run, not_run.collect::<Vec<_>>());
    }

    const TWO_SUITES: &str = "
running 3 tests
test a::one ... ok
test a::two ... FAILED
test a::slow ... ignored, needs bpf: run cargo xtask test kernel

failures:

---- a::two stdout ----

thread 'a::two' (7) panicked at src/lib.rs:3:5:
assertion failed

failures:
    a::two

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

running 1 test
test b::three ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn suites_add_up() {
        check(TWO_SUITES, 2, 1, &[]);
        assert_eq!(parse(TWO_SUITES).seen, ["a::one", "a::two", "b::three"]);
        let why = Failure::new("a::two", "assertion failed");
        assert_eq!(parse(TWO_SUITES).tally.failures, [why]);
    }

    #[test]
    fn an_ignored_test_keeps_its_need() {
        let expected = NotRun {
            test: "a::slow".into(),
            need: Some(Need::Bpf),
            why: "run cargo xtask test kernel".into(),
        };
        assert_eq!(parse(TWO_SUITES).ignored, [expected]);
    }

    #[test]
    fn an_ignored_test_without_a_reason_has_no_need() {
        let outcome = parse(
            "running 1 test\ntest a ... ignored\ntest result: ok. 0 passed; 0 failed; 1 ignored;",
        );
        assert_eq!(
            (outcome.ignored[0].need, outcome.ignored[0].why.as_str()),
            (None, "ignored without a reason")
        );
    }

    #[test]
    fn an_unmet_need_is_not_a_failure() {
        check(
            "
running 2 tests
test sees ... FAILED
test walks ... FAILED

failures:

---- sees stdout ----

thread 'sees' (9) panicked at tests/it/main.rs:4:5:
sexton-missing: root: effective user is 1000
note: run with `RUST_BACKTRACE=1`

---- walks stdout ----

thread 'walks' (9) panicked at tests/it/main.rs:9:5:
expected 23, got 22

failures:
    sees
    walks

test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out
",
            0,
            1,
            &[("sees", Some(Need::Root), "effective user is 1000")],
        );
    }

    #[test]
    fn an_unknown_need_excuses_nothing() {
        check(
            "running 1 test\ntest a ... FAILED\nfailures:\n---- a stdout ----\nsexton-missing: luck: none left\n\
             test result: FAILED. 0 passed; 1 failed; 0 ignored",
            0,
            0,
            &[("a", None, "luck: none left")],
        );
    }

    #[test]
    fn a_suite_that_died_is_a_failure() {
        check("running 2 tests\ntest a ... ok\n", 1, 1, &[]);
        check(
            "running 2 tests\nrunning 1 test\ntest a ... ok\ntest result: ok. 1 passed; 0 failed",
            1,
            1,
            &[],
        );
    }

    #[test]
    fn a_garbled_line_is_counted_by_the_summary() {
        check(
            "running 1 test\ntest a ... noise\nok\ntest result: ok. 1 passed; 0 failed; 0 ignored",
            1,
            0,
            &[],
        );
        check(
            "running 1 test\nnoise test a ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored",
            1,
            0,
            &[],
        );
    }

    #[test]
    fn an_ignored_test_that_ran_later_is_forgotten_once() {
        let test = |name: &str| not_run(name, "bpf: later");
        let mut ignored = vec![test("a"), test("a"), test("b")];
        forget_those_that_ran(&mut ignored, &["a".into(), "c".into()]);
        ignored.sort_by(|x, y| x.test.cmp(&y.test));
        assert_eq!(ignored, [test("a"), test("b")]);
    }
}
