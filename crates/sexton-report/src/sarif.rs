//! SARIF 2.1.0, as code scanners and their viewers read it:
//! <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>.

use std::io::{self, Write};

use serde_json::{Value, json};

/// A rule that results refer to.
#[derive(Debug, Clone)]
pub struct Rule<'a> {
    /// Its code, never used again for another.
    pub id: &'a str,
    /// What it looks for, in a few words.
    pub title: &'a str,
    /// What it means and what to do.
    pub help: String,
}

/// How much a result counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// It is wrong.
    Error,
    /// It may be wrong.
    Warning,
    /// It is worth knowing.
    Note,
    /// It could not be judged: an `open` result, which has no level.
    Open,
}

/// Where a result is.
#[derive(Debug, Clone)]
pub enum Place<'a> {
    /// A file, relative to the root of what was looked at.
    File(&'a str),
    /// A thing of a running node: its kind and name.
    Thing(&'a str, &'a str),
}

/// One result.
#[derive(Debug, Clone)]
pub struct Finding<'a> {
    /// The rule's id.
    pub rule: &'a str,
    /// How much it counts.
    pub level: Level,
    /// What is wrong, in one sentence.
    pub message: &'a str,
    /// Where.
    pub place: Place<'a>,
}

/// Writes one run.
pub fn sarif(
    out: &mut dyn Write,
    version: &str,
    rules: &[Rule<'_>],
    results: &[Finding<'_>],
) -> io::Result<()> {
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "sexton",
                "version": version,
                "rules": rules.iter().map(rule).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results.iter().map(|found| result(rules, found)).collect::<Vec<_>>(),
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &log)?;
    writeln!(out)
}

fn rule(rule: &Rule<'_>) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": { "text": rule.title },
        "help": { "text": rule.help },
    })
}

fn result(rules: &[Rule<'_>], found: &Finding<'_>) -> Value {
    let (kind, level) = match found.level {
        Level::Error => ("fail", "error"),
        Level::Warning => ("fail", "warning"),
        Level::Note => ("fail", "note"),
        Level::Open => ("open", "none"),
    };
    let location = match &found.place {
        Place::File(path) => json!({ "physicalLocation": {
            "artifactLocation": { "uri": uri(path) },
        }}),
        Place::Thing(kind, name) => json!({ "logicalLocations": [{
            "name": name, "fullyQualifiedName": format!("{kind}/{name}"), "kind": kind,
        }]}),
    };
    let mut result = json!({
        "ruleId": found.rule,
        "kind": kind,
        "level": level,
        "message": { "text": found.message },
        "locations": [location],
    });
    if let Some(index) = rules.iter().position(|rule| rule.id == found.rule) {
        result["ruleIndex"] = json!(index);
    }
    result
}

/// A path as a relative reference of RFC 3986.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.trim_start_matches('/').bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            // A colon in the first part would make it a scheme.
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_references() {
        assert_eq!(
            uri("/etc/systemd/system/a@b c.service"),
            "etc/systemd/system/a%40b%20c.service"
        );
        assert_eq!(uri("a:b"), "a%3Ab");
    }
}
