//! `sexton image fix`

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use anyhow::{Result, bail};
use sexton_model::audit::{AuditUnit, UnitVerdict};
use sexton_remedy::Consent;
use sexton_remedy::image::{self, ImagePlan};
use sexton_report::audit::{self as report, BakeStep};

use super::judged::{Judged, judge};
use crate::cli::{BakeFormat, ImageFixArgs};
use crate::exit::Exit;

/// Plans; writes the plan, the bake step, or carries it out.
pub(super) fn run(args: &ImageFixArgs) -> Result<Exit> {
    let judged = judge(&args.source)?;
    let (plan, steps) = plan(&judged);
    let mut out = BufWriter::new(io::stdout().lock());
    let source = args.source.source.display().to_string();
    if let Some(format) = args.write {
        report::bake(&mut out, bake_format(format), &steps)?;
    } else if !args.apply || steps.is_empty() {
        report::plan(&mut out, &steps, &source)?;
    }
    out.flush()?;
    drop(out);
    if !args.apply || plan.is_empty() {
        return Ok(if plan.is_empty() {
            Exit::NothingFound
        } else {
            Exit::Found
        });
    }
    if !args.source.source.is_dir() || args.source.source == Path::new("/") {
        bail!("--apply wants a root folder: unpack {source}, or write a bake step with --write");
    }
    if judged.audit.what != "root folder" {
        bail!(
            "{source} is {}: it cannot be changed in place",
            judged.audit.what
        );
    }
    report::plan(&mut io::stdout().lock(), &steps, &source)?;
    let consent = consent(args.yes, "change this image")?;
    image::apply(&args.source.source, &plan, &consent)?;
    println_all(&format!("Done. sexton image undo {source} takes it back."))?;
    let after = judge(&args.source)?;
    let left: Vec<&str> = steps
        .iter()
        .filter(|step| matches!(step, BakeStep::Mask { .. }))
        .map(BakeStep::unit)
        .filter(|unit| {
            after
                .audit
                .units
                .iter()
                .any(|now| now.name == *unit && now.is_on)
        })
        .collect();
    if !left.is_empty() {
        bail!("still on after the change: {}", left.join(", "));
    }
    Ok(Exit::NothingFound)
}

fn println_all(text: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}

/// Somebody says yes: on the command line or on a terminal.
pub(super) fn consent(yes: bool, what: &str) -> Result<Consent> {
    if !yes {
        if !io::stdin().is_terminal() {
            bail!("nobody is there to ask: add --yes to {what}");
        }
        write!(io::stderr().lock(), "{what}? [y/N] ")?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        if !answer.trim().eq_ignore_ascii_case("y") {
            bail!("nothing was changed");
        }
    }
    Ok(Consent::given_by_the_user())
}

fn bake_format(format: BakeFormat) -> report::BakeFormat {
    match format {
        BakeFormat::Shell => report::BakeFormat::Shell,
        BakeFormat::Dockerfile => report::BakeFormat::Dockerfile,
        BakeFormat::Ansible => report::BakeFormat::Ansible,
        BakeFormat::CloudInit => report::BakeFormat::CloudInit,
        BakeFormat::Preset => report::BakeFormat::Preset,
        BakeFormat::Kickstart => report::BakeFormat::Kickstart,
    }
}

/// What is masked with all that starts it, and what is only bounded because nobody can be
/// sure: an endless loop of a unit that may be wanted, or that another one needs.
fn plan(judged: &Judged) -> (ImagePlan, Vec<BakeStep>) {
    let mut plan = ImagePlan::default();
    let mut steps = Vec::new();
    for unit in judged.audit.units.iter().filter(|unit| unit.is_on) {
        let is_needed = needed_by(judged, &unit.name);
        if unit.verdict == UnitVerdict::Unwanted && is_needed.is_none() {
            for name in together(judged, unit) {
                if !plan.mask.contains(&name) {
                    let why = if name == unit.name {
                        unit.why.clone()
                    } else {
                        format!("it starts {}", unit.name)
                    };
                    steps.push(BakeStep::Mask {
                        unit: name.clone(),
                        why,
                    });
                    plan.mask.push(name);
                }
            }
        } else if is_endless(judged, unit) {
            let why = is_needed.map_or_else(|| unit.why.clone(), |by| format!("{by} requires it"));
            let drop_in = image::BOUND.to_owned();
            steps.push(BakeStep::Bound {
                unit: unit.name.clone(),
                why,
                drop_in,
            });
            plan.bound.push(unit.name.clone());
        }
    }
    let links = judged.survey.set.wants().iter();
    let ours = links.filter(|want| plan.mask.contains(&want.unit) && want.link.starts_with("/etc"));
    plan.links = ours.map(|want| want.link.clone()).collect();
    (plan, steps)
}

/// A unit and what is to be masked with it.
fn together(judged: &Judged, unit: &AuditUnit) -> Vec<String> {
    let surveyed = judged.survey.find(&unit.name);
    let triggers = surveyed.and_then(|surveyed| surveyed.offender.as_ref());
    let mut names = vec![unit.name.clone()];
    names.extend(
        triggers
            .into_iter()
            .flat_map(|offender| offender.triggers.clone()),
    );
    names
}

/// A unit that must be on and cannot start without this one.
fn needed_by(judged: &Judged, unit: &str) -> Option<String> {
    let edges = judged.survey.graph.starters(unit);
    let needs = |name: &str| {
        let mut units = judged.audit.units.iter();
        units.any(|unit| unit.name == name && unit.is_on && unit.verdict == UnitVerdict::Needed)
    };
    let found = edges
        .into_iter()
        .find(|edge| edge.how == "requires" && needs(&edge.from));
    found.map(|edge| edge.from.clone())
}

/// Whether a rule says that it loops without end, and nothing says that it is needed.
fn is_endless(judged: &Judged, unit: &AuditUnit) -> bool {
    let known = judged
        .survey
        .find(&unit.name)
        .and_then(|surveyed| surveyed.offender.as_ref());
    let is_suspect = known.is_some() || unit.verdict == UnitVerdict::Broken;
    unit.codes.contains(&"UNIT005") && is_suspect
}
