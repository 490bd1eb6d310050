//! One network device: its link, its queues, its statistics.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use sexton_host::ethtool::Ethtool;
use sexton_host::{Host, HostError};
use sexton_model::fact::nic::{NicIdentity, NicLink};
use sexton_model::fact::{Fact, nic as fact};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;

use super::counters::{Counters, Kept, queue_subject};
use super::files;
use super::teller::Teller;

/// A network device.
#[derive(Debug)]
pub(super) struct Device {
    /// Its name, escaped.
    pub(super) name: String,
    pub(super) subject: Subject,
    pub(super) folder: PathBuf,
    /// Its number. Another device of the same name has another one.
    pub(super) ifindex: u64,
    link: Option<Link>,
    driver: Option<String>,
    kept: Vec<Kept>,
    n_names: usize,
}

#[derive(Debug)]
struct Link {
    operstate: String,
    carrier_changes: u64,
    seen: Moment,
}

impl Device {
    pub(super) fn new(name: &OsStr, folder: PathBuf, ifindex: u64) -> Self {
        let name = escape(name.as_encoded_bytes());
        Self {
            subject: Subject::new(SubjectKind::Device, name.as_str()),
            name,
            folder,
            ifindex,
            link: None,
            driver: None,
            kept: Vec::new(),
            n_names: 0,
        }
    }

    /// Looks at its link. A change lies between this look and the one before, but the
    /// kernel may take a second longer to say that a link is up.
    pub(super) fn look_at_link(&mut self, host: &Host, teller: &mut Teller, out: &mut Sink) {
        let read = || -> Result<Link, HostError> {
            Ok(Link {
                operstate: files::word(host, &self.folder.join("operstate"))?,
                carrier_changes: files::number(host, &self.folder.join("carrier_changes"))?,
                seen: out.now(),
            })
        };
        let link = match read() {
            Ok(link) => link,
            Err(error) => return teller.failed(out, &self.subject, &error),
        };
        let up = f64::from(u8::from(link.operstate == "up"));
        teller.sample(out, &self.subject, &fact::NIC_LINK_UP, up);
        let changes = link.carrier_changes as f64;
        teller.sample(out, &self.subject, &fact::NIC_CARRIER_CHANGES, changes);
        if let Some(before) = &self.link {
            let n_changes = link.carrier_changes.saturating_sub(before.carrier_changes);
            if n_changes > 0 || link.operstate != before.operstate {
                let within = link.seen.since(before.seen);
                let change = NicLink {
                    operstate: Some(link.operstate.clone()),
                    before: Some(before.operstate.clone()),
                    carrier_changes: Some(n_changes),
                    within_ns: u64::try_from(within.as_nanos()).ok(),
                };
                out.event(out.now(), &self.subject, &fact::NIC_LINK, change);
            }
        }
        self.link = Some(link);
    }

    /// Looks at every queue.
    pub(super) fn look_at_queues(&self, host: &Host, teller: &mut Teller, out: &mut Sink) {
        let queues = match host.list(self.folder.join("queues")) {
            Ok(queues) => queues,
            Err(error) => return teller.failed(out, &self.subject, &error),
        };
        let (mut n_tx, mut n_rx) = (0, 0);
        for queue in queues {
            let name = escape(queue.name.as_encoded_bytes());
            if name.starts_with("rx-") {
                n_rx += 1;
            } else if name.starts_with("tx-") {
                n_tx += 1;
                self.look_at_tx_queue(host, &name, teller, out);
            }
        }
        let counts = [(&fact::NIC_TX_QUEUES, n_tx), (&fact::NIC_RX_QUEUES, n_rx)];
        for (fact, n) in counts {
            teller.sample(out, &self.subject, fact, f64::from(n));
        }
    }

    fn look_at_tx_queue(&self, host: &Host, name: &str, teller: &mut Teller, out: &mut Sink) {
        let subject = queue_subject(&self.name, name);
        let folder = self.folder.join("queues").join(name);
        match files::number(host, &folder.join("tx_timeout")) {
            Ok(n) => teller.sample(out, &subject, &fact::NIC_TX_TIMEOUTS, n as f64),
            Err(error) => return teller.failed(out, &subject, &error),
        }
        for (file, fact, scale) in LIMITS {
            let path = folder.join("byte_queue_limits").join(file);
            let value = files::number(host, &path).map(|n| n as f64 * scale);
            teller.optional(out, &subject, fact, value);
        }
    }

