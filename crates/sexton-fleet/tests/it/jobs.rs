//! Jobs of schedulers: imported once, joined with the nodes they ran on.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

use serde_json::Value;

use crate::support::*;

fn import(lake: &Path, kind: &str, from: &str) -> Output {
    let lake = lake.to_str().unwrap();
    fleet(&["jobs", "import", kind, from, "--lake", lake, "--json"])
}

#[track_caller]
fn imported(lake: &Path, kind: &str, from: &str) -> Value {
    let output = import(lake, kind, from);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    json(&output)
}

#[track_caller]
fn rows(lake: &Path, query: &str) -> Value {
    let output = fleet(&[
        "sql",
        query,
        "--json",
        "--since",
        "7d",
        "--lake",
        lake.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    json(&output)
}

/// Serves answers of Ray's dashboard, until the test ends.
fn dashboard(answers: &'static [(&'static str, &'static str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let n = stream.read(&mut head).unwrap();
            let head = String::from_utf8_lossy(&head[..n]).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let found = answers.iter().find(|(known, _)| *known == path);
            let (status, body) = found.map_or(("404 None", "{}"), |(_, body)| ("200 OK", body));
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

const JOBS: &str = include_str!("captured/ray-jobs.json");
const NODES: &str = include_str!("captured/ray-nodes.json");
const TASKS: &str = include_str!("captured/ray-tasks.json");
const CUT: &str = include_str!("captured/ray-tasks-cut.json");
/// The captured jobs ended on the second day of a simulated fleet.
const HOURS: usize = 48;
const NODES_OF_JOBS: &str = "SELECT name, outcome, reason, exit_code, count(*) AS nodes, min(node) AS first, max(node) AS last \
     FROM jobs GROUP BY name, outcome, reason, exit_code ORDER BY outcome";

#[test]
fn jobs_of_a_real_ray_have_their_nodes() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 20, HOURS, 1, "founding");
    let url = dashboard(&[
        ("/api/jobs/", JOBS),
        ("/nodes?view=summary", NODES),
        ("/api/v0/tasks?limit=10000", TASKS),
    ]);
    let answer = imported(lake.path(), "--ray", &url);
    for (what, n) in [
        ("succeeded", 1),
        ("failed", 1),
        ("stopped", 1),
        ("unfinished", 1),
    ] {
        assert_eq!(answer[what], n, "{what}: {answer}");
    }
    let rows = rows(lake.path(), NODES_OF_JOBS);
    let (failed, stopped, succeeded) = (&rows[0], &rows[1], &rows[2]);
    assert_eq!(failed["name"], "train");
    assert_eq!(failed["reason"], "JOB_ENTRYPOINT_COMMAND_ERROR");
    assert_eq!(failed["exit_code"], 3.0);
    // Its task ran on another node than its driver.
    assert_eq!(
        (&failed["first"], &failed["last"]),
        (&"gpu-01".into(), &"gpu-02.cluster.local".into())
    );
    assert_eq!(
        (&stopped["nodes"], &stopped["first"]),
        (&1.into(), &"gpu-01".into())
    );
    assert_eq!(succeeded["nodes"], 2);
    // None of these nodes reported.
    let output = fleet(&["top", "--json", "--lake", lake.path().to_str().unwrap()]);
    let problems = json(&output)["problems"].to_string();
    assert!(
        problems.contains("3 jobs ran only on nodes that did not report (gpu-01)"),
        "{problems}"
    );
}

#[test]
fn a_node_of_ray_in_a_pod_has_the_name_that_it_was_given() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 20, HOURS, 1, "founding");
    // `ray start --node-name`; the host name is that of the pod.
    let mut nodes: Value = serde_json::from_str(NODES).unwrap();
    let names = ["node-000001", "node-000002"];
    let of_nodes = nodes["data"]["summary"].as_array_mut().unwrap();
    for (node, name) in of_nodes.iter_mut().zip(names) {
        node["raylet"]["nodeName"] = name.into();
    }
    let answers = vec![
        ("/api/jobs/", JOBS),
        ("/nodes?view=summary", nodes.to_string().leak()),
        ("/api/v0/tasks?limit=10000", TASKS),
    ];
    imported(lake.path(), "--ray", &dashboard(answers.leak()));
    let rows = rows(lake.path(), NODES_OF_JOBS);
    assert_eq!(
        (&rows[0]["first"], &rows[0]["last"]),
        (&names[0].into(), &names[1].into())
    );
}

