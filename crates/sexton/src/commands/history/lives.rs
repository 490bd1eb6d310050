//! The lives of findings that the agent's log tells of a time.

use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use anyhow::Result;
use sexton_agent::lives_of;
use sexton_analysis::live::Life;
use sexton_model::moment::Moment;
use sexton_model::wall::WallClock;
use sexton_store::Ring;

use super::time::shown;

/// A life in times of day.
#[derive(Debug)]
pub struct Lived {
    /// The life.
    pub life: Life,
    /// The bundle that holds what it was found in.
    pub bundle: PathBuf,
    /// When it opened, in nanoseconds since 1970.
    pub opened_ns: u64,
    /// When it was last seen.
    pub last_seen_ns: u64,
    /// Since when it is over; none while it is open.
    pub over_ns: Option<u64>,
    /// Whether a reboot ended it.
    pub is_ended_by_reboot: bool,
}

/// All that overlap a time, by when they opened.
pub fn lived_between(ring: &Ring, asked: &RangeInclusive<u64>) -> Result<Vec<Lived>> {
    let mut found = Vec::new();
    let boots = ring.boots()?;
    let last_boot = boots.last().map(|boot| boot.id.clone());
    for boot in boots {
        // A boot that was just begun has no log yet.
        let Ok((lives, records)) = lives_of(&boot.findings) else {
            continue;
        };
        let clock = WallClock::of(&records);
        let wall = |moment: Moment| clock.ns(moment).and_then(|ns| u64::try_from(ns).ok());
        let is_earlier = Some(&boot.id) != last_boot.as_ref();
        for lived in lives {
            let life = lived.life;
            let (Some(opened_ns), Some(last_seen_ns)) = (wall(life.opened), wall(life.last_seen))
            else {
                continue;
            };
            let is_ended_by_reboot = is_earlier && life.resolved.is_none();
            let over_ns = match is_ended_by_reboot {
                true => Some(last_seen_ns),
                false => life.resolved.and_then(wall),
            };
            let until = over_ns.unwrap_or(u64::MAX);
            if opened_ns <= *asked.end() && until >= *asked.start() {
                found.push(Lived {
                    life,
                    bundle: boot.records.clone(),
                    opened_ns,
                    last_seen_ns,
                    over_ns,
                    is_ended_by_reboot,
                });
            }
        }
    }
    found.sort_by_key(|lived| (lived.opened_ns, lived.life.finding.id()));
    Ok(found)
}

impl Lived {
    /// As an entry of `history`.
    pub fn json(&self) -> serde_json::Value {
        let finding = &self.life.finding;
        serde_json::json!({
            "id": finding.id().to_string(),
            "code": finding.code,
            "severity": finding.severity.name(),
            "worst": self.life.worst.name(),
            "title": finding.title,
            "opened": shown(self.opened_ns),
            "over": self.over_ns.map(shown),
            "ended_by_reboot": self.is_ended_by_reboot,
        })
    }

    fn line(&self) -> String {
        let finding = &self.life.finding;
        let end = match (self.over_ns, self.is_ended_by_reboot) {
            (Some(over), true) => format!("until the reboot, last seen {}", shown(over)),
            (Some(over), false) => format!("over since {}", shown(over)),
            (None, _) => "still open".to_owned(),
        };
        format!(
            "  {:<8} {:<8} opened {}, {end}\n           {}",
            finding.code,
            self.life.worst.name(),
            shown(self.opened_ns),
            finding.title
        )
    }
}

/// Writes the lives for people, before the verdict.
pub fn text(out: &mut dyn Write, lives: &[Lived], asked: &RangeInclusive<u64>) -> io::Result<()> {
    let (from, to) = (shown(*asked.start()), shown(*asked.end()));
    writeln!(out, "From {from} to {to} the agent found:")?;
    if lives.is_empty() {
        writeln!(out, "  nothing")?;
    }
    for lived in lives {
        writeln!(out, "{}", lived.line())?;
    }
    let is_over = lives.iter().all(|lived| lived.over_ns.is_some());
    let all = match (lives.is_empty(), is_over) {
        (true, _) => "The end of that time, judged again:",
        (false, true) => "All of it is over. The gravest, judged again:",
        (false, false) => "The gravest, judged again:",
    };
    writeln!(out, "{all}\n")
}
