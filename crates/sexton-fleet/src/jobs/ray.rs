//! Jobs of a Ray cluster, from the API of its dashboard: `/api/jobs/` says how they ended,
//! `/api/v0/tasks` on which nodes their tasks ran, `/nodes` what these are called.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use reqwest::{Client, StatusCode, Url};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::time::us_of_number;
use super::{Job, Outcome, Told};

/// For one answer.
const MAX_TIME: Duration = Duration::from_secs(30);
/// Of one answer.
const MAX_BYTES: usize = 256 << 20;
/// The most tasks that Ray gives at once.
const MAX_TASKS: usize = 10_000;
/// Jobs that are asked for one by one when there are more tasks than that.
const MAX_ASKED: usize = 500;
/// Ray's own variable for it.
const TOKEN: &str = "RAY_AUTH_TOKEN";

/// Asks a cluster.
pub fn read(url: &str, runtime: &Runtime) -> Result<Told> {
    let dashboard = Dashboard::at(url, runtime)?;
    let jobs = dashboard.get("/api/jobs/")?;
    let Some(jobs) = jobs.as_array() else {
        bail!("{url} answers /api/jobs/ with no list of jobs: is it the dashboard of Ray?");
    };
    let names = names_of_nodes(&dashboard.get("/nodes?view=summary")?);
    let mut told = Told::default();
    let ran = dashboard.nodes_of_jobs(jobs, &mut told)?;
    for job in jobs {
        take(&mut told, job, &ran, &names);
    }
    Ok(told)
}

struct Dashboard<'a> {
    client: Client,
    url: &'a str,
    runtime: &'a Runtime,
}

/// By the id of a job, the ids of nodes on which its tasks ran.
type NodesOfJobs = HashMap<String, BTreeSet<String>>;

impl<'a> Dashboard<'a> {
    fn at(url: &'a str, runtime: &'a Runtime) -> Result<Self> {
        let parsed = Url::parse(url).with_context(|| format!("{url} is not a URL"))?;
        ensure!(
            matches!(parsed.scheme(), "http" | "https"),
            "cannot use {url}: write http://HOST:PORT, the address of the dashboard"
        );
        let client = Client::builder().timeout(MAX_TIME).build();
        Ok(Self {
            client: client.context("cannot set up HTTP")?,
            url: url.trim_end_matches('/'),
            runtime,
        })
    }

    fn get(&self, path: &str) -> Result<Value> {
        let url = format!("{}{path}", self.url);
        let bytes = self.runtime.block_on(self.body(&url));
        let bytes = bytes.with_context(|| format!("cannot read {url}"))?;
        serde_json::from_slice(&bytes)
            .with_context(|| format!("{url} is no JSON: is it the dashboard of Ray?"))
    }

    async fn body(&self, url: &str) -> Result<Vec<u8>> {
        let mut ask = self.client.get(url);
        if let Ok(token) = std::env::var(TOKEN) {
            ask = ask.bearer_auth(token);
        }
        // The library repeats the address in its errors.
        let mut answer = ask.send().await.map_err(reqwest::Error::without_url)?;
        match answer.status() {
            StatusCode::OK => {}
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                bail!("the server refused it ({status}); set {TOKEN}")
            }
            status => bail!("the server answered {status}"),
        }
        let mut bytes = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
            ensure!(
                bytes.len() + part.len() <= MAX_BYTES,
                "the answer is longer than 256 MiB"
            );
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }

    /// From all tasks at once; if Ray cuts that list, job by job.
    fn nodes_of_jobs(&self, jobs: &[Value], told: &mut Told) -> Result<NodesOfJobs> {
        let mut ran = NodesOfJobs::new();
        let path = format!("/api/v0/tasks?limit={MAX_TASKS}");
        if !add_tasks(&self.get(&path)?, &mut ran) {
            return Ok(ran);
        }
        let ended = jobs.iter().filter(|job| !job["end_time"].is_null());
        let ids: Vec<&str> = ended.filter_map(|job| job["job_id"].as_str()).collect();
        let mut n_cut = ids.len().saturating_sub(MAX_ASKED);
        for id in ids.iter().take(MAX_ASKED) {
            let of_job =
                format!("{path}&filter_keys=job_id&filter_predicates=%3D&filter_values={id}");
            n_cut += usize::from(add_tasks(&self.get(&of_job)?, &mut ran));
        }
        if n_cut > 0 {
            told.notes.push(format!(
                "of {n_cut} jobs Ray lists only some of their tasks: nodes may be missing"
            ));
        }
        Ok(ran)
    }
}

