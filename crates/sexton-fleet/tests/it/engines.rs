//! Another engine, on the same bucket and by the views that `fleet views` prints, gives the same
//! answers to the digit.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::*;

const QUERIES: &[&str] = &[
    "SELECT count(*) AS n, count(DISTINCT node) AS nodes, max(memcg_dying) AS dying FROM reports",
    "SELECT zone, count(DISTINCT reports.node) AS nodes FROM units JOIN reports USING (node, boot, at) \
     WHERE unit = 'ecs.service' AND units.state = 'active' GROUP BY zone ORDER BY zone",
    "SELECT code, severity, count(*) AS n, avg(severity_rank) AS mean FROM findings GROUP BY code, severity ORDER BY code, severity",
    "SELECT node, n_reports, severity_rank FROM nodes ORDER BY node",
    "SELECT kind, count(*) AS n, count(DISTINCT item) AS items FROM software GROUP BY kind ORDER BY kind",
];

const SCRIPT: &str = r#"
import duckdb, json, sys
views, queries = json.load(sys.stdin)
connection = duckdb.connect()
for view in views:
    connection.execute(view)
def plain(value):
    return float(value) if isinstance(value, (int, float)) else value

answers = []
for query in queries:
    cursor = connection.execute(query.replace("boot, at)", 'boot, "at")'))
    names = [column[0] for column in cursor.description]
    answers.append([dict(zip(names, map(plain, row))) for row in cursor.fetchall()])
print(json.dumps(answers))
"#;

/// The interpreter that `cargo xtask test setup` prepares.
fn python() -> PathBuf {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(tree, PathBuf::from);
    let python = target.join("python/bin/python");
    let imports = Command::new(&python).args(["-c", "import duckdb"]).output();
    match imports {
        Ok(output) if output.status.success() => python,
        _ => panic!("sexton-missing: python: no duckdb was prepared; run cargo xtask test setup"),
    }
}

/// Whole numbers and others are the same number.
fn as_floats(rows: Value) -> Value {
    match rows {
        Value::Array(rows) => rows.into_iter().map(as_floats).collect(),
        Value::Object(row) => row
            .into_iter()
            .map(|(name, value)| (name, as_floats(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Number(number) => number.as_f64().into(),
        other => other,
    }
}

#[test]
fn duckdb_gives_the_same_answers() {
    let python = python();
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 240, 6, 31, "founding");
    let url = lake.path().to_str().unwrap();
    let views = json(&fleet(&[
        "views",
        "--dialect",
        "duckdb",
        "--lake",
        url,
        "--json",
    ]));
    let asked = serde_json::to_vec(&(views, QUERIES)).unwrap();
    let asked_file = lake.path().join("asked.json");
    std::fs::write(&asked_file, asked).unwrap();
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .stdin(std::fs::File::open(asked_file).unwrap())
        .output()
        .unwrap();
    let theirs = json(&output);
    for (query, theirs) in QUERIES.iter().zip(theirs.as_array().unwrap()) {
        let ours = json(&fleet(&[
            "sql", query, "--lake", url, "--json", "--since", "24h",
        ]));
        assert!(!ours.as_array().unwrap().is_empty(), "{query}");
        assert_eq!(as_floats(ours), *theirs, "{query}");
    }
}
