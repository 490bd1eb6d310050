//! Tells Kubernetes what the agent finds: joins the agent's verdicts and the pods that its
//! records name with `sexton-kubernetes`.

mod pods;

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use sexton_agent::{Judged, KubernetesStatus, Level, OnVerdict, Shared, Tap};
use sexton_analysis::live::Turn as LifeTurn;
use sexton_analysis::rules;
use sexton_host::clock;
use sexton_kubernetes::{
    Access, BootProof, NotAssessed, Pace, Problem, Settings, Teller, Turn, Verdict,
};
use sexton_model::diagnosis::Diagnosis;
use sexton_model::finding::{Finding, Severity};

use super::config::kubernetes::KubernetesConfig;
use pods::Pods;

/// The longest line of another finding that is repeated as its root cause.
const MAX_ROOT_BYTES: usize = 300;

/// What joins the agent and Kubernetes. Nothing of it is there when it is off.
pub struct Kubernetes {
    teller: Arc<Teller>,
    pods: Arc<Mutex<Pods>>,
    least: Severity,
    node: String,
}

impl Kubernetes {
    /// Starts telling, if the configuration says so.
    pub fn start(config: &KubernetesConfig, mut log: sexton_agent::Log) -> Result<Option<Self>> {
        if !config.enabled {
            return Ok(None);
        }
        let access = access(config)?;
        let node = config.node_name()?;
        let settings = Settings {
            access,
            node: node.clone(),
            runbooks: config.runbooks.clone(),
            version: env!("SEXTON_VERSION"),
            pace: Pace::default(),
        };
        let log = Box::new(move |is_trouble, text: &str| {
            let level = if is_trouble {
                Level::Warning
            } else {
                Level::Info
            };
            log(level, text);
        });
        let teller = Teller::start(settings, log).context("cannot start telling Kubernetes")?;
        Ok(Some(Self {
            teller: Arc::new(teller),
            pods: Arc::default(),
            least: config.severity,
            node,
        }))
    }

    /// What the agent shows its records to: they say which container is whose.
    pub fn tap(&self) -> Tap {
        let pods = Arc::clone(&self.pods);
        Box::new(move |records| {
            let mut pods = pods.lock().unwrap_or_else(PoisonError::into_inner);
            records.iter().for_each(|record| pods.take(record));
        })
    }

    /// What the agent hands its verdicts to.
    pub fn on_verdict(&self) -> OnVerdict {
        let (teller, pods) = (Arc::clone(&self.teller), Arc::clone(&self.pods));
        let least = self.least;
        Box::new(move |judged| {
            let pods = pods.lock().unwrap_or_else(PoisonError::into_inner);
            teller.tell(verdict(judged, &pods, least));
        })
    }

    /// Puts how it goes into the agent's status.
    pub fn tell_status(&self, shared: &Shared) {
        let stats = self.teller.stats();
        let status = KubernetesStatus {
            node: self.node.clone(),
            requests: stats.n_requests,
            failed: stats.n_failed,
            dropped: stats.n_dropped,
            trouble: stats.trouble,
        };
        shared.change(|all| all.kubernetes = Some(status));
    }
}

/// How the API server is reached by this configuration.
pub fn access(config: &KubernetesConfig) -> Result<Access> {
    let access = match &config.kubeconfig {
        Some(path) => Access::kubeconfig(path),
        None => Access::in_cluster(),
    };
    access.context("cannot reach the API server of Kubernetes")
}

