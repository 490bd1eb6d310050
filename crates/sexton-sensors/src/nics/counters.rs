//! Which statistics of drivers mean something: data, in `signatures/nic-counters.toml`.

use serde::Deserialize;
use sexton_model::fact::{self, Fact, FactKind};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::wording::Wording;

const FILE: &str = include_str!("../../../../signatures/nic-counters.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    driver: Vec<Driver>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Driver {
    names: Vec<String>,
    /// Where the counters come from, in words.
    source: String,
    counters: Vec<Counter>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counter {
    name: String,
    fact: String,
    side: Option<Side>,
    #[serde(skip)]
    parsed: Option<(Wording, &'static Fact)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    Tx,
    Rx,
}

/// One statistic that is kept: its place in the list, and what it tells of whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) at: usize,
    pub(super) subject: Subject,
    pub(super) fact: &'static Fact,
}

/// All counters that are known.
#[derive(Debug)]
pub(super) struct Counters {
    drivers: Vec<Driver>,
}

impl Counters {
    /// Reads those that sexton knows.
    pub(super) fn load() -> Result<Self, String> {
        Self::read(FILE)
    }

    fn read(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut drivers = file.driver;
        for driver in &mut drivers {
            if driver.source.is_empty() || driver.names.is_empty() {
                return Err("a driver has no name or no source".into());
            }
            for counter in &mut driver.counters {
                counter.prepare()?;
            }
        }
        Ok(Self { drivers })
    }

    /// How many drivers are known.
    pub(super) fn n_drivers(&self) -> usize {
        self.drivers.iter().map(|driver| driver.names.len()).sum()
    }

    /// Whether anything is kept of this driver.
    pub(super) fn knows(&self, driver: &str) -> bool {
        self.of(driver).is_some()
    }

    /// What is kept of a device's statistics.
    pub(super) fn choose(&self, driver: &str, device: &str, names: &[String]) -> Vec<Kept> {
        let Some(driver) = self.of(driver) else {
            return Vec::new();
        };
        let chosen = names.iter().enumerate().filter_map(|(at, name)| {
            let mut found = driver.counters.iter();
            let (subject, fact) = found.find_map(|counter| counter.of(device, name))?;
            Some(Kept { at, subject, fact })
        });
        chosen.collect()
    }

    fn of(&self, driver: &str) -> Option<&Driver> {
        let known = |known: &&Driver| known.names.iter().any(|name| name == driver);
        self.drivers.iter().find(known)
    }
}

impl Counter {
    fn prepare(&mut self) -> Result<(), String> {
        let wording = Wording::parse(&self.name)?;
        let fact = fact::by_name(&self.fact)
            .filter(|fact| fact.kind == FactKind::Counter)
            .ok_or_else(|| format!("{} is no counter", self.fact))?;
        let has_queue = wording.names().any(|name| name == "queue");
        if has_queue != self.side.is_some() || wording.names().count() > 1 {
            return Err(format!("{}: a queue and its side go together", self.name));
        }
        self.parsed = Some((wording, fact));
        Ok(())
    }

    fn of(&self, device: &str, name: &str) -> Option<(Subject, &'static Fact)> {
        let (wording, fact) = self.parsed.as_ref()?;
        let captures = wording.fit(name.as_bytes())?;
        let queue = captures.first().and_then(|(_, n)| str::from_utf8(n).ok());
        let subject = match (queue, self.side) {
            (Some(n), Some(Side::Tx)) => queue_subject(device, &format!("tx-{n}")),
            (Some(n), Some(Side::Rx)) => queue_subject(device, &format!("rx-{n}")),
            _ => Subject::new(SubjectKind::Device, device),
        };
        Some((subject, fact))
    }
}

/// A queue of a device.
pub(super) fn queue_subject(device: &str, queue: &str) -> Subject {
    Subject::new(SubjectKind::Queue, format!("{device}/{queue}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(driver: &str, names: &[&str], expected: &[(usize, &str, &str)]) {
        let counters = Counters::load().expect("they load");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let chosen = counters.choose(driver, "eth0", &names);
        let shown: Vec<(usize, String, &str)> = chosen
            .iter()
            .map(|kept| (kept.at, kept.subject.to_string(), kept.fact.name))
            .collect();
        let expected: Vec<(usize, String, &str)> = expected
            .iter()
            .map(|(at, subject, fact)| (*at, (*subject).to_owned(), *fact))
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn only_what_means_something_is_kept() {
        check(
            "ena",
            &[
                "total_resets",
                "queue_0_tx_bytes",
                "suspected_poll_starvation",
                "queue_12_tx_missed_tx",
                "queue_x_tx_missed_tx",
            ],
            &[
                (0, "device eth0", "nic_resets"),
                (2, "device eth0", "nic_resets_starved"),
                (3, "queue eth0/tx-12", "nic_missed_completions"),
            ],
        );
        check(
            "bnxt_en",
            &["[3]: missed_irqs", "[3]: rx_ucast_packets"],
            &[(0, "queue eth0/rx-3", "nic_missed_interrupts")],
        );
        check("veth", &["total_resets"], &[]);
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let file = |counter: &str| {
            format!("[[driver]]\nnames = [\"x\"]\nsource = \"s\"\ncounters = [{{ {counter} }}]\n")
        };
        let check = |counter: &str, fine: bool| {
            assert_eq!(Counters::read(&file(counter)).is_ok(), fine, "{counter}");
        };
        check("name = \"a\", fact = \"nic_resets\"", true);
        check("name = \"a\", fact = \"nic_rests\"", false);
        check("name = \"a\", fact = \"nic_link_up\"", false);
        check("name = \"a\", fact = \"nic_resets\", colour = 1", false);
        check("name = \"a{queue:int}\", fact = \"nic_resets\"", false);
        check("name = \"a\", fact = \"nic_resets\", side = \"tx\"", false);
    }
}
