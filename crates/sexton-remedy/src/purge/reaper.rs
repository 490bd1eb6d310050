//! Third rung: the reaper that some vendors' kernels have (Anolis and Alibaba Cloud Linux:
//! `/sys/kernel/mm/memcg_reaper`). It looks at a part of all pages each time, so one call
//! need not free all.

use std::fs;

use sexton_model::fix::{PlannedStep, StepOutcome};

use super::{Rung, Scope, Tools};
use crate::consent::Consent;

pub(crate) static RUNG: Rung = Rung { plan, climb };

const FILE: &str = "kernel/mm/memcg_reaper/reap";

fn plan(scope: &Scope<'_>) -> Option<PlannedStep> {
    let path = scope.host.sys(FILE).ok()?;
    scope.host.read(&path).ok()?;
    Some(PlannedStep {
        title: "have this kernel's own reaper look for them".into(),
        changes: vec![format!("echo 1 > {}", path.display())],
        undo: None,
        predicted: None,
        withheld: None,
        except: None,
    })
}

fn climb(scope: &Scope<'_>, _consent: &Consent, _tools: &mut Tools<'_>) -> StepOutcome {
    let path = match scope.host.sys(FILE) {
        Ok(path) => path,
        Err(error) => return StepOutcome::Failed(error.chain()),
    };
    match fs::write(&path, "1") {
        Ok(()) => StepOutcome::Done,
        Err(error) => StepOutcome::Failed(format!("cannot write {}: {error}", path.display())),
    }
}
