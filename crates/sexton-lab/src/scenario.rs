//! A scenario: what is done to a node, and what sexton must say of it. One file each.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::files;

/// What is played, and the truth about it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The name of its file.
    #[serde(skip)]
    pub name: String,
    /// All of the file.
    #[serde(skip)]
    pub text: String,
    /// One line for lists.
    pub title: String,
    /// What is so, whatever anybody says.
    pub truth: Vec<String>,
    /// What runs containers, if anything.
    pub engine: Option<Engine>,
    /// Whether a kubelet, an API server and its store, etcd, lie with the job.
    #[serde(default)]
    pub kubernetes: bool,
    /// Units that come with the image, as a package would bring them.
    #[serde(default)]
    pub units: BTreeMap<String, String>,
    /// Shell that makes the trouble, and is over when enough of it is there.
    pub setup: String,
    /// Shell that runs beside the watch, and must be over before its end.
    #[serde(default)]
    pub meanwhile: String,
    /// Shell that must hold after the watch: proof that what was meant to happen did.
    #[serde(default = "always")]
    pub happened: String,
    /// Shell that ends all that `setup` began.
    pub end: String,
    /// How long sexton watches.
    #[serde(default = "watch_seconds")]
    pub watch_seconds: u32,
    /// Not for every test run: it takes minutes, or is much like another one.
    #[serde(default)]
    pub slow: bool,
    /// What must be said of it.
    pub expect: Expect,
    /// What must be said where page cache holds no dying cgroup; the same if absent.
    pub control: Option<Expect>,
    /// What `fix` must do, and must not.
    pub fix: Fix,
}

fn watch_seconds() -> u32 {
    12
}

fn always() -> String {
    "true".into()
}

/// The last lives of a unit end while it is stopped, and the kernel lets go in its own time.
fn few() -> u64 {
    8
}

/// What runs containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Docker, with the containerd below it.
    Docker,
    /// containerd alone.
    Containerd,
}

/// What a judgement must say. Ids are `CODE:subject`, `*` stands for any text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// One of these states.
    pub state: Vec<String>,
    /// What all began with; nothing, if empty.
    #[serde(default)]
    pub root: String,
    /// The gravest chain holds these in this order.
    #[serde(default)]
    pub chain: Vec<String>,
    /// Further chains that must be there: what each begins with.
    #[serde(default)]
    pub roots: Vec<String>,
    /// What may be said beside that.
    #[serde(default)]
    pub also: Vec<String>,
}

/// What `sexton fix --apply` is asked, and what it must leave.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fix {
    /// Its arguments, beside `--apply --yes --json`; `verdict.json` is the judgement.
    pub args: String,
    /// Units whose settings it changes, or that it stops; all others must stay as they were.
    /// `*` stands for any text.
    #[serde(default)]
    pub touches: Vec<String>,
    /// How many dying cgroups of what it aims at may be left.
    #[serde(default = "few")]
    pub left: u64,
    /// The same without BPF, where it aims at parents, and leaves those with live neighbours.
    pub left_without_bpf: Option<u64>,
    /// Shell that must hold afterwards.
    #[serde(default = "always")]
    pub holds: String,
    /// Judge again: the root must not be said any more.
    #[serde(default)]
    pub verify: bool,
    /// Shell that must hold when it was taken back; it is not taken back if empty.
    #[serde(default)]
    pub undone: String,
}

impl Scenario {
    /// Reads one file.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut scenario: Self =
            toml::from_str(&text).with_context(|| format!("{} is no scenario", path.display()))?;
        scenario.name = files::stem(path);
        scenario.text = text;
        Ok(scenario)
    }

    /// All in a folder, by name.
    pub fn all(folder: &Path) -> Result<Vec<Self>> {
        let paths = files::toml(folder)?;
        paths.iter().map(|path| Self::read(path)).collect()
    }

    /// What must be said on a kernel whose page cache holds dying cgroups, or does not.
    pub fn expected(&self, cache_holds: bool) -> &Expect {
        match &self.control {
            Some(control) if !cache_holds => control,
            _ => &self.expect,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_of_the_lab_can_be_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/scenarios");
        for scenario in Scenario::all(&folder).expect("scenarios") {
            let states = ["cause-found", "symptoms-only", "healthy", "blind"];
            for expect in [Some(&scenario.expect), scenario.control.as_ref()] {
                for state in expect.into_iter().flat_map(|expect| &expect.state) {
                    assert!(states.contains(&state.as_str()), "{}", scenario.name);
                }
            }
            assert!(!scenario.truth.is_empty(), "{}", scenario.name);
        }
    }

    #[test]
    fn what_a_scenario_does_not_know_is_an_error() {
        let error = toml::from_str::<Scenario>("title = 'a'\ncolour = 'red'\n");
        assert!(
            error
                .expect_err("no such key")
                .to_string()
                .contains("colour")
        );
    }
}
