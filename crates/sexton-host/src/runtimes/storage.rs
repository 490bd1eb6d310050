//! Podman and CRI-O share a store. Each driver's folder lists its containers, whose
//! metadata is JSON in a string.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::{Image, RuntimeState, malformed};
use crate::Host;

const GRAPH_ROOT: &str = "/var/lib/containers/storage";
const RUN_ROOT: &str = "/run/containers/storage";

/// The first that is there counts, and counts alone.
const CONFIGS: [&str; 2] = [
    "/etc/containers/storage.conf",
    "/usr/share/containers/storage.conf",
];

/// Podman 4.3 has all containers in the first file. Podman 5.4 has those that need
/// not outlive a reboot in the second, which are the ones with `--rm`; CRI-O makes
/// all of its containers such.
const LISTS: [&str; 2] = ["containers.json", "volatile-containers.json"];

#[derive(Deserialize, Default)]
struct Config {
    #[serde(default)]
    storage: Places,
}

#[derive(Deserialize, Default)]
struct Places {
    graphroot: Option<PathBuf>,
    runroot: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Container {
    id: String,
    /// The id of its image, empty for one that was made from a directory.
    #[serde(default)]
    image: String,
    #[serde(default)]
    metadata: String,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(rename = "image-name", default)]
    image_name: String,
}

pub(super) fn read(host: &Host, state: &mut RuntimeState) {
    let (file, places) = configured(host, state);
    let graph_roots = state.places(&[GRAPH_ROOT], file, places.graphroot);
    // A store that is told to be transient keeps its second list here.
    let run_roots = state.places(&[RUN_ROOT], file, places.runroot);
    for root in graph_roots.iter().chain(&run_roots) {
        for name in state.directories(host, root) {
            if let Some(driver) = name.strip_suffix("-containers") {
                let names = NamesFile(root.join(format!("{driver}-images/images.json")));
                read_driver(host, &root.join(&name), &names, state);
            }
        }
    }
}

fn configured(host: &Host, state: &mut RuntimeState) -> (&'static str, Places) {
    let is_there = |file: &&str| !host.read(file).is_err_and(|error| error.is_absent());
    let Some(file) = CONFIGS.into_iter().find(is_there) else {
        return (CONFIGS[0], Places::default());
    };
    let config: Option<Config> = state.toml(host, Path::new(file));
    (file, config.unwrap_or_default().storage)
}

fn read_driver(host: &Host, folder: &Path, names: &NamesFile, state: &mut RuntimeState) {
    let mut images = Vec::new();
    for list in LISTS {
        let file = folder.join(list);
        let Some(entries) = state.json::<Vec<Value>>(host, &file) else {
            continue;
        };
        for entry in entries {
            let container = Container::deserialize(entry).map_err(|error| malformed(&file, &error));
            images.extend(state.value(container).map(image_of));
        }
    }
    let names = if images.iter().any(|(_, image)| image.is_asked_by_id()) {
        names.read(host, state)
    } else {
        HashMap::new()
    };
    for (id, image) in images {
        state
            .images
            .extend(image.shown(&names).map(|image| (id, image)));
    }
    state.folders.push(folder.to_owned());
}

fn image_of(container: Container) -> (String, Image) {
    // Whoever uses the store may write any metadata, or none.
    let metadata: Metadata = serde_json::from_str(&container.metadata).unwrap_or_default();
    let image = Image {
        asked: metadata.image_name,
        id: container.image,
    };
    (container.id, image)
}

/// The list of images of the same driver.
struct NamesFile(PathBuf);

impl NamesFile {
    /// The names that images have now, by their ids.
    fn read(&self, host: &Host, state: &mut RuntimeState) -> HashMap<String, String> {
        #[derive(Deserialize)]
        struct Named {
            id: String,
            names: Option<Vec<String>>,
        }
        let images: Vec<Named> = state.json(host, &self.0).unwrap_or_default();
        let named = images.into_iter().filter_map(|image| {
            let name = image.names?.into_iter().next()?;
            Some((image.id, name))
        });
        named.collect()
    }
}
