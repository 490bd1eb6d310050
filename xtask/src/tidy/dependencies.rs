//! Our crates use each other only as ARCHITECTURE.md says.
//!
//! The table stands between two comments, and a cell is a list of our crates or `nothing`:
//!
//! ```text
//! <!-- tidy: dependencies -->
//! | crate | may use, of ours | in its tests also |
//! | --- | --- | --- |
//! | sexton-sensors | sexton-model, sexton-host, sexton-bpf | sexton-testkit |
//! <!-- /tidy -->
//! ```
//!
//! Every crate has one row and every row a crate. The third column may be left out. What a
//! row allows is used: a crate that is granted and not used is a door left open.
//! A name may be in backticks. Crates of [`TEST_ONLY`] belong in the third column.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Complaint, tree::File, tree::Tree};

const TABLE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- tidy: dependencies -->";
const END: &str = "<!-- /tidy -->";

/// Crates that never ship, so only tests may use them.
const TEST_ONLY: &[&str] = &["sexton-testkit"];

/// A member of the workspace, and which of the others it uses.
pub(crate) struct Package {
    name: String,
    uses: Vec<Use>,
}

struct Use {
    name: String,
    in_tests_only: bool,
}

impl Package {
    /// Reads what `cargo metadata --no-deps` prints.
    pub(crate) fn parse(metadata: &str) -> Result<Vec<Package>> {
        let metadata: Value =
            serde_json::from_str(metadata).context("cargo metadata is not JSON")?;
        let packages = list(&metadata["packages"]);
        let names: Vec<&str> = packages
            .iter()
            .filter_map(|package| package["name"].as_str())
            .collect();
        let use_of = |dependency: &Value| {
            let name = dependency["name"]
                .as_str()
                .filter(|name| names.contains(name))?;
            Some(Use {
                name: name.to_owned(),
                in_tests_only: dependency["kind"] == "dev",
            })
        };
        let package = |package: &Value| {
            let name = package["name"]
                .as_str()
                .context("a package without a name in cargo metadata")?;
            let uses = list(&package["dependencies"])
                .iter()
                .filter_map(use_of)
                .collect();
            Ok(Package {
                name: name.to_owned(),
                uses,
            })
        };
        packages.iter().map(package).collect()
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// One line of the table.
struct Row<'a> {
    line: usize,
    name: &'a str,
    may_use: Vec<&'a str>,
    in_tests_also: Vec<&'a str>,
}

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let Some(file) = tree.file(TABLE) else {
        return vec![Complaint::new(
            TABLE,
            1,
            "missing: it holds the table of crates and what they may use",
        )];
    };
    let Some(rows) = rows(file) else {
        let text = format!("no table of dependencies: put it between `{BEGIN}` and `{END}`");
        return vec![Complaint::new(TABLE, 1, text)];
    };
    let mut complaints = check_rows(&rows, &tree.packages);
    for package in &tree.packages {
        match rows.iter().find(|row| row.name == package.name) {
            Some(row) => {
                let uses = package.uses.iter();
                complaints.extend(uses.filter_map(|used| check_use(package, used, row)));
                complaints.extend(check_grants(package, row));
                complaints.extend(check_named(package, tree, row));
            }
            None => {
                let text = format!("no row for {}: add what it may use", package.name);
                complaints.push(Complaint::new(TABLE, 1, text));
            }
        }
    }
    complaints
}

fn check_use(package: &Package, used: &Use, row: &Row<'_>) -> Option<Complaint> {
    let name = used.name.as_str();
    let allowed =
        row.may_use.contains(&name) || used.in_tests_only && row.in_tests_also.contains(&name);
    let (verb, column) = if used.in_tests_only {
        ("tests with", "third")
    } else {
        ("uses", "second")
    };
    let text = format!(
        "{} {verb} {name}, which its row does not allow: drop the dependency, or argue for it and add it to the {column} column",
        package.name
    );
    (!allowed).then(|| Complaint::new(TABLE, row.line, text))
}

