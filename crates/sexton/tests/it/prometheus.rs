//! What Prometheus and Grafana are given: metrics that promtool accepts, rules that it has
//! tested, dashboards whose every query it parses; all as the definitions say.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use sexton_export::{Finding, Forecast, Format, Metrics, Own, Sensor, dashboards};
use sexton_model::fact;
use sexton_model::moment::Moment;
use sexton_testkit::TempTree;

use crate::agent::Place;
use crate::command::{sexton, stderr};

fn promtool(args: &[&str], folder: &Path) -> Output {
    let promtool = crate::profile::prepared("programs", "prometheus/usr/bin/promtool");
    let promtool = fs::canonicalize(promtool).expect("it is there");
    let done = Command::new(promtool)
        .args(args)
        .current_dir(folder)
        .output();
    done.expect("it runs")
}

fn assert_accepted(output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", stderr(output));
}

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../deploy")
        .join(name)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn rules_and_dashboards_are_current() {
    for (kind, files) in [
        ("prometheus", ["sexton.rules.yml", "sexton.test.yml"]),
        ("grafana", ["sexton-node.json", "sexton-fleet.json"]),
    ] {
        let printed = TempTree::new();
        let output = sexton(&["generate", kind, &printed.path().display().to_string()]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        for file in files {
            assert!(
                read(&printed.path().join(file)) == read(&deploy(kind).join(file)),
                "deploy/{kind}/{file} differs from the definitions: run cargo xtask docs"
            );
        }
    }
}

#[test]
fn promtool_accepts_the_rules_and_each_alert_fires_and_resolves() {
    let folder = deploy("prometheus");
    assert_accepted(&promtool(&["check", "rules", "sexton.rules.yml"], &folder));
    assert_accepted(&promtool(&["test", "rules", "sexton.test.yml"], &folder));
    let names = |text: &str, before: &str| -> BTreeSet<String> {
        let lines = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix(before));
        lines.map(str::to_owned).collect()
    };
    let rules = read(&folder.join("sexton.rules.yml"));
    let alerts = names(&rules, "- alert: ");
    assert!(alerts.len() > 30, "{alerts:?}");
    let tested = names(&read(&folder.join("sexton.test.yml")), "- name: ");
    assert_eq!(alerts, tested);
    for page in names(&rules, "runbook_url: ") {
        assert!(deploy("..").join(&page).exists(), "there is no {page}");
    }
}

#[test]
fn promtool_accepts_the_example_of_a_scrape() {
    let args = ["check", "config", "--syntax-only", "scrape.yml"];
    assert_accepted(&promtool(&args, &deploy("prometheus")));
}

/// A test of an alert that could not fail would prove nothing.
#[test]
fn promtool_notices_an_alert_that_does_not_fire() {
    let folder = TempTree::new();
    for file in ["sexton.rules.yml", "sexton.test.yml"] {
        let text = read(&deploy("prometheus").join(file));
        let text = text.replace("sexton:memcg_dying:per_live > 4", "vector(0) > 4");
        fs::write(folder.path().join(file), text).expect("a file");
    }
    let output = promtool(&["test", "rules", "sexton.test.yml"], folder.path());
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    assert!(said.contains("SextonDyingCgroups"), "{said}");
}

#[test]
fn promtool_parses_every_query_of_the_dashboards() {
    let mut rules = String::from("groups:\n- name: queries\n  rules:\n");
    let mut n = 0;
    for (_, dashboard) in dashboards::all() {
        for query in dashboards::queries(&dashboard) {
            let query = Value::from(query);
            rules.push_str(&format!("  - record: query:{n}:\n    expr: {query}\n"));
            n += 1;
        }
    }
    assert!(n > 100, "{n} queries");
    let rules = rules.replace(":\n    expr", "\n    expr");
    let folder = TempTree::new();
    fs::write(folder.path().join("queries.yml"), rules).expect("a file");
    assert_accepted(&promtool(&["check", "rules", "queries.yml"], folder.path()));
}

