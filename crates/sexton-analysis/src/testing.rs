//! What the tests of rules have in common: a watch of a node, made of records.

mod properties;
mod stories;
pub(crate) mod story;

use sexton_model::diagnosis::Diagnosis;
use sexton_model::fact::EventFact;
use sexton_model::fact::core::{CORE_STEAL_RATIO, CORE_SYSTEM_RATIO};
use sexton_model::fact::sexton::SEXTON_POLL_NS;
use sexton_model::fact::{cgroup, container, memcg};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::payload::{Structure, Value};
use sexton_model::record::{Record, Sink};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::timeline::Records;

use crate::case::Case;
use crate::policy::Policy;
use crate::rule::{Findings, Rule};

/// Names and texts of fields.
pub(crate) type Texts = Vec<(std::borrow::Cow<'static, str>, String)>;

/// A payload whose fields are given as text, as those of older recordings are.
pub(crate) fn read<T: Structure>(fields: impl Into<Texts>) -> T {
    let fields = fields.into().into_iter();
    let fields = fields.map(|(name, text)| (name, Value::Text(text)));
    T::read(&fields.collect()).expect("the fields fit")
}

/// The same, of a fact.
pub(crate) fn event<T: Structure>(_: &EventFact<T>, fields: &[(&'static str, &str)]) -> T {
    let fields = fields.iter();
    let fields: Texts = fields
        .map(|(name, text)| ((*name).into(), (*text).to_owned()))
        .collect();
    read(fields)
}

/// So many seconds after boot.
pub(crate) fn at(second: u64) -> Moment {
    Moment::from_ns(second * 1_000_000_000)
}

/// The sensors that rules listen to. Those of symptoms see nothing happen.
const SENSORS: [&str; 18] = [
    "cgroups",
    "containers",
    "contention",
    "cores",
    "disks",
    "exits",
    "filesystems",
    "klog",
    "limits",
    "memcg",
    "memory",
    "napi",
    "network",
    "nics",
    "pressure",
    "processes",
    "stacks",
    "units",
];

/// What was recorded.
pub(crate) struct Watch {
    pub(crate) records: Vec<Record>,
}

impl Watch {
    /// All sensors at work from a second on for so long.
    pub(crate) fn new(from: u64, seconds: u64) -> Self {
        let mut watch = Self {
            records: Vec::new(),
        };
        for second in [from, from + seconds] {
            for sensor in SENSORS {
                let mut out = Sink::new(sensor, at(second));
                let own = Subject::new(SubjectKind::Sensor, sensor);
                out.sample(&own, &SEXTON_POLL_NS, 1.0);
                watch.add(out);
            }
        }
        for second in [from, from + 1] {
            let mut out = Sink::new("cores", at(second));
            for (fact, value) in [(&CORE_SYSTEM_RATIO, 0.05), (&CORE_STEAL_RATIO, 0.0)] {
                out.sample(&Subject::cpu(0), fact, value);
            }
            watch.add(out);
        }
        watch
    }

    /// One sensor could not be opened, and the others said nothing.
    pub(crate) fn blind(sensor: &'static str, why: &str) -> Self {
        let mut out = Sink::new(sensor, at(1));
        let own = Subject::new(SubjectKind::Sensor, sensor);
        out.gap(&own, Gap::new(sensor, Why::Unsupported, why));
        Self {
            records: out.into_records(),
        }
    }

    /// Nothing of this sensor.
    pub(crate) fn without(mut self, sensor: &str) -> Self {
        self.records.retain(|record| record.sensor != sensor);
        self
    }

    pub(crate) fn add(&mut self, out: Sink) {
        self.records.extend(out.into_records());
    }

    /// What one rule says.
    pub(crate) fn judge(self, rule: &Rule) -> Findings {
        let records = Records::new(self.records);
        let policy = Policy::default();
        let mut findings = Findings::default();
        rule.apply(&Case::new(&records, &policy), &mut findings);
        findings
    }

    /// What all rules say together.
    pub(crate) fn diagnose(self) -> Diagnosis {
        crate::judge(&Records::new(self.records), &Policy::default())
    }
}

/// A census: pattern, example, dying, ages. All are pinned by files of a tmpfs.
pub(crate) fn census(second: u64, origins: &[(&str, &str, u64, &str)]) -> Sink {
    let mut out = Sink::new("memcg", at(second));
    let dying: u64 = origins.iter().map(|origin| origin.2).sum();
    let node = Subject::node();
    out.sample(&node, &memcg::MEMCG_LIVE, 240.0);
    out.sample(&node, &memcg::MEMCG_DYING, dying as f64);
    out.sample(&node, &memcg::MEMCG_DYING_BYTES, dying as f64 * 20_000.0);
    for (pattern, example, dying, ages) in origins.iter().filter(|origin| origin.2 > 0) {
        let subject = Subject::new(SubjectKind::Cgroup, *pattern);
        let mut details: Texts = vec![
            ("pattern".into(), (*pattern).to_owned()),
            ("example".into(), (*example).to_owned()),
            (
                "kind".into(),
                sexton_model::origin::Origin::of(example.as_bytes())
                    .kind()
                    .to_string(),
            ),
            ("live".into(), "1".into()),
            ("dying".into(), dying.to_string()),
            ("file".into(), "0".into()),
            ("shmem".into(), dying.to_string()),
            ("pin_1".into(), format!("{dying} shmem /dev/shm/out-<n>")),
        ];
        if !ages.is_empty() {
            details.push(("ages".into(), (*ages).to_owned()));
        }
        let unit = sexton_model::origin::Origin::of(example.as_bytes());
        details.extend(
            unit.host_unit()
                .map(|unit| ("unit".into(), unit.to_owned())),
        );
        out.sample(&subject, &memcg::MEMCG_DYING, *dying as f64);
        out.event(at(second), &subject, &memcg::MEMCG_ORIGIN, read(details));
    }
    out
}

/// Lives of containers until a second: one each so often, so many, each so long. A name that
/// ends in `-` gets a number.
pub(crate) fn lives(
    until: u64,
    every: u64,
    n: u64,
    seconds: u64,
    image: &str,
    name: &str,
    code: &str,
) -> Sink {
    let mut out = Sink::new("containers", at(until));
    for i in 0..n {
        let id = container_id(i);
        let name = if name.ends_with('-') {
            format!("{name}{i}")
        } else {
            name.to_owned()
        };
        let mut details: Texts = vec![
            ("id".into(), id.clone()),
            ("name".into(), name),
            ("image".into(), image.to_owned()),
        ];
        let subject = Subject::new(SubjectKind::Container, id);
        let born = until - (n - i) * every;
        out.event(
            at(born),
            &subject,
            &container::CONTAINER_STARTED,
            read(details.clone()),
        );
        details.push(("exit_code".into(), code.to_owned()));
        details.push(("lifetime_ms".into(), (seconds * 1000).to_string()));
        let ended = born + seconds;
        if ended <= until {
            out.event(
                at(ended),
                &subject,
                &container::CONTAINER_EXITED,
                read(details),
            );
        }
    }
    out
}

/// The id of one of the containers of [`lives`].
pub(crate) fn container_id(i: u64) -> String {
    format!("{i:064x}")
}

/// A cgroup that is born, removed half a second later, and released or not.
pub(crate) struct Churn<'a> {
    pub(crate) path: String,
    pub(crate) creator: (&'a str, u64),
    pub(crate) ancestry: &'a str,
    pub(crate) unit: Option<&'a str>,
    pub(crate) is_released: bool,
}

/// Such cgroups, one each second from one on.
pub(crate) fn creations(from: u64, cgroups: impl IntoIterator<Item = Churn<'static>>) -> Sink {
    let mut out = Sink::new("cgroups", at(from));
    for (i, churn) in cgroups.into_iter().enumerate() {
        let subject = Subject::new(SubjectKind::Cgroup, churn.path.as_str());
        let origin = sexton_model::origin::Origin::of(churn.path.as_bytes());
        let mut details: Texts = vec![
            ("path".into(), churn.path.clone()),
            ("id".into(), (from * 1_000 + i as u64).to_string()),
        ];
        details.extend(
            origin
                .host_unit()
                .map(|unit| ("unit".into(), unit.to_owned())),
        );
        details.extend(
            origin
                .container()
                .map(|c| ("container".into(), c.id.to_owned())),
        );
        let mut born = details.clone();
        born.push(("creator_pid".into(), churn.creator.1.to_string()));
        born.push(("creator_comm".into(), churn.creator.0.to_owned()));
        born.extend(
            churn
                .unit
                .map(|unit| ("creator_unit".into(), unit.to_owned())),
        );
        born.push(("creator_ancestry".into(), churn.ancestry.to_owned()));
        let second = at(from + i as u64);
        let later = second.after(std::time::Duration::from_millis(500));
        out.event(second, &subject, &cgroup::CGROUP_BORN, read(born));
        details.push(("lived_ns".into(), "500000000".into()));
        out.event(
            later,
            &subject,
            &cgroup::CGROUP_REMOVED,
            read(details.clone()),
        );
        if churn.is_released {
            details.push(("dying_ns".into(), "1".into()));
            let end = later.after(std::time::Duration::from_millis(100));
            out.event(end, &subject, &cgroup::CGROUP_RELEASED, read(details));
        }
    }
    out
}
