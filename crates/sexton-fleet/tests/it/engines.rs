//! Another engine, on the same bucket and by the views that `fleet views` prints, gives the same
//! answers to the digit.

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::*;

const QUERIES: &[&str] = &[
    "SELECT count(*) AS n, count(DISTINCT node) AS nodes, max(memcg_dying) AS dying FROM reports",
    "SELECT zone, count(DISTINCT reports.node) AS nodes FROM units JOIN reports USING (node, boot, at) \
     WHERE unit = 'ecs.service' AND units.state = 'active' GROUP BY zone ORDER BY zone",
    "SELECT code, severity, count(*) AS n, avg(severity_rank) AS mean FROM findings GROUP BY code, severity ORDER BY code, severity",
    "SELECT node, n_reports, severity_rank FROM nodes ORDER BY node",
    "SELECT kind, count(*) AS n, count(DISTINCT item) AS items FROM software GROUP BY kind ORDER BY kind",
    "SELECT outcome, count(*) AS n, min(job) AS first, max(node) AS last FROM jobs GROUP BY outcome ORDER BY outcome",
];

/// An engine, by its package for Python.
struct Engine {
    dialect: &'static str,
    python: &'static str,
    module: &'static str,
    script: &'static str,
}

const DUCKDB: Engine = Engine {
    dialect: "duckdb",
    python: "python",
    module: "duckdb",
    script: r#"
import duckdb, json, sys
views, queries = json.load(sys.stdin)
connection = duckdb.connect()
for view in views:
    connection.execute(view)
answers = []
for query in queries:
    cursor = connection.execute(query.replace("boot, at)", 'boot, "at")'))
    names = [column[0] for column in cursor.description]
    answers.append([dict(zip(names, row)) for row in cursor.fetchall()])
print(json.dumps(answers, default=str))
"#,
};

const CLICKHOUSE: Engine = Engine {
    dialect: "clickhouse",
    python: "python-chdb",
    module: "chdb",
    script: r#"
import json, sys
from chdb.session import Session
views, queries = json.load(sys.stdin)
session = Session()
session.query("CREATE DATABASE fleet ENGINE = Atomic")
session.query("USE fleet")
for view in views:
    session.query(view)
answers = [json.loads(session.query(query, "JSON").bytes())["data"] for query in queries]
print(json.dumps(answers))
"#,
};

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

/// A fleet with jobs.
fn lake() -> TempDir {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 240, 6, 31, "founding");
    let table = lake.path().join("jobs.csv");
    let rows = (0..60).map(|n| {
        let outcome = if n % 4 == 0 { "failed" } else { "succeeded" };
        format!(
            "j{n},node-{:06},{outcome},2026-11-17T0{}:30:00Z\n",
            n * 4,
            n % 6
        )
    });
    let rows: String = rows.collect();
    std::fs::write(&table, format!("job,node,outcome,ended\n{rows}")).unwrap();
    let url = lake.path().to_str().unwrap();
    let import = [
        "jobs",
        "import",
        "--table",
        table.to_str().unwrap(),
        "--lake",
        url,
        "--json",
    ];
    assert_eq!(json(&fleet(&import))["jobs"], 60);
    lake
}

fn gives_the_same_answers(engine: &Engine) {
    let python = python(engine.python, engine.module);
    let lake = lake();
    let url = lake.path().to_str().unwrap();
    let views = [
        "views",
        "--jobs",
        "--json",
        "--dialect",
        engine.dialect,
        "--lake",
        url,
    ];
    let views = json(&fleet(&views));
    let asked = serde_json::to_vec(&(views, QUERIES)).unwrap();
    let asked_file = lake.path().join("asked.json");
    std::fs::write(&asked_file, asked).unwrap();
    let output = Command::new(python)
        .args(["-c", engine.script])
        .stdin(std::fs::File::open(asked_file).unwrap())
        .output()
        .unwrap();
    let theirs = json(&output);
    for (query, theirs) in QUERIES.iter().zip(theirs.as_array().unwrap()) {
        let ours = json(&fleet(&[
            "sql", query, "--lake", url, "--json", "--since", "24h",
        ]));
        assert!(!ours.as_array().unwrap().is_empty(), "{query}");
        assert_eq!(as_floats(ours), as_floats(theirs.clone()), "{query}");
    }
}

#[test]
fn duckdb_gives_the_same_answers() {
    gives_the_same_answers(&DUCKDB);
}

#[test]
fn clickhouse_gives_the_same_answers() {
    gives_the_same_answers(&CLICKHOUSE);
}
