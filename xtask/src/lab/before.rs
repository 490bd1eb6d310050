//! What docs/matrix.md says already: a cell that was played elsewhere keeps what it has.

use sexton_lab::scenario::Scenario;

use super::play::fingerprint;

/// The page as it was.
pub(super) struct Before(pub(super) String);

impl Before {
    /// What it says of a cell, unless that it was not played.
    pub(super) fn cell(&self, scenario: &str, place: &str) -> Option<&str> {
        let places = self.row("scenario")?;
        let at = places.iter().position(|name| *name == shown(place))?;
        let cell = *self.row(&format!("`{scenario}`"))?.get(at)?;
        (cell != super::page::NOT_PLAYED).then_some(cell)
    }

    /// Whether the page was written with this very text of the scenario.
    pub(super) fn asked(&self, scenario: &Scenario) -> bool {
        self.0.lines().any(|line| line == asked(scenario))
    }

    /// Why a cell is red.
    pub(super) fn why(&self, scenario: &str, place: &str) -> Option<&str> {
        let begin = format!("- `{scenario}` on {}: ", shown(place));
        self.0.lines().find_map(|line| line.strip_prefix(&begin))
    }

    /// The kernel of a machine, and when it was played on.
    pub(super) fn machine(&self, place: &str) -> Option<(&str, &str)> {
        let begin = format!("| {}, ", shown(place));
        let line = self.0.lines().find(|line| line.starts_with(&begin))?;
        match cells(line)[..] {
            [_, kernel, day] if !kernel.is_empty() => Some((kernel, day)),
            _ => None,
        }
    }

    /// What it says of nights of random trouble.
    pub(super) fn nights(&self) -> Option<&str> {
        let (_, after) = self.0.split_once(NIGHTS_BEGIN)?;
        after.split_once(NIGHTS_END).map(|(nights, _)| nights)
    }

    /// The page with other nights: in the place of those that it has, or at its end.
    pub(super) fn with_nights(&self, nights: &str) -> String {
        match self.nights() {
            Some(before) => self.0.replace(
                &format!("{NIGHTS_BEGIN}{before}{NIGHTS_END}"),
                &section(nights),
            ),
            None => format!("{}\n\n{}\n", self.0.trim_end(), section(nights)),
        }
    }

    /// The cells of the row that begins with this one, without it.
    fn row(&self, first: &str) -> Option<Vec<&str>> {
        let begin = format!("| {first} |");
        let line = self.0.lines().find(|line| line.starts_with(&begin))?;
        Some(cells(line).split_off(1))
    }
}

const NIGHTS_BEGIN: &str = "<!-- nights -->";
const NIGHTS_END: &str = "<!-- /nights -->";

/// What the page says of nights, between marks that no reader sees.
pub(super) fn section(nights: &str) -> String {
    format!("{NIGHTS_BEGIN}{nights}{NIGHTS_END}")
}

/// The line of the page, which no reader sees, that tells which text of a scenario it is about.
pub(super) fn asked(scenario: &Scenario) -> String {
    let text = fingerprint(scenario.text.as_bytes());
    format!("<!-- {} {text:016x} -->", scenario.name)
}

/// A machine as the page names it.
pub(super) fn shown(place: &str) -> String {
    place.replace('-', " ")
}

fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().trim_matches('|');
    inner.split('|').map(str::trim).collect()
}
