//! What is to be fixed: from the arguments, or from a diagnosis.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result};
use sexton_analysis::Policy;
use sexton_host::LiveRoot;
use sexton_model::census::Census;
use sexton_model::fix::Advice;
use sexton_model::text::unescape;
use sexton_remedy::{Aim, Container, How, Risk, Source, Unit};
use sexton_signatures::units::{self, Signatures};
use sexton_systemd::survey::Survey;

use super::diagnosis::Diagnosis;
use crate::cli::fix::{self, FixArgs};
use crate::commands::diagnose;
use crate::policy;

/// How long the node is watched when nobody says what to fix.
const WATCH: Duration = Duration::from_secs(20);

/// What is to be fixed.
#[derive(Debug)]
pub struct Target {
    /// What makes the trouble.
    pub sources: Vec<Source>,
    /// For a person to do.
    pub advice: Vec<Advice>,
    origins: Vec<Vec<u8>>,
    units: Vec<String>,
}

impl Target {
    /// The dying cgroups that it left: those of the origins, and those whose path names one
    /// of the units.
    pub fn aim(&self, census: Option<&Census>) -> Aim {
        let named = census.map_or(&[][..], |census| &census.origins);
        let of_units = named.iter().filter(|origin| {
            let unit = origin.unit.as_ref();
            origin.dying > 0 && unit.is_some_and(|unit| self.units.contains(unit))
        });
        let of_units = of_units.map(|origin| origin.pattern.as_slice());
        Aim::at(self.origins.iter().map(Vec::as_slice).chain(of_units))
    }
}

/// Reads the arguments, and asks systemd and the runtimes for what they name. When they name
/// nothing, the node is watched and judged first, until `stop` is set.
pub fn choose(args: &FixArgs, stop: Option<&Arc<AtomicBool>>) -> Result<Target> {
    let mut target = Target {
        sources: Vec::new(),
        advice: Vec::new(),
        origins: args.origin.iter().map(|origin| unescape(origin)).collect(),
        units: args.unit.clone(),
    };
    let signatures = args.signatures.read()?;
    let is_named = !(args.unit.is_empty() && args.origin.is_empty() && args.container.is_empty());
    let diagnosis = match &args.from {
        Some(path) => Some(Diagnosis::read(path)?),
        None if is_named => None,
        None => {
            let mut policy = policy::read(args.policy.as_deref())?.rules;
            policy.judge_with(Arc::clone(&signatures));
            Some(judge_now(&policy, stop)?)
        }
    };
    if let Some(diagnosis) = diagnosis {
        add_diagnosis(&mut target, &diagnosis, args, &signatures.units)?;
    }
    for name in &args.unit {
        let unit = Unit::look(name)?
            .with_context(|| format!("there is no unit {name}; `systemctl list-units` has them"))?;
        target.units.push(unit.name.clone());
        let how = how(args).unwrap_or_else(|| How::fitting(Risk::Unknown, true));
        target.sources.push(Source::Unit(unit, how));
    }
    for name in &args.container {
        let (runtime, name) = name.split_once(':').unwrap_or(("docker", name));
        let container = Container::look(runtime, name)?
            .with_context(|| format!("{runtime} has no container {name}"))?;
        target.sources.push(Source::Container(container));
    }
    Ok(target)
}

/// Watches the node as `sexton diagnose` does.
fn judge_now(policy: &Policy, stop: Option<&Arc<AtomicBool>>) -> Result<Diagnosis> {
    let watch = diagnose::Watch {
        time: WATCH,
        stop: stop.cloned(),
        ..diagnose::Watch::default()
    };
    let judged = watch.judge(policy)?;
    Ok(Diagnosis::from(&judged.diagnosis))
}

fn add_diagnosis(
    target: &mut Target,
    diagnosis: &Diagnosis,
    args: &FixArgs,
    signatures: &Signatures,
) -> Result<()> {
    target.origins.extend(diagnosis.origins().map(unescape));
    let named = |name: &&str| args.unit.iter().any(|unit| unit == name);
    let guilty: Vec<&str> = diagnosis
        .guilty_units()
        .filter(|name| !named(name))
        .collect();
    let risks = match guilty.is_empty() {
        true => Risks::default(),
        false => Risks::survey(signatures),
    };
    for name in guilty {
        // It may be gone since.
        let Some(unit) = Unit::look(name)? else {
            continue;
        };
        target.units.push(unit.name.clone());
        let asked = how(args);
        let how = asked.unwrap_or_else(|| How::fitting(risks.of(name), false));
        let restarts = diagnosis.restarts(name);
        if how == How::Bound && restarts {
            target.advice.push(Advice {
                text: format!("if nothing needs {name}, mask it instead of bounding it"),
                command: Some(format!("sexton fix --unit {name} --how mask --apply")),
            });
        }
        let can_help = restarts || asked.is_some();
        target.sources.extend(source(unit, how, can_help));
    }
    let advice = diagnosis.advice().map(|remedy| Advice {
        text: remedy.text.clone(),
        command: remedy.command.clone(),
    });
    for advice in advice {
        if !target.advice.contains(&advice) {
            target.advice.push(advice);
        }
    }
    Ok(())
}

/// A unit as a source of trouble. A bound does not end one that makes containers while it runs
/// on: only stopping does, and that waits until a person says so.
fn source(unit: Unit, how: How, bound_can_help: bool) -> Option<Source> {
    match how {
        How::Mask | How::Stop => Some(Source::Unit(unit, how)),
        How::Bound if !bound_can_help => {
            let name = &unit.name;
            let why = format!(
                "{name} does not restart, so only stopping it ends this, and nothing says that \
                 this node can do without it; `sexton fix --unit {name} --apply` stops and masks \
                 it"
            );
            Some(Source::Withheld(unit, why))
        }
        // A socket has no restarts, and one that fails for good may be how people log in.
        How::Bound if unit.name.ends_with(".socket") => None,
        How::Bound => Some(Source::Unit(unit, How::Bound)),
    }
}

/// What is known of units that have no use here.
#[derive(Debug, Default)]
struct Risks(Vec<(String, Risk)>);

impl Risks {
    /// Asks the signatures about the units of this root.
    fn survey(signatures: &Signatures) -> Self {
        let survey = Survey::take(&LiveRoot, signatures, None);
        let known = survey.units.into_iter().filter_map(|unit| {
            let offender = unit.offender.filter(|offender| offender.veto.is_none())?;
            let risk = match offender.risk {
                units::Risk::Low => Risk::Low,
                _ => Risk::Higher,
            };
            Some((unit.unit.name, risk))
        });
        Self(known.collect())
    }

    fn of(&self, unit: &str) -> Risk {
        let known = self.0.iter().find(|(name, _)| name == unit);
        known.map_or(Risk::Unknown, |(_, risk)| *risk)
    }
}

fn how(args: &FixArgs) -> Option<How> {
    args.how.map(|how| match how {
        fix::How::Mask => How::Mask,
        fix::How::Bound => How::Bound,
    })
}
