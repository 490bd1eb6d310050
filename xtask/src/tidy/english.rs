//! Words that hide the actor or make a sentence be read twice, and so must not be in what
//! people read: strings of the program, its help, manuals of rules, the page, documents.

use super::tree::{File, Tree};
use super::{Complaint, words};

/// A phrase, and what to write instead. In two parts, so that this file passes its own check.
const PHRASES: &[([&str; 2], &str)] = &[
    (["who", "ever"], "name the actor"),
    (
        ["no", "body"],
        "name the actor, or say \"no process\", \"no user\"",
    ),
    (["any", "body"], "name the actor"),
    (["told", " of"], "say who reports what"),
    (["is", " told"], "say who reports it, or \"is reported\""),
    (
        ["are", " told"],
        "say who reports them, or \"are reported\"",
    ),
    (["in the", " end"], "cut it, or say when"),
    (["let go", " of"], "the kernel releases or reclaims"),
    (["lets go", " of"], "the kernel releases or reclaims"),
    (["so", " many"], "write the number, or \"this many\""),
    (["again and", " again"], "say how often, or \"in a loop\""),
    (["speaks", " for"], "evidence for"),
    (["speaks", " against"], "evidence against"),
    (["found no", " room"], "dropped N events (ring buffer full)"),
    (["gave", " up"], "timed out after N s"),
    (["in", " vain"], "timed out after N s"),
    (["what lies", " ahead"], "forecast"),
    (["what all", " began"], "root cause"),
];

/// Crates whose words only developers read.
const FOR_TESTS: &[&str] = &[
    "crates/sexton-fuzz/",
    "crates/sexton-kernel-tests/",
    "crates/sexton-lab/",
    "crates/sexton-testkit/",
];

/// Where comments that document are printed for people: which, and in which files.
const PRINTED: &[(&str, &str)] = &[
    ("//!", "crates/sexton-analysis/src/rules/"),
    ("///", "crates/sexton-model/src/fact/"),
    ("///", "crates/sexton/src/cli"),
];

/// The account of this name, which the code quotes and no sentence says.
const ACCOUNT: &str = "\"nobody\"";

/// Texts of the lab, which quote what its checks are called.
const QUOTES: &[&str] = &["docs/matrix.md", "docs/lab.md"];

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    tree.files.iter().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Complaint> {
    let lines = file.lines_without_tests();
    let mut complaints = Vec::new();
    for (number, line) in lines {
        let Some(read) = what_people_read(file, line) else {
            continue;
        };
        let read = read.to_lowercase().replace(ACCOUNT, "");
        for ([first, second], instead) in PHRASES {
            let phrase = format!("{first}{second}");
            if words::has_word(&read, &phrase) {
                let remedy = format!("\"{phrase}\" in what people read: {instead}");
                complaints.push(Complaint::new(&file.path, number, &remedy));
            }
        }
    }
    complaints
}

/// The part of a line that people read, if any.
fn what_people_read<'a>(file: &File, line: &'a str) -> Option<&'a str> {
    let path = &*file.path;
    let is_under = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    let trimmed = line.trim_start();
    if path.ends_with(".rs") {
        let is_test = path.contains("/tests") || path.contains("/testing") || is_under(FOR_TESTS);
        if is_test || !path.starts_with("crates/") {
            return None;
        }
        let is_comment = trimmed.starts_with("//");
        let is_printed = PRINTED
            .iter()
            .any(|(mark, folder)| trimmed.starts_with(mark) && path.starts_with(folder));
        return (!is_comment || is_printed).then_some(strings_of(trimmed, is_printed));
    }
    let is_page = path.starts_with("ui/src/") && path.ends_with(".ts");
    let is_comment = ["//", "/*", "*"]
        .iter()
        .any(|start| trimmed.starts_with(start));
    let is_signature = path.starts_with("signatures/") && path.ends_with(".toml");
    // Lines of the kernel log are the kernel's own words.
    let is_quote = trimmed.starts_with(['#', '"', '{']) || trimmed.starts_with("id ");
    let is_document = path.ends_with(".md") && !path.starts_with("fixtures/");
    let is_current = path != "CHANGELOG.md" && !QUOTES.contains(&path);
    let is_read =
        (is_page && !is_comment) || (is_signature && !is_quote) || (is_document && is_current);
    is_read.then_some(line)
}

/// A line of code from its first quote on. Strings that go on over lines are taken whole.
fn strings_of(line: &str, is_whole: bool) -> &str {
    let is_code = line.contains(['(', '=', ';', '{']) && !line.ends_with('\\');
    match line.find('"') {
        Some(at) if is_code && !is_whole => &line[at..],
        None if is_code && !is_whole => "",
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::check_complaints;

    /// Lines are given with `~` inside the phrase, so that this file passes its own check.
    #[track_caller]
    fn check_line(path: &str, line: &str, forbidden: bool) {
        let text = format!("first\n{}\n", line.replace('~', ""));
        let start = format!("{path}:2: ");
        let expected: &[&str] = if forbidden { &[&start] } else { &[] };
        check_complaints(check, &Tree::of(&[(path, &text)]), expected);
    }

    #[test]
    fn what_people_read_has_an_actor() {
        for (path, line) in [
            (
                "crates/sexton-report/src/fix.rs",
                "let text = \"No~body made it\";",
            ),
            (
                "crates/sexton-report/src/fix.rs",
                "         made by who~ever it was \\",
            ),
            (
                "crates/sexton-analysis/src/rules/a.rs",
                "//! Means: it is t~old early.",
            ),
            ("crates/sexton/src/cli.rs", "/// Starts again and a~gain"),
            ("signatures/units/a.toml", "why = \"no~body reads it\""),
            ("ui/src/views/a.ts", "  say(\"What lies a~head\");"),
            ("docs/fixing.md", "In the e~nd it is freed."),
        ] {
            check_line(path, line, true);
        }
    }

    #[test]
    fn what_only_developers_read_and_what_others_wrote_is_left_alone() {
        for (path, line) in [
            ("crates/sexton-report/src/fix.rs", "// no~body reads this"),
            ("crates/sexton-report/src/fix.rs", "let no~body = 65_534;"),
            ("crates/sexton-lab/src/checks.rs", "check(\"no~body else\")"),
            ("crates/sexton/tests/it/a.rs", "say(\"no~body\")"),
            (
                "signatures/klog/core.toml",
                "    \"irq {irq:int}: no~body cared{..}\",",
            ),
            ("docs/fixing.md", "Nobodys and anybodies."),
        ] {
            check_line(path, line, false);
        }
    }
}
