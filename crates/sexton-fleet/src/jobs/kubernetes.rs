//! Jobs of Kubernetes, from what `kubectl get jobs,pods -o json` prints.

use std::collections::HashMap;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::time::{Offset, us_of};
use super::{Job, MAX_NODES, Outcome, Told};

/// What to type for it.
pub const COMMAND: &str = "kubectl get jobs,pods --all-namespaces --output json";

/// Labels of pods that name their job: the newer one first.
const LABELS: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];

/// Reads it.
pub fn read(text: &str) -> Result<Told> {
    let list: Value =
        serde_json::from_str(text).with_context(|| format!("this is not JSON; run {COMMAND}"))?;
    let Some(items) = list["items"].as_array() else {
        bail!("this is not a list of Kubernetes; run {COMMAND}");
    };
    let of_kind = |kind: &'static str| items.iter().filter(move |item| item["kind"] == *kind);
    let nodes = nodes_of_jobs(of_kind("Pod"));
    let mut told = Told::default();
    if of_kind("Job").next().is_some() && of_kind("Pod").next().is_none() {
        bail!("there are jobs and no pods, so nothing says where they ran; run {COMMAND}");
    }
    for job in of_kind("Job") {
        take(&mut told, job, &nodes);
    }
    Ok(told)
}

/// By namespace and name of a job, where its pods ran.
type NodesOfJobs = HashMap<(String, String), Vec<String>>;

fn nodes_of_jobs<'a>(pods: impl Iterator<Item = &'a Value>) -> NodesOfJobs {
    let mut nodes = NodesOfJobs::new();
    for pod in pods {
        let meta = &pod["metadata"];
        let labels = &meta["labels"];
        let owners = meta["ownerReferences"].as_array();
        let owner = owners.and_then(|owners| owners.iter().find(|owner| owner["kind"] == "Job"));
        let job = owner
            .and_then(|owner| owner["name"].as_str())
            .or_else(|| LABELS.iter().find_map(|label| labels[*label].as_str()));
        let (Some(job), Some(node)) = (job, pod["spec"]["nodeName"].as_str()) else {
            continue;
        };
        let of_job = nodes
            .entry((text(&meta["namespace"]), job.to_owned()))
            .or_default();
        if of_job.len() < MAX_NODES && !of_job.iter().any(|known| known == node) {
            of_job.push(node.to_owned());
        }
    }
    nodes
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn take(told: &mut Told, job: &Value, nodes: &NodesOfJobs) {
    let (meta, status) = (&job["metadata"], &job["status"]);
    let (namespace, name) = (text(&meta["namespace"]), text(&meta["name"]));
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let ended = conditions
        .filter(|condition| condition["status"] == "True")
        .find_map(|condition| match condition["type"].as_str()? {
            "Complete" => Some((Outcome::Succeeded, condition)),
            "Failed" => Some((Outcome::Failed, condition)),
            _ => None,
        });
    let Some((outcome, condition)) = ended else {
        told.n_unfinished += 1;
        return;
    };
    let time = |value: &Value| us_of(value.as_str()?, Offset::default());
    let ended_us =
        time(&status["completionTime"]).or_else(|| time(&condition["lastTransitionTime"]));
    let Some(ended_us) = ended_us else {
        return told.refuse(|| format!("job {namespace}/{name} ended and has no time of that"));
    };
    let uid = text(&meta["uid"]);
    let reason = condition["reason"]
        .as_str()
        .filter(|_| outcome != Outcome::Succeeded);
    told.take(Job {
        // A job that is made again under its name is another.
        id: match uid.is_empty() {
            true => format!("{namespace}/{name}"),
            false => uid,
        },
        nodes: nodes
            .get(&(namespace.clone(), name.clone()))
            .cloned()
            .unwrap_or_default(),
        name: Some(format!("{namespace}/{name}")),
        user: None,
        outcome,
        reason: reason.map(str::to_owned),
        exit_code: None,
        started_us: time(&status["startTime"]),
        ended_us,
    });
}