/// What a row allows and the crate does not use.
fn check_grants(package: &Package, row: &Row<'_>) -> Vec<Complaint> {
    let uses = |name: &str, in_tests: bool| {
        let mut uses = package.uses.iter();
        uses.any(|used| used.name == name && used.in_tests_only == in_tests)
    };
    let crate_name = &package.name;
    let in_code = row.may_use.iter().filter(|name| !uses(name, false));
    let in_code = in_code.map(|name| match uses(name, true) {
        true => format!("{crate_name} only tests with {name}: move it to the third column"),
        false => format!("{crate_name} does not use {name}: take it out of the second column"),
    });
    let in_tests = row.in_tests_also.iter().filter(|name| !uses(name, true));
    let in_tests = in_tests.map(|name| {
        format!("{crate_name} does not test with {name}: take it out of the third column")
    });
    let complaint = |text| Complaint::new(TABLE, row.line, text);
    in_code.chain(in_tests).map(complaint).collect()
}

/// What a crate depends on and none of its files names.
fn check_named(package: &Package, tree: &Tree, row: &Row<'_>) -> Vec<Complaint> {
    let folder = format!("crates/{}", package.name);
    let own = tree.under(&folder).chain(tree.under(&package.name));
    let own: Vec<&File> = own.filter(|file| file.is_rust()).collect();
    let is_named = |used: &&Use| {
        let name = used.name.replace('-', "_");
        own.iter().any(|file| names_crate(&file.text, &name))
    };
    let unnamed = package.uses.iter().filter(|used| !is_named(used));
    let complaint = |used: &Use| {
        let text = format!(
            "{} depends on {}, and none of its files names it: drop the dependency",
            package.name, used.name
        );
        Complaint::new(TABLE, row.line, text)
    };
    unnamed.map(complaint).collect()
}

/// Whether a word of this text is the name.
fn names_crate(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

fn check_rows(rows: &[Row<'_>], packages: &[Package]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let exists = |name: &str| packages.iter().any(|package| package.name == name);
    for (at, row) in rows.iter().enumerate() {
        let mut complain = |text: String| complaints.push(Complaint::new(TABLE, row.line, text));
        if !exists(row.name) {
            complain(format!("no crate is called {}: delete the row", row.name));
        }
        if rows[..at].iter().any(|earlier| earlier.name == row.name) {
            complain(format!("a second row for {}: join the two", row.name));
        }
        for name in row
            .may_use
            .iter()
            .chain(&row.in_tests_also)
            .filter(|name| !exists(name))
        {
            complain(format!("no crate is called {name}: take it out of the row"));
        }
        for name in row.may_use.iter().filter(|name| TEST_ONLY.contains(name)) {
            complain(format!(
                "{name} is for tests only: move it to the third column"
            ));
        }
    }
    complaints
}

/// The rows of the table, if there is one.
fn rows(file: &File) -> Option<Vec<Row<'_>>> {
    let begin = file.lines().find(|(_, line)| line.trim() == BEGIN)?.0;
    let end = file
        .lines()
        .find(|(number, line)| *number > begin && line.trim() == END)?
        .0;
    let inside = file
        .lines()
        .filter(|(number, line)| (begin..end).contains(number) && line.starts_with('|'));
    // The first two are the header and the rule below it.
    Some(
        inside
            .skip(2)
            .map(|(number, line)| row(number, line))
            .collect(),
    )
}

fn row(line: usize, text: &str) -> Row<'_> {
    let mut cells = text.trim().trim_matches('|').split('|');
    let name = cells.next().unwrap_or_default().trim().trim_matches('`');
    let mut names = || names(cells.next().unwrap_or_default());
    Row {
        line,
        name,
        may_use: names(),
        in_tests_also: names(),
    }
}

