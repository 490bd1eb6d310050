//! The agent behind a server: its ring, the incidents it kept, and what it found when.
//!
//! The program that starts the server fills these in; here they are only answered.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

/// The agent behind a server.
pub struct Agent {
    /// The folder of its incidents, each a bundle.
    pub incidents: PathBuf,
    /// How it is. The error is a sentence.
    pub report: Report,
}

/// Says how the agent is.
pub type Report = Box<dyn Fn() -> Result<AgentView, String> + Send + Sync>;

/// The agent: its ring, its incidents, and what it found when. Times are microseconds since
/// the epoch.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[schemars(rename = "Agent")]
pub struct AgentView {
    /// Now, by the node's clock.
    pub now: u64,
    /// When the agent started.
    pub started: u64,
    /// What it keeps.
    pub ring: RingView,
    /// The part of one core that it used in the last minute; null before the first.
    pub cpu_ratio: Option<f64>,
    /// Its resident memory.
    pub memory_bytes: u64,
    /// Incidents that it kept, the latest first.
    pub incidents: Vec<IncidentView>,
    /// What it found: what is open first, and of that the latest.
    pub findings: Vec<LifeView>,
    /// Findings that were left out: the oldest of those that are over.
    pub findings_left_out: usize,
}

/// The ring of an agent.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[schemars(rename = "Ring")]
pub struct RingView {
    /// The earliest that it holds; null while it holds nothing.
    pub from: Option<u64>,
    /// Boots of the node in it.
    pub boots: usize,
    /// Its size.
    pub bytes: u64,
    /// The most it may have.
    pub max_bytes: u64,
    /// What keeps the agent from writing, if anything does.
    pub trouble: Option<String>,
}

/// A part of the ring that is kept whatever the ring drops.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Incident")]
pub struct IncidentView {
    /// Opens it as a source: `/api/v1/sources/{id}`.
    pub id: String,
    /// What `sexton serve` and `sexton diagnose` take.
    pub name: String,
    /// The finding that opened it, `CODE:subject`.
    pub finding: String,
    /// What was wrong, in one line.
    pub title: String,
    /// How bad that was.
    pub severity: String,
    /// Other findings that opened meanwhile.
    pub others: usize,
    /// When it opened.
    pub opened: u64,
    /// Its size.
    pub bytes: u64,
    /// Whether all of it is kept; until then its end is still awaited.
    pub is_whole: bool,
}

impl IncidentView {
    /// The id that an incident of this name has.
    pub fn id_of(name: &str) -> String {
        let plain = name.chars().filter(char::is_ascii_alphanumeric);
        plain.map(|c| c.to_ascii_lowercase()).take(32).collect()
    }
}

/// A finding, from when it opened until it was over.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Life")]
pub struct LifeView {
    /// `CODE:subject`.
    pub finding: String,
    /// What was wrong, in one line.
    pub title: String,
    /// How bad it was at its worst.
    pub worst: String,
    /// When it opened.
    pub opened: u64,
    /// Since when it is over; null while it is open.
    pub over: Option<u64>,
    /// Whether a reboot ended it.
    pub ended_by_reboot: bool,
}

impl Agent {
    /// The name and the bundle of the incident with this id.
    pub(crate) fn incident(&self, id: &str) -> Option<(String, PathBuf)> {
        let entries = std::fs::read_dir(&self.incidents).ok()?.flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let name = names
            .into_iter()
            .find(|name| IncidentView::id_of(name) == id)?;
        let bundle = Path::new(&self.incidents).join(&name);
        Some((name, bundle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incident_is_found_by_its_id_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = "20261118T031200Z-NIC001-2";
        std::fs::create_dir(folder.path().join(name)).expect("made");
        let agent = Agent {
            incidents: folder.path().to_owned(),
            report: Box::new(|| Err("not asked".into())),
        };
        let id = IncidentView::id_of(name);
        assert_eq!(id, "20261118t031200znic0012");
        let found = agent.incident(&id).expect("there");
        assert_eq!(found, (name.to_owned(), folder.path().join(name)));
        assert_eq!(agent.incident("..").map(|found| found.0), None);
        assert_eq!(agent.incident(""), None);
    }
}
