//! A night of random trouble: one to three troubles and up to two innocents, drawn from
//! `lab/troubles` with random parameters and times, that share one watch. The same seed draws the
//! same night.

pub mod random;
pub mod score;
pub mod script;
pub mod trouble;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use random::Random;
use trouble::Trouble;

/// How long before the watch the first trouble may begin, in milliseconds.
pub const LEAD_MS: u64 = 1_500;

/// The latest moment at which a trouble begins, in milliseconds from the lead on: rules ask for
/// 10 s of most troubles, which the shortest watch still has from here on.
const LATEST_MS: u64 = 3_000;

const MOST_TROUBLES: u64 = 3;
const MOST_INNOCENTS: u64 = 2;

/// Names of services that no signature knows.
const NAMES: [&str; 12] = [
    "billing", "catalog", "gateway", "indexer", "ledger", "mailer", "orders", "parcels", "reports",
    "search", "stock", "tickets",
];

/// What happens in one night.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Night {
    /// What it was drawn by.
    pub seed: u64,
    /// What is done, and by whom.
    pub parts: Vec<Part>,
}

/// One trouble or innocent of a night.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The name of its file.
    pub trouble: String,
    /// What it is called here.
    pub unit: String,
    /// What was drawn for it.
    pub values: BTreeMap<String, u64>,
    /// When it begins, from the lead on.
    pub begins_ms: u64,
}

impl Night {
    /// Draws the night of a seed.
    pub fn draw(seed: u64, troubles: &[Trouble]) -> Night {
        let mut random = Random::new(seed);
        let mut night = Night {
            seed,
            parts: Vec::new(),
        };
        let mut taken = BTreeSet::new();
        let (innocents, guilty): (Vec<&Trouble>, Vec<&Trouble>) =
            troubles.iter().partition(|trouble| trouble.is_innocent());
        let n_troubles = random.between(1, MOST_TROUBLES);
        night.add(n_troubles, &guilty, &mut taken, &mut random);
        let is_drawn = |trouble: &&Trouble| night.parts.iter().any(|p| p.trouble == trouble.name);
        for trouble in guilty.iter().copied().filter(is_drawn) {
            taken.extend(trouble.needs.iter().map(String::as_str));
        }
        let n_innocents = random.between(0, MOST_INNOCENTS);
        night.add(n_innocents, &innocents, &mut taken, &mut random);
        night
    }

    /// Adds a number of them, none twice, and none that needs what another one takes.
    fn add<'a>(
        &mut self,
        n: u64,
        from: &[&'a Trouble],
        taken: &mut BTreeSet<&'a str>,
        random: &mut Random,
    ) {
        let mut left: Vec<&Trouble> = from.to_vec();
        for _ in 0..n {
            left.retain(|trouble| {
                !trouble
                    .takes
                    .iter()
                    .any(|what| taken.contains(what.as_str()))
            });
            if left.is_empty() {
                return;
            }
            let trouble = left.swap_remove(random.below(left.len()));
            taken.extend(trouble.takes.iter().map(String::as_str));
            let part = self.part(trouble, random);
            self.parts.push(part);
        }
    }

    fn part(&self, trouble: &Trouble, random: &mut Random) -> Part {
        let unit = loop {
            let name = NAMES[random.below(NAMES.len())];
            let name = format!("{name}{}", random.between(10, 99));
            if !self.parts.iter().any(|part| part.unit == name) {
                break name;
            }
        };
        let values = trouble.draw.iter().map(|(name, [least, most])| {
            let value = random.between(*least, *most);
            (name.clone(), value)
        });
        Part {
            trouble: trouble.name.clone(),
            unit,
            values: values.collect(),
            begins_ms: random.between(0, LATEST_MS),
        }
    }
}

impl Part {
    /// A text of its file, with all that was drawn in its places: `@unit@`, `@pause_ms@`; `@@` is
    /// one at sign.
    pub fn fill(&self, text: &str) -> String {
        let mut text = text.replace("@unit@", &self.unit);
        for (name, value) in &self.values {
            text = text.replace(&format!("@{name}@"), &value.to_string());
        }
        text.replace("@@", "@")
    }
}

impl fmt::Display for Night {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.parts.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{part}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begins = (self.begins_ms as f64 - LEAD_MS as f64) / 1000.0;
        write!(f, "{} ({} at {begins:+.1} s", self.trouble, self.unit)?;
        for (name, value) in &self.values {
            write!(f, ", {name} {value}")?;
        }
        write!(f, ")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn troubles() -> Vec<Trouble> {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/troubles");
        Trouble::all(&folder).expect("troubles")
    }

    #[test]
    fn the_same_seed_draws_the_same_night() {
        let troubles = troubles();
        for seed in 0..50 {
            assert_eq!(Night::draw(seed, &troubles), Night::draw(seed, &troubles));
        }
        assert_ne!(
            Night::draw(1, &troubles).parts,
            Night::draw(2, &troubles).parts
        );
    }

    #[test]
    fn nights_have_one_to_three_troubles_that_do_not_get_in_each_others_way() {
        let troubles = troubles();
        let mut drawn = BTreeSet::new();
        let mut counts = BTreeSet::new();
        for seed in 0..400 {
            let night = Night::draw(seed, &troubles);
            let of = |part: &Part| troubles.iter().find(|one| one.name == part.trouble);
            let parts: Vec<&Trouble> = night.parts.iter().filter_map(of).collect();
            counts.insert(parts.iter().filter(|one| !one.is_innocent()).count());
            let mut taken = BTreeSet::new();
            for what in parts.iter().flat_map(|one| &one.takes) {
                assert!(taken.insert(what), "{night}: two take {what}");
            }
            let names: BTreeSet<&String> = night.parts.iter().map(|part| &part.unit).collect();
            assert_eq!(names.len(), night.parts.len(), "{night}");
            for (part, trouble) in night.parts.iter().zip(&parts) {
                for (name, value) in &part.values {
                    let [least, most] = trouble.draw[name];
                    assert!((least..=most).contains(value), "{night}");
                }
                assert!(part.begins_ms <= LATEST_MS, "{night}");
                drawn.insert(&trouble.name);
            }
        }
        assert_eq!(counts, BTreeSet::from([1, 2, 3]));
        assert_eq!(drawn.len(), troubles.len(), "every file is drawn sometimes");
    }

    #[test]
    fn what_was_drawn_is_put_in_its_places() {
        let part = Part {
            trouble: "a".into(),
            unit: "ledger12".into(),
            values: BTreeMap::from([("pause_ms".into(), 250)]),
            begins_ms: 500,
        };
        let filled = part.fill("start @unit@, RestartSec=@pause_ms@ms, @unit@@@1");
        assert_eq!(filled, "start ledger12, RestartSec=250ms, ledger12@1");
        assert_eq!(part.to_string(), "a (ledger12 at -1.0 s, pause_ms 250)");
    }
}