    /// Asks who drives it and which statistics there are.
    pub(super) fn ask_driver(
        &mut self,
        ethtool: &mut Ethtool,
        counters: &Counters,
        teller: &mut Teller,
        out: &mut Sink,
    ) {
        let driver = match ethtool.driver(&self.name) {
            Ok(driver) => driver,
            Err(error) => return teller.failed(out, &self.subject, &error),
        };
        let identity = NicIdentity {
            driver: Some(driver.name.clone()),
            version: Some(driver.version),
            firmware: Some(driver.firmware),
            bus: Some(driver.bus),
            ifindex: u32::try_from(self.ifindex).ok(),
        };
        teller.state(out, &self.subject, &fact::NIC_IDENTITY, "", identity);
        self.kept.clear();
        if counters.knows(&driver.name) {
            match ethtool.stat_names(&self.name, driver.n_stats) {
                Ok(names) => {
                    self.n_names = names.len();
                    self.kept = counters.choose(&driver.name, &self.name, &names);
                }
                Err(error) => teller.failed(out, &self.subject, &error),
            }
        }
        self.driver = Some(driver.name);
    }

    /// Whether its driver has been asked.
    pub(super) fn is_known(&self) -> bool {
        self.driver.is_some()
    }

    /// Reads the statistics that are kept. `false` when they are others than before, so
    /// that the driver has to be asked again.
    pub(super) fn read_statistics(
        &self,
        ethtool: &mut Ethtool,
        teller: &mut Teller,
        out: &mut Sink,
    ) -> bool {
        if self.kept.is_empty() {
            return true;
        }
        let values = match ethtool.stat_values(&self.name, self.n_names) {
            Ok(values) => values,
            Err(error) => {
                teller.failed(out, &self.subject, &error);
                return true;
            }
        };
        if values.len() != self.n_names {
            return false;
        }
        for (subject, fact, value) in sums(&self.kept, &values) {
            teller.sample(out, subject, fact, value as f64);
        }
        true
    }
}

/// Files of a transmit queue's limits, what they tell, and their unit in that fact's.
///
/// The kernel shows the threshold in milliseconds but the longest stall in ticks, and
/// does not tell how long a tick is.
const LIMITS: [(&str, &Fact, f64); 5] = [
    ("limit", &fact::NIC_BQL_LIMIT_BYTES, 1.0),
    ("inflight", &fact::NIC_BQL_INFLIGHT_BYTES, 1.0),
    ("stall_cnt", &fact::NIC_BQL_STALLS, 1.0),
    ("stall_max", &fact::NIC_BQL_STALL_MAX_TICKS, 1.0),
    ("stall_thrs", &fact::NIC_BQL_STALL_THRESHOLD_NS, 1e6),
];

/// The values of what is kept; several that tell the same of one subject are added up.
pub(super) fn sums<'k>(kept: &'k [Kept], values: &[u64]) -> Vec<(&'k Subject, &'static Fact, u64)> {
    let mut sums: Vec<(&Subject, &'static Fact, u64)> = Vec::new();
    let mut places: HashMap<(&Subject, &str), usize> = HashMap::new();
    for one in kept {
        let value = values.get(one.at).copied().unwrap_or(0);
        let place = *places
            .entry((&one.subject, one.fact.name))
            .or_insert(sums.len());
        match sums.get_mut(place) {
            Some((_, _, sum)) => *sum = sum.saturating_add(value),
            None => sums.push((&one.subject, one.fact, value)),
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], values: &[u64], expected: &[(&str, u64)]) {
        let counters = Counters::load().expect("they load");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let kept = counters.choose("ena", "eth0", &names);
        let found: Vec<(&str, u64)> = sums(&kept, values)
            .into_iter()
            .map(|(_, fact, value)| (fact.name, value))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn counters_of_one_meaning_are_added_up() {
        check(
            &["missing_intr", "total_resets", "missing_first_intr"],
            &[2, 7, 3],
            &[("nic_resets_interrupt", 5), ("nic_resets", 7)],
        );
    }
}
