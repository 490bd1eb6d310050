//! Fourth rung: all clean page cache of the node, only with leave.
//!
//! Writing 1, never 2 or 3: those walk all memory cgroups for each node of memory, which
//! on a node with many dying ones holds a core for long (mm/vmscan.c, `drop_slab_node`).

use std::fs;

use sexton_host::Host;
use sexton_model::fix::{PlannedStep, StepOutcome};

use super::stock::{is_cache, only_files};
use super::{Allowance, Rung, Scope, Tools};
use crate::consent::Consent;

pub(crate) static RUNG: Rung = Rung { plan, climb };

fn plan(scope: &Scope<'_>) -> Option<PlannedStep> {
    let goes = |ix| {
        only_files(scope.stock.pages(ix))
            && scope
                .stock
                .files_of(ix)
                .all(|file| is_cache(file) && !file.mapped)
    };
    let predicted = scope.stock.freed(goes);
    (predicted > 0).then(|| PlannedStep {
        predicted: Some(predicted),
        ..step(scope.allowance)
    })
}

/// The step, whatever it will free.
pub(super) fn step(allowance: Allowance) -> PlannedStep {
    PlannedStep {
        title: "drop all clean page cache of the node".into(),
        changes: vec!["sync; echo 1 > /proc/sys/vm/drop_caches".into()],
        undo: None,
        predicted: None,
        except: None,
        withheld: (!allowance.global).then(|| {
            "every program of the node would read from disk again; --allow-global lets it".into()
        }),
    }
}

fn climb(scope: &Scope<'_>, _consent: &Consent, _tools: &mut Tools<'_>) -> StepOutcome {
    drop_all(scope.host)
}

/// Drops all clean page cache.
pub(super) fn drop_all(host: &Host) -> StepOutcome {
    let path = match host.proc("sys/vm/drop_caches") {
        Ok(path) => path,
        Err(error) => return StepOutcome::Failed(error.chain()),
    };
    rustix::fs::sync();
    match fs::write(&path, "1") {
        Ok(()) => StepOutcome::Done,
        Err(error) => StepOutcome::Failed(format!("cannot write {}: {error}", path.display())),
    }
}
