//! JUnit XML, as build servers read it: <https://github.com/testmoapp/junitxml>.

use std::io::{self, Write};

use sexton_model::text::{escape, xml};

/// A test case.
#[derive(Debug, Clone)]
pub struct Case<'a> {
    /// What it belongs to: `sexton.check`.
    pub class: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What became of it.
    pub outcome: Outcome<'a>,
}

/// What became of a test case.
#[derive(Debug, Clone)]
pub enum Outcome<'a> {
    /// It passed.
    Passed,
    /// It failed.
    Failed {
        /// The rule, `MCG003`.
        kind: &'a str,
        /// What is wrong, in one line.
        message: &'a str,
        /// More, in as many lines as it takes.
        text: String,
    },
    /// It could not be judged. Build servers count that as bad, and so do we.
    Error {
        /// Why not.
        message: &'a str,
    },
}

/// Writes one suite.
pub fn junit(out: &mut dyn Write, suite: &str, cases: &[Case<'_>]) -> io::Result<()> {
    let n = |is: fn(&Outcome<'_>) -> bool| cases.iter().filter(|case| is(&case.outcome)).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\"",
        cases.len(),
        n(|outcome| matches!(outcome, Outcome::Failed { .. })),
        n(|outcome| matches!(outcome, Outcome::Error { .. }))
    );
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"sexton\" {counts}>")?;
    writeln!(out, "  <testsuite name=\"{}\" {counts}>", line(suite))?;
    for case in cases {
        let head = format!(
            "    <testcase classname=\"{}\" name=\"{}\"",
            line(case.class),
            line(case.name)
        );
        match &case.outcome {
            Outcome::Passed => writeln!(out, "{head}/>")?,
            Outcome::Failed {
                kind,
                message,
                text,
            } => writeln!(
                out,
                "{head}>\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>",
                line(kind),
                line(message),
                lines(text)
            )?,
            Outcome::Error { message } => writeln!(
                out,
                "{head}>\n      <error type=\"unknown\" message=\"{}\"/>\n    </testcase>",
                line(message)
            )?,
        }
    }
    writeln!(out, "  </testsuite>\n</testsuites>")
}

/// Text of one line.
fn line(text: &str) -> String {
    xml(&escape(text.as_bytes()))
}

fn lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(line).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_names() {
        let cases = [Case {
            class: "sexton.check",
            name: "a\"<b>\u{1b}[31m",
            outcome: Outcome::Failed {
                kind: "X",
                message: "'&'",
                text: "one\n]]>two\0".into(),
            },
        }];
        let mut out = Vec::new();
        junit(&mut out, "s", &cases).expect("a vector takes all");
        let text = String::from_utf8(out).expect("text");
        assert!(
            text.contains(r#"name="a&quot;&lt;b&gt;\033[31m""#),
            "{text}"
        );
        assert!(text.contains("one\n]]&gt;two\\000</failure>"), "{text}");
        assert!(text.contains(r#"tests="1" failures="1" errors="0""#));
    }
}
