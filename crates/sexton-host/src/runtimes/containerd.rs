//! containerd: `<namespace>/<id>/config.json`, the bundle of a running task. Its CRI
//! plugin writes the image's name there as an annotation; pause containers have
//! none, and a bundle is gone as soon as its task is.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::RuntimeState;
use crate::Host;

/// Its own, and that of k3s and RKE2, which generate a configuration that says so.
const STATES: [&str; 2] = ["/run/containerd", "/run/k3s/containerd"];
const CONFIG: &str = "/etc/containerd/config.toml";
const TASKS: &str = "io.containerd.runtime.v2.task";

/// The namespace of Docker, which writes no annotations and has files of its own.
const OF_DOCKER: &str = "moby";

#[derive(Deserialize)]
struct Config {
    state: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Bundle {
    annotations: Option<Annotations>,
}

#[derive(Deserialize)]
struct Annotations {
    #[serde(rename = "io.kubernetes.cri.image-name")]
    image_name: Option<String>,
}

pub(super) fn read(host: &Host, state: &mut RuntimeState) {
    let config: Option<Config> = state.toml(host, Path::new(CONFIG));
    let configured = config.and_then(|config| config.state);
    for place in state.places(&STATES, CONFIG, configured) {
        let tasks = place.join(TASKS);
        let mut namespaces = state.directories(host, &tasks);
        namespaces.retain(|namespace| namespace != OF_DOCKER);
        if !namespaces.is_empty() {
            for namespace in namespaces {
                read_namespace(host, &tasks.join(namespace), state);
            }
            state.folders.push(tasks);
        }
    }
}

fn read_namespace(host: &Host, namespace: &Path, state: &mut RuntimeState) {
    for id in state.directories(host, namespace) {
        if !is_identifier(&id) {
            continue;
        }
        let file = namespace.join(&id).join("config.json");
        let bundle: Option<Bundle> = state.json(host, &file);
        let annotations = bundle.and_then(|bundle| bundle.annotations);
        let image = annotations.and_then(|annotations| annotations.image_name);
        let image = image.filter(|image| !image.is_empty());
        state.images.extend(image.map(|image| (id, image)));
    }
}

/// What containerd takes for an id; the CRI plugin chooses 64 hexadecimal digits.
fn is_identifier(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
