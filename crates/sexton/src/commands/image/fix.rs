//! `sexton image fix`

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Result, bail};
use sexton_model::audit::{AuditUnit, UnitVerdict};
use sexton_remedy::Consent;
use sexton_remedy::image;
use sexton_report::audit::{self as report, BakeStep};

use super::judged::{Judged, judge};
use super::plan::plan;
use super::verify::{ImagePolicy, compare, exit as gate_exit};
use crate::cli::{BakeFormat, ImageFixArgs};
use crate::consent;
use crate::exit::Exit;

/// Plans; writes the plan, the bake step, or carries it out.
pub(super) fn run(args: &ImageFixArgs) -> Result<Exit> {
    let judged = judge(&args.source)?;
    let (plan, steps) = plan(&judged);
    let source = args.source.source.display().to_string();
    if let Some(format) = args.write {
        let mut out = BufWriter::new(io::stdout().lock());
        report::bake(&mut out, bake_format(format), &steps)?;
        out.flush()?;
        return Ok(Exit::NothingFound);
    }
    report::plan(&mut io::stdout().lock(), &steps, &source)?;
    if plan.is_empty() {
        return Ok(Exit::NothingFound);
    }
    if !args.apply {
        return Ok(Exit::Found);
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
    let consent = consent::ask_or_end(args.yes, "change this image")?;
    image::apply(&args.source.source, &plan, &consent)?;
    check(args, &judged, &steps, &consent)
}

/// Judges the image as it is now. A change that breaks a unit, or that does not do what it was
/// for, is taken back.
fn check(
    args: &ImageFixArgs,
    before: &Judged,
    steps: &[BakeStep],
    consent: &Consent,
) -> Result<Exit> {
    let root = &args.source.source;
    let after = judge(&args.source)?;
    let is = |judged: &Judged, name: &str, is_so: fn(&AuditUnit) -> bool| {
        let units = &judged.audit.units;
        let found = units.binary_search_by(|unit| unit.name.as_str().cmp(name));
        found.is_ok_and(|n| is_so(&units[n]))
    };
    let is_broken = |unit: &AuditUnit| unit.is_on && unit.verdict == UnitVerdict::Broken;
    let names = after.audit.units.iter().map(|unit| unit.name.as_str());
    let broken: Vec<&str> = names
        .filter(|name| is(&after, name, is_broken) && !is(before, name, is_broken))
        .collect();
    let masked = steps
        .iter()
        .filter(|step| matches!(step, BakeStep::Mask { .. }));
    let left: Vec<&str> = masked
        .map(BakeStep::unit)
        .filter(|name| is(&after, name, |unit| unit.is_on))
        .collect();
    for (what, names) in [
        ("cannot start after the change", broken),
        ("still on after the change", left),
    ] {
        if !names.is_empty() {
            image::undo(root, consent)?;
            bail!("the change was taken back: {what}: {}", names.join(", "));
        }
    }
    let source = root.display();
    let units = compare(&after.audit, &ImagePolicy::default());
    let mut out = io::stdout().lock();
    report::gate_text(&mut out, &after.audit, &units)?;
    writeln!(out, "Done. sexton image undo {source} takes it back.")?;
    Ok(gate_exit(&units, &after.audit, false))
}

fn bake_format(format: BakeFormat) -> report::BakeFormat {
    match format {
        BakeFormat::Shell => report::BakeFormat::Shell,
        BakeFormat::Dockerfile => report::BakeFormat::Dockerfile,
        BakeFormat::Ansible => report::BakeFormat::Ansible,
        BakeFormat::CloudInit => report::BakeFormat::CloudInit,
        BakeFormat::Preset => report::BakeFormat::Preset,
        BakeFormat::Kickstart => report::BakeFormat::Kickstart,
        BakeFormat::Packer => report::BakeFormat::Packer,
    }
}
