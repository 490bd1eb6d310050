//! What the API server knows of a pod beyond its container runtime: owner, digest, Ray labels.

use serde_json::Value;

use crate::text::cut;
use crate::verdict::Pod;

/// Labels that say what a pod is part of: KubeRay's, and the one for a job that is set by
/// those who submit it.
const RAY: [(&str, &str); 4] = [
    ("ray.io/cluster", "Ray cluster"),
    ("ray.io/originated-from-cr-name", "Ray resource"),
    ("ray.io/job-name", "Ray job"),
    ("ray.io/group", "Ray group"),
];

/// The kind of the resource that made the cluster, which has its name.
const RAY_KIND: &str = "ray.io/originated-from-crd";

/// The longest name that is repeated from there.
const MAX_NAME_BYTES: usize = 253;

/// A pod in one line: `container app of pod shop/web-1 (Deployment web, image web@sha256:…)`.
pub(crate) fn describe(pod: &Pod, known: Option<&Value>) -> String {
    let mut text = match &pod.container {
        Some(container) => format!(
            "container {container} of pod {}/{}",
            pod.namespace, pod.name
        ),
        None => format!("pod {}/{}", pod.namespace, pod.name),
    };
    let mut about = Vec::new();
    about.extend(known.and_then(owner));
    let image = known.and_then(|known| digest(known, pod.container.as_deref()?));
    about.extend(image.or(pod.image.clone()).map(|it| format!("image {it}")));
    about.extend(known.into_iter().flat_map(ray));
    if !about.is_empty() {
        text.push_str(&format!(" ({})", about.join(", ")));
    }
    text
}

/// `Deployment web`: of a replica set, what made it, by the hash that ends its name.
fn owner(pod: &Value) -> Option<String> {
    let owners = pod["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|it| it["controller"] == true);
    let owner = owner.or(owners.first())?;
    let (kind, name) = (owner["kind"].as_str()?, owner["name"].as_str()?);
    let hash = pod["metadata"]["labels"]["pod-template-hash"].as_str();
    let deployment = hash.and_then(|hash| name.strip_suffix(hash)?.strip_suffix('-'));
    Some(match (kind, deployment) {
        ("ReplicaSet", Some(deployment)) => {
            format!("Deployment {}", cut(deployment, MAX_NAME_BYTES))
        }
        _ => format!("{} {}", cut(kind, 63), cut(name, MAX_NAME_BYTES)),
    })
}

/// The image that really runs, with its digest.
fn digest(pod: &Value, container: &str) -> Option<String> {
    let lists = ["containerStatuses", "initContainerStatuses"];
    let statuses = lists
        .iter()
        .filter_map(|list| pod["status"][list].as_array());
    let status = statuses.flatten().find(|it| it["name"] == container)?;
    let id = status["imageID"].as_str()?;
    let id = id.split_once("://").map_or(id, |(_, id)| id);
    id.contains("sha256:").then(|| cut(id, MAX_NAME_BYTES))
}

fn ray(pod: &Value) -> Vec<String> {
    let labels = &pod["metadata"]["labels"];
    let mut about: Vec<String> = Vec::new();
    for (label, word) in RAY {
        let Some(name) = labels[label].as_str().filter(|name| !name.is_empty()) else {
            continue;
        };
        let word = match (word, labels[RAY_KIND].as_str()) {
            ("Ray resource", Some("RayJob")) => "Ray job",
            ("Ray resource", Some("RayService")) => "Ray service",
            _ => word,
        };
        let named = format!("{word} {}", cut(name, MAX_NAME_BYTES));
        if !about.contains(&named) {
            about.push(named);
        }
    }
    about
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod() -> Pod {
        Pod {
            namespace: "shop".into(),
            name: "web-5d9-x".into(),
            uid: "1".into(),
            container: Some("app".into()),
            image: Some("web:latest".into()),
        }
    }

    #[test]
    fn the_runtime_alone_names_container_pod_and_image() {
        let text = describe(&pod(), None);
        assert_eq!(
            text,
            "container app of pod shop/web-5d9-x (image web:latest)"
        );
    }

    #[test]
    fn the_api_server_adds_owner_digest_and_ray() {
        let known = json!({
            "metadata": {
                "labels": { "pod-template-hash": "5d9", "ray.io/cluster": "train" },
                "ownerReferences": [
                    { "kind": "ReplicaSet", "name": "web-5d9", "controller": true },
                ],
            },
            "status": { "containerStatuses": [
                { "name": "other", "imageID": "docker-pullable://other@sha256:00" },
                { "name": "app", "imageID": "docker-pullable://web@sha256:ab" },
            ]},
        });
        assert_eq!(
            describe(&pod(), Some(&known)),
            "container app of pod shop/web-5d9-x (Deployment web, image web@sha256:ab, \
             Ray cluster train)"
        );
    }

    #[test]
    fn the_job_of_a_ray_cluster_is_named() {
        for (labels, expected) in [
            (
                json!({ "ray.io/cluster": "train-x7", "ray.io/originated-from-crd": "RayJob",
                        "ray.io/originated-from-cr-name": "train", "ray.io/job-name": "train" }),
                "Ray cluster train-x7, Ray job train",
            ),
            (json!({ "ray.io/job-name": "train" }), "Ray job train"),
            (
                json!({ "ray.io/originated-from-crd": "RayService",
                        "ray.io/originated-from-cr-name": "chat" }),
                "Ray service chat",
            ),
            (
                json!({ "ray.io/originated-from-cr-name": "x", "ray.io/group": "gpu" }),
                "Ray resource x, Ray group gpu",
            ),
        ] {
            let known = json!({ "metadata": { "labels": labels } });
            assert_eq!(ray(&known).join(", "), expected);
        }
    }

    #[test]
    fn an_owner_that_is_no_deployment_is_named_as_it_is() {
        let known = json!({ "metadata": { "ownerReferences": [
            { "kind": "DaemonSet", "name": "logs" },
        ]}});
        let text = describe(&pod(), Some(&known));
        assert!(
            text.contains("(DaemonSet logs, image web:latest)"),
            "{text}"
        );
    }
}