fn verdict(judged: &Judged<'_>, pods: &Pods, least: Severity) -> Verdict {
    let wall_ns = clock::wall_ns();
    let diagnosis = &judged.step.diagnosis;
    let open = judged.lives.open().map(|life| &life.finding);
    let open = open.filter(|finding| finding.severity >= least);
    // Pods are looked up for turns alone: only events name them.
    let problems = open.filter_map(|it| problem(it, diagnosis, None));
    let changes = judged.step.changes.iter();
    let changes = changes.filter(|change| change.life.worst >= least);
    let turns = changes.filter_map(|change| {
        Some(Turn {
            problem: problem(&change.life.finding, diagnosis, Some(pods))?,
            is_over: change.turn == LifeTurn::Resolved,
            wall_ns,
        })
    });
    let not_assessed = diagnosis.not_judged.iter().filter_map(|it| {
        let rule = rules::by_code(it.code)?;
        Some(NotAssessed {
            family: rule.family,
            code: rule.code,
            because: it.because.clone(),
            // "No finding" must not be said of what a sensor would have had to look at.
            is_essential: rule.is_essential
                || it.silent.is_some()
                || is_blind(rule.family, diagnosis),
        })
    });
    let boots = judged.boot_proofs.iter().filter_map(|proof| {
        let rule = rules::by_code(&proof.code)?;
        Some(BootProof {
            family: rule.family,
            code: rule.code,
            is_proved: proof.is_proved,
            text: proof.text.clone(),
        })
    });
    Verdict {
        at: judged.step.at,
        wall_ns,
        problems: problems.collect(),
        not_assessed: not_assessed.collect(),
        boots: boots.collect(),
        turns: turns.collect(),
    }
}

/// Whether no rule of a family could judge.
fn is_blind(family: sexton_model::family::Family, diagnosis: &Diagnosis) -> bool {
    let mut rules = rules::RULES.iter().filter(|rule| rule.family == family);
    rules.all(|rule| diagnosis.not_judged.iter().any(|it| it.code == rule.code))
}

fn problem(finding: &Finding, diagnosis: &Diagnosis, pods: Option<&Pods>) -> Option<Problem> {
    let rule = rules::by_code(finding.code)?;
    let id = finding.id();
    let chain = diagnosis.chains.iter().find(|chain| chain.contains(&id));
    let root = chain.and_then(|chain| chain.first());
    let root = root.filter(|root| **root != id);
    let root = root.and_then(|root| diagnosis.finding(root));
    Some(Problem {
        id: id.to_string(),
        code: rule.code,
        family: rule.family,
        severity: finding.severity,
        title: finding.title.clone(),
        root: root.map(|root| {
            let end = root.title.floor_char_boundary(MAX_ROOT_BYTES);
            root.title[..end].to_owned()
        }),
        pods: pods.map(|pods| pods.of(finding)).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sexton_analysis::live::{Lives, Step};
    use sexton_analysis::{Policy, judge};
    use sexton_kubernetes::conditions::{Board, Hold, Status};
    use sexton_model::diagnosis::NotJudged;
    use sexton_model::family::Family;
    use sexton_model::moment::Moment;
    use sexton_model::timeline::Records;

    /// What the condition of unit loops says when of its rules only UNIT001 was not assessed.
    fn check(silent: Option<&'static str>, expected: Status) {
        let not_judged = NotJudged {
            code: "UNIT001",
            what: "restart loops",
            because: "cannot reach systemd over D-Bus".into(),
            silent,
        };
        let diagnosis = Diagnosis {
            not_judged: vec![not_judged],
            ..judge(&Records::default(), &Policy::default())
        };
        let step = Step {
            at: Moment::from_ns(1),
            diagnosis,
            changes: Vec::new(),
        };
        let judged = Judged {
            step: &step,
            lives: &Lives::default(),
            boot_proofs: &[],
        };
        let verdict = verdict(&judged, &Pods::default(), Severity::Warning);
        let mut board = Board::new(Hold::default(), "", 0);
        board.take(&verdict);
        assert_eq!(board.status(Family::UnitLoop), expected, "{verdict:?}");
    }

    #[test]
    fn a_rule_whose_sensor_is_blind_leaves_its_family_unknown() {
        check(Some("units"), Status::Unknown);
        check(None, Status::False);
    }
}
