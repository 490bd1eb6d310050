//! What a unit is set to do: its file and all its drop-ins, in the order in which they count.

use std::sync::Arc;

use crate::unit_file::file::{self, Assignment};

/// All assignments of a unit, file by file. Instances of a template share its files, however
/// many there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(Vec<Arc<[Assignment]>>);

impl Settings {
    /// Of one text.
    pub fn parse(text: &str) -> Self {
        Self(vec![file::parse(text).into()])
    }

    /// What a drop-in adds counts after what was there.
    pub fn add(&mut self, text: &str) {
        self.0.push(file::parse(text).into());
    }

    /// The same, of a file that was read before.
    pub(crate) fn add_file(&mut self, file: Arc<[Assignment]>) {
        self.0.push(file);
    }

    /// Whether no file says anything.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = &Assignment> {
        self.0.iter().flat_map(|file| file.iter())
    }

    /// The last value of a key that holds one.
    pub fn last(&self, section: &str, key: &str) -> Option<&str> {
        let found = |a: &&Assignment| a.section == section && a.key == key;
        let last = self.all().rfind(found)?;
        (!last.value.is_empty()).then_some(last.value.as_str())
    }

    /// The last value of a key that takes one of these words; systemd passes over all others.
    pub fn last_word(&self, section: &str, key: &str, words: &[&str]) -> Option<&str> {
        let found = |a: &&Assignment| {
            a.section == section && a.key == key && words.contains(&a.value.as_str())
        };
        let last = self.all().rfind(found)?;
        Some(last.value.as_str())
    }

    /// The values of a key that holds a list of lines; an empty one begins it anew.
    pub fn lines(&self, section: &str, key: &str) -> Vec<&str> {
        let mut lines = Vec::new();
        for assignment in self.all() {
            if assignment.section == section && assignment.key == key {
                if assignment.value.is_empty() {
                    lines.clear();
                } else {
                    lines.push(assignment.value.as_str());
                }
            }
        }
        lines
    }

    /// The words of all these lines.
    pub fn words(&self, section: &str, key: &str) -> Vec<String> {
        self.lines(section, key)
            .into_iter()
            .flat_map(file::words)
            .collect()
    }

    /// A yes or no, as systemd reads it.
    pub fn is_true(&self, section: &str, key: &str) -> bool {
        let value = self.last(section, key).unwrap_or_default();
        ["1", "yes", "y", "true", "t", "on"]
            .iter()
            .any(|yes| value.eq_ignore_ascii_case(yes))
    }

    /// Every assignment of a section whose key begins so.
    pub fn starting_with<'a>(
        &'a self,
        section: &'a str,
        start: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let wanted = move |a: &&Assignment| a.section == section && a.key.starts_with(start);
        self.all()
            .filter(wanted)
            .map(|a| (a.key.as_str(), a.value.as_str()))
    }
}
