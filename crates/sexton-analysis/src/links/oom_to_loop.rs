//! A unit or a container that the kernel OOM-kills ends, and is started again.

use sexton_model::fact::unit::{UNIT_STARTED, UNIT_STOPPED};
use sexton_model::finding::{Confidence, Evidence, Finding};
use sexton_model::subject::SubjectKind;

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::words::figures::{count, times};

pub(super) static OF_UNIT: LinkRule = LinkRule {
    cause: "MEM001",
    effect: "UNIT001",
    meet: same_unit,
};

pub(super) static OF_FAILED_UNIT: LinkRule = LinkRule {
    cause: "MEM001",
    effect: "UNIT003",
    meet: same_unit,
};

pub(super) static OF_CONTAINER: LinkRule = LinkRule {
    cause: "MEM001",
    effect: "CTR001",
    meet: same_container,
};

fn same_unit(case: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let unit = &effect.subject;
    if !cause.touches(unit) {
        return Meeting::Strangers;
    }
    let stops = case
        .events(&UNIT_STOPPED)
        .filter(|stop| stop.subject == unit);
    let mut oom_stops = stops.filter(|stop| stop.says.result.as_deref() == Some("oom-kill"));
    if let Some(stop) = oom_stops.next() {
        let text = format!("systemd's result of {} is oom-kill", unit.name);
        let evidence = Evidence::speaks_for("units: bus", text).at(stop.at);
        return Meeting::Joined(Confidence::CERTAIN, vec![evidence]);
    }
    let starts = case
        .events(&UNIT_STARTED)
        .filter(|start| start.subject == unit);
    let (n_starts, n_kills) = (starts.count(), cause.episodes.len());
    let text = format!(
        "the kernel OOM-killed a process of {} {}; systemd started it {}",
        unit.name,
        times(n_kills),
        times(n_starts)
    );
    // Where most starts have no kill, something else ends the unit too.
    let sure = match n_kills * 2 >= n_starts {
        true => Confidence::LIKELY,
        false => Confidence::POSSIBLE,
    };
    Meeting::Joined(sure, vec![Evidence::speaks_for("klog, units", text)])
}

fn same_container(case: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let images = effect.touched_of(SubjectKind::Image);
    let runs = case.container_runs();
    let runs = images.filter_map(|image| runs.get(&*image.name)).flatten();
    let is_victim = |id: &str| {
        let mut victims = cause.touched_of(SubjectKind::Container);
        victims.any(|container| *container.name == *id)
    };
    let n = runs.filter(|run| is_victim(run.id)).count();
    if n == 0 {
        return Meeting::Strangers;
    }
    let text = format!(
        "the kernel OOM-killed a process of this container; {} of its runs are among those that \
         ended early",
        count(n as u64)
    );
    let evidence = Evidence::speaks_for("klog, containers", text);
    Meeting::Joined(Confidence::LIKELY, vec![evidence])
}
