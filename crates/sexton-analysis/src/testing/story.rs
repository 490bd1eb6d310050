//! Stories for tests: records of a node, told in seconds.

use sexton_model::diagnosis::Diagnosis;
use sexton_model::fact::{EventFact, Fact};
use sexton_model::finding::Finding;
use sexton_model::moment::Moment;
use sexton_model::payload::Structure;
use sexton_model::record::{Record, Sink};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::timeline::Records;

use crate::case::Case;
use crate::policy::Policy;
use crate::rule::{Findings, Rule};
use crate::testing;

/// What sensors said.
#[derive(Default)]
pub(crate) struct Story {
    records: Vec<Record>,
}

/// So many seconds after boot.
pub(crate) fn at(seconds: f64) -> Moment {
    Moment::from_ns((seconds * 1e9) as u64)
}

/// One thing of a kind.
pub(crate) fn subject(kind: SubjectKind, name: &str) -> Subject {
    Subject::new(kind, name)
}

impl Story {
    pub(crate) fn sample(
        mut self,
        sensor: &'static str,
        seconds: f64,
        about: &Subject,
        fact: &'static Fact,
        value: f64,
    ) -> Self {
        let mut out = Sink::new(sensor, at(seconds));
        out.sample(about, fact, value);
        self.records.extend(out.into_records());
        self
    }

    pub(crate) fn event<T: Structure>(
        self,
        sensor: &'static str,
        seconds: f64,
        about: &Subject,
        fact: &'static EventFact<T>,
        details: &[(&'static str, &str)],
    ) -> Self {
        self.says(sensor, seconds, about, fact, testing::event(fact, details))
    }

    pub(crate) fn says<T: Structure>(
        mut self,
        sensor: &'static str,
        seconds: f64,
        about: &Subject,
        fact: &'static EventFact<T>,
        says: T,
    ) -> Self {
        let mut out = Sink::new(sensor, at(seconds));
        out.event(at(seconds), about, fact, says);
        self.records.extend(out.into_records());
        self
    }

    /// A core that spends these parts of its time so, in steps of 100 ms.
    pub(crate) fn core(
        mut self,
        cpu: u32,
        (from, to): (f64, f64),
        (system, user): (f64, f64),
    ) -> Self {
        use sexton_model::fact::core;
        let mut seconds = from;
        while seconds < to + 0.05 {
            let about = Subject::cpu(cpu);
            let parts = [
                (&core::CORE_SYSTEM_RATIO, system),
                (&core::CORE_IRQ_RATIO, 0.0),
                (&core::CORE_SOFTIRQ_RATIO, 0.01),
                (&core::CORE_USER_RATIO, user),
                (&core::CORE_STEAL_RATIO, 0.0),
                (&core::CORE_IOWAIT_RATIO, 0.0),
                (&core::CORE_IDLE_RATIO, 1.0 - system - user - 0.01),
            ];
            for (fact, value) in parts {
                self = self.sample("cores", seconds, &about, fact, value);
            }
            seconds += 0.1;
        }
        self
    }

    /// A line of the kernel's log.
    pub(crate) fn line(
        self,
        seconds: f64,
        about: &Subject,
        class: &str,
        more: &[(&'static str, &str)],
    ) -> Self {
        let mut details = vec![("class", class), ("line", class)];
        details.extend(more);
        if !more.iter().any(|(key, _)| *key == "written_by") {
            details.push(("written_by", "kernel"));
        }
        self.event(
            "klog",
            seconds,
            about,
            &sexton_model::fact::klog::KLOG_EVENT,
            &details,
        )
    }

    /// A sensor that was at work and saw nothing happen.
    pub(crate) fn heard(self, sensor: &'static str, seconds: f64) -> Self {
        let about = Subject::new(SubjectKind::Sensor, sensor);
        self.sample(
            "sexton",
            seconds,
            &about,
            &sexton_model::fact::sexton::SEXTON_POLL_NS,
            1.0,
        )
    }

    /// All of it.
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    /// What one rule says of it.
    pub(crate) fn told_by(&self, rule: &'static Rule) -> Findings {
        let records = Records::new(self.records.clone());
        let policy = Policy::default();
        let mut findings = Findings::default();
        rule.apply(&Case::new(&records, &policy), &mut findings);
        findings
    }

    /// What one rule finds; it must be able to judge.
    pub(crate) fn found_by(&self, rule: &'static Rule) -> Vec<Finding> {
        let told = self.told_by(rule);
        assert!(told.not_judged.is_empty(), "{:?}", told.not_judged);
        told.findings
    }

    /// The whole judgement.
    pub(crate) fn judged(&self) -> Diagnosis {
        crate::judge(&Records::new(self.records.clone()), &Policy::default())
    }
}

/// All that a finding says, to look for words in.
pub(crate) fn words(finding: &Finding) -> String {
    let evidence = finding
        .evidence
        .iter()
        .map(|one| format!("{}: {}", one.stance.name(), one.text));
    std::iter::once(finding.title.clone())
        .chain(evidence)
        .collect::<Vec<_>>()
        .join("\n")
}
