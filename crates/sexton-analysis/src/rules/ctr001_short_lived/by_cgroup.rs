//! Short lives where no runtime tells of any: those of the cgroups of containers.

use std::time::Duration;

use sexton_model::finding::{Confidence, Evidence, Finding, Severity};
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};

use super::{CODE, LEAST_LIVES, LOOP_SPAN, SHORT_SECONDS, median};
use crate::askers::Askers;
use crate::births::Births;
use crate::case::Case;
use crate::figures;
use crate::rule::Findings;
use crate::trend::goes_on;

pub(super) fn by_cgroup(
    case: &Case<'_>,
    births: &Births<'_>,
    askers: &Askers<'_>,
    out: &mut Findings,
) {
    let limit = Duration::from_secs_f64(case.limit(&SHORT_SECONDS));
    for asked in askers.of_births(births) {
        for pattern in asked.patterns() {
            let own = || {
                asked
                    .births
                    .iter()
                    .filter(|birth| birth.pattern == pattern && birth.container.is_some())
            };
            let times: Vec<Moment> = own().map(|birth| birth.at).collect();
            let fate = births.fate(pattern);
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
