//! How often a planted cause is found, how often one is found where there is none, and how long the
//! commands take on many nodes, beside DuckDB on the same bucket.
//!
//! `--incidents N` invented fleets with a cause and as many without; `--nodes N --hours N` of the large
//! one. It runs the real binary.

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

#[allow(dead_code, clippy::unwrap_used, reason = "it is that of the tests")]
#[path = "../tests/it/support.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{compare, fleet, is_found, json, simulate};

/// Nodes and hours of a fleet with or without a cause.
const SMALL: (usize, usize) = (800, 2);

/// What both engines are asked.
const QUERY: &str =
    "SELECT zone, count(*) AS n, avg(memcg_dying) AS mean FROM reports GROUP BY zone ORDER BY zone";

/// DuckDB on a bucket: views, then the query.
const DUCKDB: &str = r#"
import duckdb, json, sys
views, query = json.loads(sys.argv[1])
connection = duckdb.connect()
for view in views:
    connection.execute(view)
print(json.dumps(connection.execute(query).fetchall(), default=str))
"#;

fn main() {
    let number = |name: &str, default: usize| {
        let mut args = std::env::args().skip_while(|arg| arg != name);
        let given = args.nth(1).map(|text| text.parse());
        given.map_or(default, |number| number.expect("a number"))
    };
    causes(number("--incidents", 1000));
    println!();
    large(number("--nodes", 100_000), number("--hours", 24));
}

/// How a fleet with a planted cause was answered.
#[derive(Default)]
struct Answers {
    first: usize,
    among: usize,
    other: usize,
    nothing: usize,
}

impl Answers {
    fn add(&mut self, answer: &Value, truth: &Value) {
        let differences = answer["differences"].as_array().map_or(0, Vec::len);
        let text = answer["differences"].to_string();
        let cause = truth["cause"].as_array().into_iter().flatten();
        let mut cause = cause.filter_map(Value::as_str);
        match () {
            () if is_found(answer, truth) => self.first += 1,
            () if differences == 0 => self.nothing += 1,
            () if cause.all(|part| text.contains(part)) => self.among += 1,
            () => self.other += 1,
        }
    }
}

fn causes(n: usize) {
    let (nodes, hours) = SMALL;
    let (mut planted, mut n_false) = (Answers::default(), 0);
    for seed in 1..=n as u64 {
        let lake = tempfile::tempdir().expect("a folder");
        let truth = simulate(lake.path(), nodes, hours, seed, "random");
        planted.add(&compare(lake.path(), &[]).1, &truth);
        let lake = tempfile::tempdir().expect("a folder");
        simulate(lake.path(), nodes, hours, seed, "none");
        n_false += usize::from(compare(lake.path(), &[]).0 == 1);
    }
    let share = |part: usize| format!("{part} | {:.1} %", 100.0 * part as f64 / n.max(1) as f64);
    println!("{n} fleets of {nodes} nodes with a planted cause, and {n} without one.\n");
    println!("| answer | fleets | share |");
    println!("| --- | ---: | ---: |");
    println!(
        "| the planted cause comes first | {} |",
        share(planted.first)
    );
    println!("| it is named, not first | {} |", share(planted.among));
    println!("| something else is named | {} |", share(planted.other));
    println!("| nothing is named | {} |", share(planted.nothing));
    println!(
        "| without a cause, something is named | {} |",
        share(n_false)
    );
}

fn large(nodes: usize, hours: usize) {
    let lake = tempfile::tempdir().expect("a folder");
    let began = Instant::now();
    let truth = simulate(lake.path(), nodes, hours, 1, "founding");
    let took = began.elapsed();
    let url = lake.path().to_str().expect("a path in UTF-8");
    println!(
        "{} reports of {nodes} nodes in {hours} h.\n",
        truth["n_reports"]
    );
    println!("| command | seconds | MiB at most |");
    println!("| --- | ---: | ---: |");
    println!("| `fleet simulate` | {:.1} | |", took.as_secs_f64());
    let since = format!("{hours}h");
    let ours = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sexton-fleet"));
        command
            .args(args)
            .args(["--json", "--lake", url, "--since", &since]);
        command.env("SEXTON_NOW", support::NOW);
        command
    };
    row("fleet top", ours(&["top"]));
    row("fleet compare", ours(&["compare"]));
    row(
        "fleet compare --bad \"nic_resets > 0\"",
        ours(&["compare", "--bad", "nic_resets > 0"]),
    );
    row("fleet sql", ours(&["sql", QUERY]));
    let Some(python) = python_with_duckdb() else {
        println!("| DuckDB, the same query | not prepared: `cargo xtask test setup` | |");
        return;
    };
    let views = json(&fleet(&[
        "views",
        "--json",
        "--dialect",
        "duckdb",
        "--lake",
        url,
    ]));
    let asked = serde_json::json!([views, QUERY]).to_string();
    let mut duckdb = Command::new(python);
    duckdb.args(["-c", DUCKDB, &asked]);
    row("DuckDB, the same query", duckdb);
    println!(
        "\nQuery: `{QUERY}`. Times are those of whole processes, with the file system's cache warm."
    );
}

/// The one that tests use, if it was prepared.
fn python_with_duckdb() -> Option<PathBuf> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(tree, PathBuf::from);
    let python = target.join("python/bin/python");
    let mut import = Command::new(&python);
    let found = import
        .args(["-c", "import duckdb"])
        .stderr(Stdio::null())
        .status();
    found.is_ok_and(|status| status.success()).then_some(python)
}

/// The best of three runs, and the most memory of any.
fn row(name: &str, mut command: Command) {
    let runs: Vec<(Duration, u64)> = (0..3).map(|_| measured(&mut command)).collect();
    let best = runs.iter().map(|(took, _)| *took).min().unwrap_or_default();
    let most = runs.iter().map(|(_, kib)| *kib).max().unwrap_or_default();
    let (seconds, mib) = (best.as_secs_f64(), most / 1024);
    println!("| `{name}` | {seconds:.2} | {mib} |");
}

/// How long a command takes, and the most memory that it was seen with, in KiB.
fn measured(command: &mut Command) -> (Duration, u64) {
    let began = Instant::now();
    let mut child = command
        .stdout(Stdio::null())
        .spawn()
        .expect("the command starts");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.split_whitespace().next()?.parse().ok());
        most = most.max(peak.unwrap_or(0));
        if let Some(ended) = child.try_wait().expect("the command can be waited for") {
            let code = ended.code();
            assert!(
                matches!(code, Some(0 | 1)),
                "{command:?} ended with {code:?}"
            );
            return (began.elapsed(), most);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