#[test]
fn tasks_that_ray_cuts_are_asked_for_job_by_job() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 20, HOURS, 1, "founding");
    const OF_FIRST: &str =
        "/api/v0/tasks?limit=10000&filter_keys=job_id&filter_predicates=%3D&filter_values=03000000";
    const OF_SECOND: &str =
        "/api/v0/tasks?limit=10000&filter_keys=job_id&filter_predicates=%3D&filter_values=02000000";
    let url = dashboard(&[
        ("/api/jobs/", JOBS),
        ("/nodes?view=summary", NODES),
        ("/api/v0/tasks?limit=10000", CUT),
        (OF_FIRST, TASKS),
        (OF_SECOND, CUT),
    ]);
    let answer = imported(lake.path(), "--ray", &url);
    assert!(
        answer["notes"]
            .to_string()
            .contains("of 1 jobs Ray lists only some"),
        "{answer}"
    );
    assert_eq!(rows(lake.path(), NODES_OF_JOBS)[0]["nodes"], 2);
}

#[test]
fn what_is_no_ray_is_said() {
    let lake = tempfile::tempdir().unwrap();
    for (answers, expected) in [
        (&[] as &[_], "the server answered 404"),
        (
            &[("/api/jobs/", "<html>")],
            "is no JSON: is it the dashboard of Ray?",
        ),
        (&[("/api/jobs/", "{}")], "no list of jobs"),
    ] {
        let url = dashboard(answers);
        let output = import(lake.path(), "--ray", &url);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

const SACCT: &str = "\
JobID|Cluster|User|State|ExitCode|Start|End|NodeList|JobName
101|hpc|ann|COMPLETED|0:0|2026-11-17T01:00:00|2026-11-17T02:30:00|node-[000000-000002,000007]|train
101.batch|hpc||COMPLETED|0:0|2026-11-17T01:00:00|2026-11-17T02:30:00|node-000000|batch
102|hpc|ann|NODE_FAIL|1:0|2026-11-17T01:00:00|2026-11-17T02:40:00|node-000003|a|b
103_7|hpc|bob|CANCELLED by 1000|0:15|2026-11-17T01:00:00|2026-11-17T02:50:00|node-000004|sweep
104|hpc|bob|RUNNING|0:0|2026-11-17T01:00:00|Unknown|node-000005|long
105|hpc|bob|CANCELLED|0:0|None|2026-11-17T02:55:00|None assigned|never
106|hpc|bob|TIMEOUT|0:0|2026-11-17T01:00:00|2026-11-17T02:58:00|node-00[0006,0008]|late
107|hpc|bob|MELTED|0:0|2026-11-17T01:00:00|2026-11-17T02:58:00|node-000009|odd
";

#[test]
fn jobs_of_slurm() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 20, 6, 1, "founding");
    let file = lake.path().join("sacct.txt");
    fs::write(&file, SACCT).unwrap();
    let file = file.to_str().unwrap();
    let answer = imported(lake.path(), "--slurm", file);
    let expected = [
        ("succeeded", 1),
        ("failed", 2),
        ("stopped", 1),
        ("unfinished", 1),
        ("without_node", 1),
        ("not_understood", 1),
    ];
    for (what, n) in expected {
        assert_eq!(answer[what], n, "{what}: {answer}");
    }
    assert!(answer["notes"].to_string().contains("MELTED"), "{answer}");
    let nodes =
        "SELECT job, name, reason, count(*) AS n FROM jobs GROUP BY job, name, reason ORDER BY job";
    let found = rows(lake.path(), nodes);
    let of = |at: usize| {
        let row = &found[at];
        (
            row["job"].as_str().unwrap().to_owned(),
            row["name"].as_str().unwrap().to_owned(),
            row["n"].clone(),
        )
    };
    assert_eq!(of(0), ("hpc/101".into(), "train".into(), 4.into()));
    assert_eq!(of(1), ("hpc/102".into(), "a|b".into(), 1.into()));
    assert_eq!(of(3), ("hpc/106".into(), "late".into(), 2.into()));
    assert_eq!(found[1]["reason"], "NODE_FAIL");
}

#[test]
fn a_job_counts_once_however_often_it_is_imported() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 20, 6, 1, "founding");
    let file = lake.path().join("sacct.txt");
    fs::write(&file, SACCT).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(imported(lake.path(), "--slurm", file)["new_files"], 1);
    let count = || rows(lake.path(), "SELECT count(*) AS n FROM jobs")[0]["n"].clone();
    assert_eq!(count(), 8);
    // The same again changes nothing, and a longer list counts each job once.
    assert_eq!(imported(lake.path(), "--slurm", file)["new_files"], 0);
    let more = format!(
        "{SACCT}108|hpc|bob|FAILED|1:0|2026-11-17T01:00:00|2026-11-17T03:00:00|node-000001|x\n"
    );
    fs::write(file, more).unwrap();
    assert_eq!(imported(lake.path(), "--slurm", file)["new_files"], 1);
    assert_eq!(count(), 9);
}