/// The names of all metrics that an agent may export.
fn exported() -> BTreeSet<String> {
    let own = Own {
        state: Some("healthy".into()),
        judged_seconds: Some(1.0),
        sensors: vec![Sensor {
            name: "cores".into(),
            is_up: true,
            is_shed: false,
        }],
        findings: vec![Finding {
            code: "MCG001".into(),
            subject: "node".into(),
            severity: "note".into(),
            since_seconds: 1,
        }],
        forecasts: vec![Forecast {
            what: "dying".into(),
            limit: "5 s".into(),
            seconds: 1.0,
        }],
        ..Own::default()
    };
    let text = Metrics::new(Moment::default()).render(&own, Format::Text, Moment::default());
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let own = types
        .filter_map(|rest| rest.split(' ').next())
        .map(str::to_owned);
    let facts = fact::all().filter_map(|fact| Some(fact.metric?.name.to_owned()));
    own.chain(facts).collect()
}

/// Words of a query that are names of our metrics.
fn names(query: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = query.split(move |c| !is_part(c));
    words.filter(|word| word.starts_with("sexton_") || word.starts_with("sexton:"))
}

#[test]
fn rules_and_dashboards_ask_for_metrics_that_there_are() {
    let mut known = exported();
    let rules = read(&deploy("prometheus").join("sexton.rules.yml"));
    let recorded = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- record: "));
    known.extend(recorded.map(str::to_owned));
    let mut asked: Vec<String> = rules
        .lines()
        .filter_map(|line| Some(line.trim().strip_prefix("expr: ")?.to_owned()))
        .collect();
    for (_, dashboard) in dashboards::all() {
        asked.extend(dashboards::queries(&dashboard));
    }
    for query in &asked {
        for name in names(query) {
            assert!(known.contains(name), "nothing exports {name}, of {query}");
        }
    }
}

#[test]
fn promtool_accepts_what_an_agent_exports_and_clients_choose_the_format() {
    let place = Place::new("");
    let _running = place.start();
    place.wait_for_records(20);
    let answer = place.get("/metrics", "");
    let (_, text) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(
        text.contains("sexton_core_system_ratio{core=\"0\"}"),
        "{text}"
    );
    let promtool = crate::profile::prepared("programs", "prometheus/usr/bin/promtool");
    let child = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("it runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("it reads");
    drop(stdin);
    assert_accepted(&child.wait_with_output().expect("it ends"));
    let accept = "accept: application/openmetrics-text; version=1.0.0, text/plain;q=0.5\r\n";
    let answer = place.get("/metrics", accept);
    assert!(
        answer.contains("application/openmetrics-text; version=1.0.0"),
        "{answer}"
    );
    assert!(answer.ends_with("# EOF\n"), "{answer}");
}

/// Holds dashboards against Grafana's own types.
fn compile(dashboards: &[(&str, String)]) -> Output {
    let schema = crate::profile::prepared("node", "node/node_modules/@grafana/schema");
    let schema = fs::canonicalize(schema).expect("it is there");
    let tsc = crate::profile::prepared("node", "node/node_modules/typescript/bin/tsc");
    let tsc = fs::canonicalize(tsc).expect("it is there");
    let folder = TempTree::new();
    let mut files = Vec::new();
    for (name, dashboard) in dashboards {
        let text = format!(
            "import type {{ Dashboard }} from \"@grafana/schema\";\n\
             export const dashboard: Dashboard = {dashboard};\n"
        );
        let file = name.replace(".json", ".ts");
        fs::write(folder.path().join(&file), text).expect("a file");
        files.push(file);
    }
    let config = serde_json::json!({
        "compilerOptions": {
            "strict": true, "noEmit": true, "skipLibCheck": true, "types": [],
            "module": "esnext", "moduleResolution": "bundler",
            "paths": {"@grafana/schema": [schema]},
        },
        "files": files,
    });
    let path = folder.path().join("tsconfig.json");
    fs::write(&path, config.to_string()).expect("a file");
    let done = Command::new("node").arg(tsc).arg("-p").arg(&path).output();
    done.expect("node is there")
}

#[test]
fn dashboards_are_what_grafana_says_they_are() {
    let texts = ["sexton-node.json", "sexton-fleet.json"]
        .map(|name| (name, read(&deploy("grafana").join(name))));
    assert_accepted(&compile(&texts));
    // The compiler does look.
    let [_, (_, fleet)] = &texts;
    let wrong = fleet.replacen("\"gridPos\": {", "\"gridPos\": {\"z\": 1,", 1);
    assert!(wrong != *fleet);
    let output = compile(&[("wrong.json", wrong)]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        !output.status.success() && said.contains("GridPos"),
        "{said}"
    );
}
