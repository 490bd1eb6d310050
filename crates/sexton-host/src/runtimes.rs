//! Which image a container was made from, as far as its runtime's own files on
//! disk still know. No daemon is asked: a stuck one costs nothing.
//!
//! Source: one file here for each way of keeping state, proven against the captures
//! `runtimes-*` in `fixtures/`.
//! Blind to: places given on a runtime's command line, stores of users without
//! root, and what only a database knows: containerd writes no image beside a
//! container that `ctr` or `nerdctl` made.

mod containerd;
mod docker;
mod storage;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{Host, HostError};

/// One way of keeping state: who does, and how it is read.
type Keeper = (&'static str, fn(&Host, &mut RuntimeState));

const KEEPERS: [Keeper; 3] = [
    ("docker", docker::read),
    ("containerd", containerd::read),
    // They share a library, its folder and its files.
    ("podman/cri-o", storage::read),
];

/// What one runtime's files told.
#[derive(Debug)]
pub struct RuntimeState {
    /// The runtime.
    pub runtime: &'static str,
    /// The folders in which its files are.
    pub folders: Vec<PathBuf>,
    /// Container id to image: the name that was asked for; where that was an id,
    /// a name that the image has now, or else the id.
    pub images: HashMap<String, String>,
    /// What could not be read. Containers that only it tells of are missing above.
    pub unread: Vec<HostError>,
}

/// Reads the state of every runtime that has any on this node, or that has a
/// configuration which cannot be read.
pub fn states(host: &Host) -> Vec<RuntimeState> {
    let read = KEEPERS.iter().map(|(runtime, read)| {
        let mut state = RuntimeState {
            runtime,
            folders: Vec::new(),
            images: HashMap::new(),
            unread: Vec::new(),
        };
        read(host, &mut state);
        state
    });
    read.filter(|state| !state.folders.is_empty() || !state.unread.is_empty())
        .collect()
}

impl RuntimeState {
    /// Notes an error, unless it only says that there is no such file: then there
    /// is no such runtime, or a container was removed since its folder was listed.
    fn value<T>(&mut self, result: Result<T, HostError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                if !error.is_absent() {
                    self.unread.push(error);
                }
                None
            }
        }
    }

    /// The names of the directories in a folder, those that are text. No runtime
    /// gives a container another name.
    fn directories(&mut self, host: &Host, folder: &Path) -> Vec<String> {
        let entries = self.value(host.list(folder)).unwrap_or_default();
        let directories = entries.into_iter().filter(|entry| entry.is_dir);
        directories
            .filter_map(|entry| entry.name.into_string().ok())
            .collect()
    }

    /// What a JSON file says.
    fn json<T: for<'de> Deserialize<'de>>(&mut self, host: &Host, path: &Path) -> Option<T> {
        let content = self.value(host.read(path))?;
        let parsed = serde_json::from_slice(&content);
        self.value(parsed.map_err(|error| malformed(path, &error)))
    }

    /// What a TOML file says.
    fn toml<T: for<'de> Deserialize<'de>>(&mut self, host: &Host, path: &Path) -> Option<T> {
        let content = self.value(host.read_text(path))?;
        let parsed = toml::from_str(&content);
        self.value(parsed.map_err(|error: toml::de::Error| malformed(path, &error.message())))
    }

    /// The default places and the configured one.
    ///
    /// The defaults are read even then: the configuration may be newer than the
    /// containers, and as ids are unique, knowing too many does no harm.
    fn places(
        &mut self,
        defaults: &[&str],
        file: &str,
        configured: Option<PathBuf>,
    ) -> Vec<PathBuf> {
        let mut places: Vec<PathBuf> = defaults.iter().map(PathBuf::from).collect();
        let configured = configured.filter(|place| !places.contains(place));
        match configured {
            Some(place) if place.is_absolute() => places.push(place),
            Some(place) => {
                let what = format!("{} is no absolute path", place.display());
                self.unread.push(malformed(Path::new(file), &what));
            }
            None => {}
        }
        places
    }
}

fn malformed(path: &Path, what: &dyn std::fmt::Display) -> HostError {
    HostError::Malformed {
        path: path.to_owned(),
        what: what.to_string(),
    }
}

/// An image as a container's state names it.
struct Image {
    /// What was asked for: a name, a digest, or the start of an id.
    asked: String,
    /// The id of what was found then.
    id: String,
}

impl Image {
    fn is_asked_by_id(&self) -> bool {
        !self.id.is_empty() && bare(&self.id).starts_with(bare(&self.asked))
    }

    /// What to show, given the names that images have now, by their ids.
    fn shown(self, names: &HashMap<String, String>) -> Option<String> {
        let by_id = self.is_asked_by_id();
        let name = names.get(bare(&self.id)).filter(|_| by_id).cloned();
        let image = name.unwrap_or(if self.asked.is_empty() {
            self.id
        } else {
            self.asked
        });
        (!image.is_empty()).then_some(image)
    }
}

/// An id without the name of its hash.
fn bare(id: &str) -> &str {
    id.strip_prefix("sha256:").unwrap_or(id)
}