#[test]
fn sacct_prints_local_time_and_cut_columns() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 20, 6, 1, "founding");
    let file = lake.path().join("sacct.txt");
    fs::write(&file, SACCT).unwrap();
    let (file, url) = (file.to_str().unwrap(), lake.path().to_str().unwrap());
    let output = fleet(&[
        "jobs",
        "import",
        "--slurm",
        file,
        "--utc-offset",
        "+01:00",
        "--lake",
        url,
    ]);
    assert!(
        stdout(&output).contains("Imported 4 jobs"),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    let first = "SELECT CAST(min(ended) AS VARCHAR) AS at FROM jobs";
    assert_eq!(rows(lake.path(), first)[0]["at"], "2026-11-17T01:30:00Z");
    // What sacct prints without --parsable2 has cut names.
    fs::write(
        file,
        "JobID JobName State\n----- ------- -----\n1 a FAILED\n",
    )
    .unwrap();
    let output = fleet(&["jobs", "import", "--slurm", file, "--lake", url]);
    assert!(
        stderr(&output).contains("sacct --allocations --parsable2"),
        "{}",
        stderr(&output)
    );
}

/// In the form that kubectl prints.
const KUBECTL: &str = include_str!("kubectl.json");

#[test]
fn jobs_of_kubernetes() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 20, 6, 1, "founding");
    let file = lake.path().join("jobs.json");
    fs::write(&file, KUBECTL).unwrap();
    let answer = imported(lake.path(), "--kubernetes", file.to_str().unwrap());
    for (what, n) in [
        ("succeeded", 1),
        ("failed", 1),
        ("unfinished", 1),
        ("without_node", 0),
    ] {
        assert_eq!(answer[what], n, "{what}: {answer}");
    }
    let found = rows(
        lake.path(),
        "SELECT name, reason, node FROM jobs ORDER BY name, node",
    );
    let nodes = found
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row["node"].as_str().unwrap()));
    let expected = [
        ("ml/train", "node-000001"),
        ("ml/train", "node-000002"),
        ("web/index", "node-000003"),
    ];
    assert_eq!(nodes.collect::<Vec<_>>(), expected);
    assert_eq!(found[2]["reason"], "BackoffLimitExceeded");
    let no_pods = KUBECTL.replace("\"kind\": \"Pod\"", "\"kind\": \"Node\"");
    fs::write(&file, no_pods).unwrap();
    let output = import(lake.path(), "--kubernetes", file.to_str().unwrap());
    assert!(
        stderr(&output).contains("nothing says where they ran"),
        "{}",
        stderr(&output)
    );
}

/// Of the nodes of a founding fleet, those with NIC001 and others.
fn with_and_without(lake: &Path) -> (Vec<String>, Vec<String>) {
    let names = |rows: Value| -> Vec<String> {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row["node"].as_str().unwrap().to_owned())
            .collect()
    };
    let with = names(rows(
        lake,
        "SELECT DISTINCT node FROM findings WHERE code = 'NIC001' ORDER BY node",
    ));
    let all = names(rows(
        lake,
        "SELECT DISTINCT node FROM reports ORDER BY node",
    ));
    let without = all
        .into_iter()
        .filter(|node| !with.contains(node))
        .collect();
    (with, without)
}

/// A founding fleet, with jobs.
fn with_jobs(lake: &Path) {
    simulate(lake, 400, 6, 3, "founding");
    let (with, without) = with_and_without(lake);
    // 100 jobs of which 26 fail on nodes with the finding, and 200 of which 4 fail elsewhere.
    let line = |(n, node): (usize, &String), fails: bool| {
        let outcome = if fails { "failed" } else { "succeeded" };
        format!("{node}-{n},{node},{outcome},2026-11-17T05:55:00Z\n")
    };
    let sick = with
        .iter()
        .cycle()
        .take(100)
        .enumerate()
        .map(|it| line(it, it.0 < 26));
    let well = without
        .iter()
        .cycle()
        .take(200)
        .enumerate()
        .map(|it| line(it, it.0 < 4));
    let table = format!(
        "job,node,outcome,ended\n{}",
        sick.chain(well).collect::<String>()
    );
    let file = lake.join("jobs.csv");
    fs::write(&file, &table).unwrap();
    imported(lake, "--table", file.to_str().unwrap());
}

