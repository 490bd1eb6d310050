use sexton_model::fact::core::CORE_STEAL_RATIO;
use sexton_model::fact::memcg::{MEMCG_DYING, MEMCG_LIVE};
use sexton_model::fact::napi::NAPI_STARVED;
use sexton_model::fact::pressure::{
    CPU_QUOTA_CGROUPS, CPU_THROTTLED_RATIO, PRESSURE_IO_FULL_RATIO,
};
use sexton_model::subject::{Subject, SubjectKind};

use crate::testing::story::{Story, subject};

/// A lost core, starved polling and a reset: something to explain.
fn trouble() -> Story {
    let ens5 = subject(SubjectKind::Device, "ens5");
    Story::default()
        .core(1, (100.0, 110.0), (0.97, 0.01))
        .event(
            "napi",
            105.0,
            &Subject::cpu(1),
            &NAPI_STARVED,
            &[("what", "net_rx"), ("waited_ns", "900000000")],
        )
        .line(106.0, &ens5, "nic_reset", &[("device", "ens5")])
}

fn outcome(story: &Story, name: &str) -> Option<&'static str> {
    let all = story.judged().explanations;
    let found = all.iter().find(|explanation| explanation.name == name);
    found.map(|explanation| explanation.outcome.name())
}

fn check(story: &Story, name: &str, expected: &'static str) {
    assert_eq!(outcome(story, name), Some(expected), "{name}");
}

#[test]
fn nothing_is_explained_where_nothing_is_wrong() {
    let quiet = Story::default()
        .core(1, (100.0, 110.0), (0.05, 0.5))
        .heard("klog", 100.0);
    assert!(quiet.judged().explanations.is_empty());
}

#[test]
fn what_speaks_against_them_rules_them_out() {
    let node = Subject::node();
    let story = trouble()
        .sample("pressure", 105.0, &node, &CPU_QUOTA_CGROUPS, 0.0)
        .sample("pressure", 105.0, &node, &PRESSURE_IO_FULL_RATIO, 0.01);
    for name in [
        throttle(),
        "steal",
        "plain user load",
        "link flap",
        "oom kill",
        "disk stall",
        "a single lockup with another cause",
    ] {
        check(&story, name, "ruled-out");
    }
}

fn throttle() -> &'static str {
    "cpu throttling by quota"
}

#[test]
fn what_was_not_seen_is_not_ruled_out() {
    check(&trouble(), throttle(), "not-seen");
    let without_log = Story::default().event(
        "napi",
        105.0,
        &Subject::cpu(1),
        &NAPI_STARVED,
        &[("what", "net_rx"), ("waited_ns", "900000000")],
    );
    for name in [
        "steal",
        "plain user load",
        "disk stall",
        "a single lockup with another cause",
    ] {
        check(&without_log, name, "not-seen");
    }
}

#[test]
fn each_plays_its_part_when_it_does() {
    let node = Subject::node();
    let pod = subject(SubjectKind::Cgroup, "/kubepods/pod1");
    let throttled = trouble()
        .sample("pressure", 105.0, &node, &CPU_QUOTA_CGROUPS, 3.0)
        .sample("pressure", 105.0, &pod, &CPU_THROTTLED_RATIO, 0.6);
    check(&throttled, throttle(), "plays-a-part");
    let stolen = trouble().sample("cores", 105.0, &Subject::cpu(7), &CORE_STEAL_RATIO, 0.4);
    check(&stolen, "steal", "plays-a-part");
    let ens5 = subject(SubjectKind::Device, "ens5");
    let flapped = trouble().line(103.0, &ens5, "link_down", &[("device", "ens5")]);
    check(&flapped, "link flap", "plays-a-part");
    let after = trouble().line(107.0, &ens5, "link_down", &[("device", "ens5")]);
    check(&after, "link flap", "ruled-out");
    let killed = trouble().line(104.0, &node, "oom_kill", &[]);
    check(&killed, "oom kill", "plays-a-part");
    let stalled = trouble().sample("pressure", 105.0, &node, &PRESSURE_IO_FULL_RATIO, 0.7);
    check(&stalled, "disk stall", "plays-a-part");
    let locked = trouble().line(104.0, &Subject::cpu(3), "soft_lockup", &[("comm", "java")]);
    check(
        &locked,
        "a single lockup with another cause",
        "plays-a-part",
    );
    let busy = Story::default().core(1, (100.0, 110.0), (0.1, 0.85)).event(
        "napi",
        105.0,
        &Subject::cpu(1),
        &NAPI_STARVED,
        &[("what", "net_rx"), ("waited_ns", "900000000")],
    );
    check(&busy, "plain user load", "plays-a-part");
}

#[test]
fn a_burst_that_drains_is_told_from_one_that_does_not() {
    let node = Subject::node();
    let counted = |counts: &[f64]| {
        counts
            .iter()
            .enumerate()
            .fold(Story::default(), |story, (at, dying)| {
                let seconds = 100.0 + at as f64;
                let story = story.sample("memcg", seconds, &node, &MEMCG_LIVE, 10.0);
                story.sample("memcg", seconds, &node, &MEMCG_DYING, *dying)
            })
    };
    let name = "a burst that already drained";
    check(&counted(&[9_000.0, 5_000.0, 2_000.0]), name, "plays-a-part");
    check(&counted(&[9_000.0, 9_100.0, 9_200.0]), name, "ruled-out");
    check(&counted(&[9_000.0, 9_100.0]), name, "not-seen");
}
