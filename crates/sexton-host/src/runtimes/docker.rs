//! Docker: `containers/<id>/config.v2.json` below its data root.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Image, RuntimeState, bare};
use crate::Host;

const DATA_ROOT: &str = "/var/lib/docker";
const CONFIG: &str = "/etc/docker/daemon.json";

#[derive(Deserialize)]
struct Daemon {
    #[serde(rename = "data-root")]
    data_root: Option<PathBuf>,
    /// What the key was called before Docker 17.05.
    graph: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Container {
    #[serde(rename = "Image", default)]
    image_id: String,
    #[serde(rename = "Config")]
    config: Config,
}

#[derive(Deserialize)]
struct Config {
    #[serde(rename = "Image")]
    image: String,
}

pub(super) fn read(host: &Host, state: &mut RuntimeState) {
    let configured = configured_root(host, state);
    for root in state.places(&[DATA_ROOT], CONFIG, configured) {
        let directories = state.directories(host, &root);
        if directories.iter().any(|name| name == "containers") {
            read_root(host, &root, state);
        }
        // With `userns-remap` everything is one level down.
        for name in directories.iter().filter(|name| is_remapped(name)) {
            read_root(host, &root.join(name), state);
        }
    }
}

fn configured_root(host: &Host, state: &mut RuntimeState) -> Option<PathBuf> {
    let path = Path::new(CONFIG);
    // The daemon takes a blank file for `{}`.
    let is_blank = |content: Vec<u8>| content.trim_ascii().is_empty();
    if host.read(path).is_ok_and(is_blank) {
        return None;
    }
    let daemon: Daemon = state.json(host, path)?;
    daemon.data_root.or(daemon.graph)
}

/// `<uid>.<gid>` of the user that root in the containers is mapped to.
fn is_remapped(name: &str) -> bool {
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    name.split_once('.')
        .is_some_and(|(uid, gid)| is_number(uid) && is_number(gid))
}

fn read_root(host: &Host, root: &Path, state: &mut RuntimeState) {
    let folder = root.join("containers");
    let mut images = Vec::new();
    for id in state.directories(host, &folder) {
        if !is_id(&id) {
            continue;
        }
        let file = folder.join(&id).join("config.v2.json");
        if let Some(container) = state.json::<Container>(host, &file) {
            let image = Image {
                asked: container.config.image,
                id: container.image_id,
            };
            images.push((id, image));
        }
    }
    // The kubelet asks by id, people seldom do.
    let names = if images.iter().any(|(_, image)| image.is_asked_by_id()) {
        names(host, root, state)
    } else {
        HashMap::new()
    };
    for (id, image) in images {
        state
            .images
            .extend(image.shown(&names).map(|image| (id, image)));
    }
    state.folders.push(folder);
}

fn is_id(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The names that images have now, by their ids: tags rather than digests.
fn names(host: &Host, root: &Path, state: &mut RuntimeState) -> HashMap<String, String> {
    #[derive(Deserialize)]
    struct Repositories {
        #[serde(rename = "Repositories", default)]
        repositories: BTreeMap<String, BTreeMap<String, String>>,
    }
    let mut names = HashMap::new();
    let folder = root.join("image");
    for driver in state.directories(host, &folder) {
        let file = folder.join(driver).join("repositories.json");
        let Some(known) = state.json::<Repositories>(host, &file) else {
            continue;
        };
        let all = known.repositories.into_values().flatten();
        let (digests, tags): (Vec<_>, Vec<_>) = all.partition(|(name, _)| name.contains('@'));
        for (name, id) in tags.into_iter().chain(digests) {
            names.entry(bare(&id).to_owned()).or_insert(name);
        }
    }
    names
}