/// Takes a list of tasks; whether Ray cut it.
fn add_tasks(answer: &Value, ran: &mut NodesOfJobs) -> bool {
    let list = &answer["data"]["result"];
    let tasks = list["result"].as_array();
    for task in tasks.into_iter().flatten() {
        if let (Some(job), Some(node)) = (task["job_id"].as_str(), task["node_id"].as_str()) {
            ran.entry(job.to_owned())
                .or_default()
                .insert(node.to_owned());
        }
    }
    // `total` is what there was before it was cut; some of it Ray may have forgotten altogether.
    let n_given = tasks.map_or(0, Vec::len) as u64;
    list["total"].as_u64().is_some_and(|total| total > n_given)
}

/// Names by the ids of nodes; of those that died, too. That given by `ray start --node-name` is first:
/// in a pod, the host name is the pod's. Ray takes the address for it if none is given.
fn names_of_nodes(answer: &Value) -> HashMap<String, String> {
    let nodes = answer["data"]["summary"].as_array().into_iter().flatten();
    let names = nodes.filter_map(|node| {
        let raylet = &node["raylet"];
        let is_given = raylet["nodeName"] != raylet["nodeManagerAddress"];
        let given = if is_given {
            &raylet["nodeName"]
        } else {
            &Value::Null
        };
        let names = [
            given,
            &raylet["nodeManagerHostname"],
            &node["hostname"],
            &raylet["nodeName"],
        ];
        let name = names
            .into_iter()
            .filter_map(Value::as_str)
            .find(|name| !name.is_empty())?;
        Some((raylet["nodeId"].as_str()?.to_owned(), name.to_owned()))
    });
    names.collect()
}

fn take(told: &mut Told, job: &Value, ran: &NodesOfJobs, names: &HashMap<String, String>) {
    let text = |key: &str| job[key].as_str();
    // Jobs of drivers that nobody submitted have no submission.
    let Some(id) = text("submission_id").or_else(|| text("job_id")) else {
        return told.refuse(|| "a job has no id".to_owned());
    };
    let outcome = match text("status") {
        Some("SUCCEEDED") => Outcome::Succeeded,
        Some("FAILED") => Outcome::Failed,
        Some("STOPPED") => Outcome::Stopped,
        Some("PENDING" | "RUNNING") => {
            told.n_unfinished += 1;
            return;
        }
        other => return told.refuse(|| format!("unknown status {other:?} of job {id}")),
    };
    let time = |key: &str| job[key].as_f64().and_then(us_of_number);
    let Some(ended_us) = time("end_time") else {
        return told.refuse(|| format!("job {id} ended and has no end_time"));
    };
    let of_tasks = text("job_id").and_then(|id| ran.get(id));
    let mut ids: BTreeSet<&str> = of_tasks.into_iter().flatten().map(String::as_str).collect();
    ids.extend(text("driver_node_id"));
    let nodes = ids
        .into_iter()
        .map(|id| names.get(id).map_or(id, String::as_str));
    let nodes: BTreeSet<&str> = nodes.collect();
    let reason = text("error_type").filter(|_| outcome == Outcome::Failed);
    told.take(Job {
        id: id.to_owned(),
        name: job["metadata"]["name"].as_str().map(str::to_owned),
        user: None,
        outcome,
        reason: reason.map(str::to_owned),
        exit_code: job["driver_exit_code"].as_f64(),
        started_us: time("start_time"),
        ended_us,
        nodes: nodes.into_iter().map(str::to_owned).collect(),
    });
}