fn names(cell: &str) -> Vec<&str> {
    let names = cell.split(',').map(|name| name.trim().trim_matches('`'));
    names
        .filter(|name| !name.is_empty() && *name != "nothing")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::check_complaints;

    const METADATA: &str = r#"{"packages": [
        {"name": "model", "dependencies": [{"name": "serde", "kind": null}]},
        {"name": "host", "dependencies": [{"name": "model", "kind": null}, {"name": "sexton-testkit", "kind": "dev"}]},
        {"name": "sexton-testkit", "dependencies": [{"name": "host", "kind": "build"}]}
    ]}"#;

    #[track_caller]
    fn check_table(rows: &str, expected: &[&str]) {
        let text = format!(
            "# Map\n{BEGIN}\n| crate | may use | tests |\n| --- | --- | --- |\n{rows}\n{END}\n"
        );
        let mut tree = Tree::of(&[
            (TABLE, &text),
            (
                "crates/host/src/lib.rs",
                "use model::fact;\nuse sexton_testkit::TempTree;\n",
            ),
            ("sexton-testkit/build.rs", "host::build();\n"),
        ]);
        tree.packages = Package::parse(METADATA).unwrap();
        check_complaints(check, &tree, expected);
    }

    #[test]
    fn what_the_table_allows_is_allowed() {
        check_table(
            "| model | nothing |\n| `host` | `model` | sexton-testkit |\n| sexton-testkit | host |",
            &[],
        );
    }

    #[test]
    fn what_is_granted_and_not_used() {
        check_table(
            "| model | nothing | host |\n| host | model | sexton-testkit, model |\n| sexton-testkit | model, host |",
            &[
                "ARCHITECTURE.md:5: model does not test with host: take",
                "ARCHITECTURE.md:6: host does not test with model: take",
                "ARCHITECTURE.md:7: sexton-testkit does not use model: take it out of the second",
            ],
        );
    }

    #[test]
    fn what_is_declared_and_not_named() {
        let text = format!(
            "{BEGIN}\n| crate | may use | tests |\n| - | - | - |\n| model | nothing |\n| host | model | sexton-testkit |\n| sexton-testkit | host |\n{END}\n"
        );
        let mut tree = Tree::of(&[
            (TABLE, &text),
            ("crates/host/src/lib.rs", "use models::fact;\nmy_model();\n"),
            ("crates/host/tests/it/main.rs", "sexton_testkit::up();\n"),
            ("crates/sexton-testkit/src/lib.rs", "pub use host;\n"),
        ]);
        tree.packages = Package::parse(METADATA).unwrap();
        check_complaints(
            check,
            &tree,
            &["ARCHITECTURE.md:5: host depends on model, and none"],
        );
    }

    #[test]
    fn a_dependency_that_is_not_in_the_table() {
        check_table(
            "| model | nothing |\n| host | nothing | nothing |\n| sexton-testkit | nothing |",
            &[
                "ARCHITECTURE.md:6: host tests with sexton-testkit",
                "ARCHITECTURE.md:6: host uses model",
                "ARCHITECTURE.md:7: sexton-testkit uses host",
            ],
        );
    }

    #[test]
    fn a_column_for_tests_allows_tests_only() {
        check_table(
            "| model | nothing |\n| host | nothing | model, sexton-testkit |\n| sexton-testkit | host |",
            &[
                "ARCHITECTURE.md:6: host does not test with model",
                "ARCHITECTURE.md:6: host uses model",
            ],
        );
    }

    #[test]
    fn rows_and_crates_match_one_to_one() {
        check_table(
            "| model | nothing |\n| model | gone |\n| gone | nothing |\n| sexton-testkit | host |",
            &[
                "ARCHITECTURE.md:1: no row for host",
                "ARCHITECTURE.md:6: a second row for model",
                "ARCHITECTURE.md:6: no crate is called gone: take",
                "ARCHITECTURE.md:7: no crate is called gone: delete",
            ],
        );
    }

    #[test]
    fn the_testkit_never_ships() {
        check_table(
            "| model | nothing |\n| host | model, sexton-testkit |\n| sexton-testkit | host |",
            &[
                "ARCHITECTURE.md:6: host only tests with sexton-testkit: move",
                "ARCHITECTURE.md:6: sexton-testkit is for tests only",
            ],
        );
    }

    #[test]
    fn a_missing_table_is_a_complaint() {
        check_complaints(check, &Tree::of(&[]), &["ARCHITECTURE.md:1: missing"]);
        check_complaints(
            check,
            &Tree::of(&[(TABLE, "# Map\n")]),
            &["ARCHITECTURE.md:1: no table"],
        );
    }
}
