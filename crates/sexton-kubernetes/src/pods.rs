//! What the API server knows of a pod beyond its container runtime: owner, digest, Ray labels.

use serde_json::Value;

use crate::text::cut;
use crate::verdict::Pod;

/// Labels by which KubeRay says what a pod is part of.
const RAY: [(&str, &str); 3] = [
    ("ray.io/cluster", "Ray cluster"),
    ("ray.io/originated-from-cr-name", "Ray resource"),
    ("ray.io/group", "Ray group"),
];

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
    let named = RAY.iter().filter_map(|(label, word)| {
        let name = labels[label].as_str().filter(|name| !name.is_empty())?;
        Some(format!("{word} {}", cut(name, MAX_NAME_BYTES)))
    });
    named.collect()
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
