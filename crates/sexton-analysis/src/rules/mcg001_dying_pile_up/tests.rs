use sexton_model::fact::host::HOST_MEMORY_BYTES;
use sexton_model::record::Sink;

use super::*;
use crate::testing::{Watch, at, census};

fn judged(dying: &[u64], ages: &str) -> Findings {
    let mut watch = Watch::new(1_000_000, 30);
    for (i, n) in dying.iter().enumerate() {
        let second = 1_000_000 + 9 * i as u64;
        watch.add(census(
            second,
            &[("/docker/<id>", "/docker/ab12ab12ab12ab12", *n, ages)],
        ));
    }
    let mut out = Sink::new("host", at(1_000_000));
    out.sample(&Subject::node(), &HOST_MEMORY_BYTES, 4e9);
    watch.add(out);
    watch.judge(&RULE)
}

#[test]
fn growth_is_found_and_told_ahead() {
    let findings = judged(&[40, 49, 58, 67], "");
    assert_eq!(findings.findings.len(), 1);
    let finding = &findings.findings[0];
    assert!(finding.title.contains("67 dying"), "{}", finding.title);
    assert!(finding.title.contains("+3,600/h"), "{}", finding.title);
    let forecast = &findings.forecasts[0];
    assert_eq!((forecast.n_points, forecast.per_day.round()), (4, 86_400.0));
    // 20 kB each: 1 GiB is 53,687 of them, 0.6 days away.
    let gib = forecast
        .passes
        .iter()
        .find(|passing| passing.limit.contains("1 GiB"))
        .expect("told");
    assert!(
        (0.5..0.7).contains(&gib.in_days.expect("it grows")),
        "{gib:?}"
    );
}

#[test]
fn two_points_make_no_forecast() {
    let findings = judged(&[2_000, 2_009], "");
    assert_eq!((findings.findings.len(), findings.forecasts.len()), (1, 0));
}

#[test]
fn a_burst_that_drains_and_a_few_are_nothing() {
    assert!(judged(&[400, 300, 90, 20], "").findings.is_empty());
    assert!(
        judged(&[4_000, 3_000, 1_900, 1_100], "")
            .findings
            .is_empty()
    );
    assert!(judged(&[1, 2, 3, 4], "").findings.is_empty());
    assert!(judged(&[90, 90, 90, 90], "").findings.is_empty());
}

#[test]
fn a_slow_loop_is_told_by_ages() {
    let ages: Vec<String> = (0..=10).map(|i| (i * 36_000).to_string()).collect();
    let findings = judged(&[9_000, 9_000, 9_000, 9_000], &ages.join(" "));
    let title = &findings.findings[0].title;
    assert!(title.contains("+90/h"), "{title}");
    assert_eq!(findings.forecasts[0].n_points, 11);
}

#[test]
fn tmpfs_pins_are_named_with_what_frees_them() {
    let findings = judged(&[2_000, 2_000, 2_000], "");
    let remedies = &findings.findings[0].remedies;
    assert!(
        remedies[0].text.contains("Delete /dev/shm/out-<n>"),
        "{remedies:?}"
    );
}

#[test]
fn a_count_without_names_is_said_so() {
    let mut watch = Watch::new(100, 30);
    let mut out = Sink::new("memcg", at(100));
    out.sample(&Subject::node(), &fact::MEMCG_DYING, 5_000.0);
    watch.add(out);
    let findings = watch.judge(&RULE);
    assert_eq!(findings.findings[0].subject, Subject::node());
    assert!(findings.findings[0].title.contains("origin unknown"));
}

#[test]
fn without_a_census_it_is_not_judged() {
    assert_eq!(Watch::blind("memcg", "no").judge(&RULE).not_judged.len(), 1);
    assert_eq!(Watch::new(1, 30).judge(&RULE).not_judged.len(), 1);
}
