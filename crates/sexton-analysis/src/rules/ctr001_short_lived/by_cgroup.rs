//! Short lives where no runtime tells of any: those of the cgroups of containers.

use std::time::Duration;

use sexton_model::finding::{Confidence, Evidence, Finding, Severity};
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};

use super::{CODE, median};
use crate::case::Case;
use crate::evidence::short_runs::{LEAST_LIVES, LOOP_SPAN, SHORT_SECONDS};
use crate::evidence::trend::goes_on;
use crate::rule::Findings;
use crate::words::figures;

pub(super) fn by_cgroup(case: &Case<'_>, out: &mut Findings) {
    let creations = case.creations();
    let limit = Duration::from_secs_f64(case.limit(&SHORT_SECONDS));
    for asked in case.requested() {
        for (pattern, _) in asked.patterns() {
            let own = || {
                asked
                    .creations
                    .iter()
                    .filter(|creation| creation.pattern == pattern && creation.container.is_some())
            };
            let times: Vec<Moment> = own().map(|creation| creation.at).collect();
            let fate = creations.fate(pattern);
            let n_short = fate.lived.iter().filter(|lived| **lived <= limit).count();
            let is_one = n_short as f64 >= case.limit(&LEAST_LIVES)
                && goes_on(&times, case.now(), LOOP_SPAN);
            if !is_one {
                continue;
            }
            let lived = figures::time(median(fate.lived.clone()));
            let subject = match asked.images.first() {
                Some(image) => Subject::new(SubjectKind::Image, *image),
                None => Subject::new(SubjectKind::Cgroup, pattern),
            };
            let span = figures::time(case.now().since(times.first().copied().unwrap_or_default()));
            out.found(Finding {
                code: CODE,
                severity: Severity::Note,
                confidence: Confidence::LIKELY,
                title: format!(
                    "{n_short} containers {} lived {lived} each in the last {span}",
                    subject.name
                ),
                figure: format!("{n_short} in {span}, {lived} each"),
                since: times.first().copied(),
                evidence: vec![
                    Evidence::speaks_for(
                        "cgroups: births and removals",
                        format!("{n_short} cgroups of containers lived {lived}, half of them less"),
                    )
                    .value(n_short as f64),
                    Evidence::missing(
                        "containers",
                        "exit codes and names: no runtime answers here",
                    ),
                ],
                remedies: Vec::new(),
                touched: vec![
                    subject.clone(),
                    Subject::new(SubjectKind::Cgroup, pattern),
                    asked.subject.clone(),
                ],
                episodes: Vec::new(),
                subject,
            });
        }
    }
}