#[test]
fn success_rates_with_and_without_a_finding() {
    let lake = tempfile::tempdir().unwrap();
    with_jobs(lake.path());
    let url = lake.path().to_str().unwrap();
    let answer = json(&fleet(&["top", "--json", "--lake", url]));
    let rates = answer["jobs"]["by_finding"].as_array().unwrap().iter();
    let nic = rates
        .clone()
        .find(|rates| rates["code"] == "NIC001")
        .unwrap();
    assert_eq!(nic["rates"]["with"]["succeeded"], 74, "{nic}");
    assert_eq!(nic["rates"]["with"]["failed"], 26);
    assert_eq!(nic["rates"]["elsewhere"]["succeeded"], 196);
    assert_eq!(nic["rates"]["elsewhere"]["failed"], 4);
    // By exact fractions.
    let p = nic["rates"]["p"].as_f64().unwrap();
    assert!((p / 2.764_092_032_897_667e-10 - 1.0).abs() < 1e-9, "{p}");
    let text = stdout(&fleet(&["top", "--lake", url]));
    let line = "Jobs on nodes with NIC001: 74 % of 100 succeeded; 98 % of 200 elsewhere";
    assert!(text.contains(line), "{text}");
    // A finding is on a node once, however many reports tell of it.
    for found in answer["findings"].as_array().unwrap() {
        assert!(
            found["nodes"].as_u64() <= answer["nodes"].as_u64(),
            "{found}"
        );
    }
}

#[test]
fn success_rates_of_bad_nodes_and_of_differences() {
    let lake = tempfile::tempdir().unwrap();
    with_jobs(lake.path());
    let (_, compared) = compare(lake.path(), &[]);
    let of = &compared["differences"][0]["jobs"];
    assert!(
        of["with"]["share"].as_f64() < of["elsewhere"]["share"].as_f64(),
        "{of}"
    );
    let (_, compared) = compare(lake.path(), &["--bad", "jobs_failed > 0"]);
    assert_eq!(compared["bad"], 30, "26 and 4 nodes on which a job failed");
}

#[test]
fn a_table_of_another_writer() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 20, 6, 1, "founding");
    let file = lake.path().join("jobs.parquet");
    let script = "
import pyarrow as pa, pyarrow.parquet as pq, sys
at = 1794880800
table = pa.table({
    'job': pa.array([1, 1, 2], pa.int64()), 'node': ['node-000001', 'node-000002', 'node-000001'],
    'outcome': ['SUCCESS', 'SUCCESS', 'Failed'], 'exit_code': pa.array([0, 0, 7], pa.int64()),
    'started': pa.array([at * 1000] * 3, pa.timestamp('ms')),
    'ended': pa.array([(at + 60) * 10**9] * 3, pa.timestamp('ns')),
})
pq.write_table(table, sys.argv[1], compression='zstd')
";
    let output = Command::new(python("python", "pyarrow"))
        .args(["-c", script])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let answer = imported(lake.path(), "--table", file.to_str().unwrap());
    assert_eq!(
        (&answer["succeeded"], &answer["failed"]),
        (&1.into(), &1.into()),
        "{answer}"
    );
    let found = rows(
        lake.path(),
        "SELECT job, count(*) AS n, max(exit_code) AS code, CAST(max(started) AS VARCHAR) AS started, \
         CAST(max(ended) AS VARCHAR) AS ended FROM jobs GROUP BY job ORDER BY job",
    );
    assert_eq!((&found[0]["n"], &found[1]["n"]), (&2.into(), &1.into()));
    assert_eq!(found[1]["code"], 7.0);
    assert_eq!(found[0]["started"], "2026-11-17T02:00:00Z");
    assert_eq!(found[0]["ended"], "2026-11-17T02:01:00Z");
    let csv = lake.path().join("wrong.csv");
    fs::write(&csv, "id,host\n1,a\n").unwrap();
    let output = import(lake.path(), "--table", csv.to_str().unwrap());
    assert!(
        stderr(&output).contains("no column job, node, outcome, ended"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn damaged_files_of_jobs_are_left_out_and_named() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 20, 6, 1, "founding");
    let file = lake.path().join("sacct.txt");
    fs::write(&file, SACCT).unwrap();
    imported(lake.path(), "--slurm", file.to_str().unwrap());
    let day = lake.path().join("jobs/day=2026-11-17");
    fs::write(day.join("zz-half.parquet"), b"PAR1 half of it").unwrap();
    let answer = json(&fleet(&[
        "top",
        "--json",
        "--lake",
        lake.path().to_str().unwrap(),
    ]));
    assert!(
        answer["problems"].to_string().contains("zz-half.parquet"),
        "{answer}"
    );
    assert_eq!(
        (&answer["jobs"]["succeeded"], &answer["jobs"]["failed"]),
        (&1.into(), &2.into())
    );
}
