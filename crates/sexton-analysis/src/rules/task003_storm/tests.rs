use sexton_model::fact::stack::CPU_USE;

use super::*;
use crate::testing::story::{Story, subject, words};

/// A node with two cores, and this many exits a second from 10 s on, of which a unit's children
/// are this part.
fn story(rate: u64, part: f64, seconds: u64) -> Story {
    let mut story = Story::default()
        .heard("exits", 9.0)
        .core(0, (9.0, 40.0), (0.5, 0.3))
        .core(1, (9.0, 40.0), (0.5, 0.3));
    for i in 0..seconds {
        let (own, all) = ((rate as f64 * part) as u64, rate);
        let says = [
            ("comm", "sh".to_owned()),
            ("child_comm", "true".to_owned()),
            ("cgroup", "/system.slice/storm.service".to_owned()),
            ("unit", "storm.service".to_owned()),
            ("n", own.to_string()),
            ("n_short", own.to_string()),
            ("n_all", all.to_string()),
            ("interval_ns", "1000000000".to_owned()),
        ];
        let says: Vec<(&'static str, &str)> =
            says.iter().map(|(key, value)| (*key, &**value)).collect();
        let at = 10.0 + i as f64;
        let parent = subject(SubjectKind::Process, "77");
        story = story.event("exits", at, &parent, &PROCESS_MAKER, &says);
    }
    story
}

/// What its processes had of the cores.
fn with_use(story: Story, cores: &str) -> Story {
    let says = [
        ("comm", "true"),
        ("cgroup", "/system.slice/storm.service"),
        ("n_processes", "900"),
        ("cores", cores),
        ("kernel_cores", cores),
        ("interval_ns", "10000000000"),
    ];
    story.event(
        "stacks",
        20.0,
        &subject(SubjectKind::Task, "true"),
        &CPU_USE,
        &says,
    )
}

#[test]
fn a_storm_is_put_down_to_its_unit_and_parent() {
    let found = with_use(story(590, 0.95, 20), "1.5").found_by(&RULE);
    assert_eq!(found.len(), 1);
    let finding = &found[0];
    assert_eq!(finding.id().as_str(), "TASK003:storm.service");
    assert_eq!(finding.severity, Severity::Warning);
    let said = words(finding);
    assert!(
        said.contains("storm.service (sh, pid 77) starts 560 processes a second"),
        "{said}"
    );
    assert!(said.contains("they had 75 % of all cores"), "{said}");
    assert!(
        said.contains("each of them took 2.7 ms of a core"),
        "{said}"
    );
    assert!(finding.touches(&subject(SubjectKind::Process, "77")));
}

#[test]
fn a_rate_that_costs_a_third_of_the_node_needs_no_other_proof() {
    let found = story(900, 0.9, 20).found_by(&RULE);
    assert_eq!(found[0].severity, Severity::Warning);
}

/// Seconds of exits with parents in no cgroup: the number of the parent, its name, the name of its
/// children, and how many of 1,000 they are.
fn plain(makers: &[(&str, &str, &str, &str)]) -> Story {
    plain_of("1000", makers)
}

/// The same, of this many exits.
fn plain_of(n_all: &str, makers: &[(&str, &str, &str, &str)]) -> Story {
    let mut story = Story::default()
        .heard("exits", 9.0)
        .heard("runq", 9.0)
        .heard("pressure", 9.0)
        .core(0, (9.0, 40.0), (0.5, 0.45))
        .core(1, (9.0, 40.0), (0.5, 0.45));
    for second in 10..30 {
        for (pid, comm, child, n) in makers {
            let says = [
                ("comm", *comm),
                ("child_comm", child),
                ("cgroup", "/"),
                ("n", n),
                ("n_short", n),
                ("n_all", n_all),
                ("interval_ns", "1000000000"),
            ];
            let parent = subject(SubjectKind::Process, pid);
            story = story.event("exits", f64::from(second), &parent, &PROCESS_MAKER, &says);
        }
    }
    story
}

/// What processes of a name in no cgroup had of the cores.
fn had(story: Story, comm: &str, cores: &str) -> Story {
    let says = [
        ("comm", comm),
        ("cgroup", "/"),
        ("n_processes", "900"),
        ("cores", cores),
        ("kernel_cores", cores),
        ("interval_ns", "10000000000"),
    ];
    let task = subject(SubjectKind::Task, comm);
    story.event("stacks", 20.0, &task, &CPU_USE, &says)
}

#[test]
fn a_storm_of_a_plain_shell_is_put_down_to_the_shell() {
    let story = plain(&[("77", "sh", "true", "960")]);
    let story = had(had(story, "true", "1.3"), "sh", "0.5");
    let found = story.found_by(&RULE);
    assert_eq!(found[0].id().as_str(), "TASK003:sh");
    let said = words(&found[0]);
    assert!(
        said.contains("sh (pid 77) starts 960 processes a second, most of them true"),
        "{said}"
    );
    assert!(said.contains("they had 90 % of all cores"), "{said}");
    // The cores are the shell's too, not those of `true`.
    let diagnosis = story.judged();
    let saturated = diagnosis.findings.iter().find(|one| one.code == "CPU003");
    assert_eq!(
        saturated.map(|one| one.id().to_string()).as_deref(),
        Some("CPU003:sh")
    );
}

#[test]
fn two_storms_at_once_are_both_found() {
    let makers = |n| [("77", "a", "true", n), ("78", "b", "true", n)];
    // Two cores, and 1,500 exits a second.
    let ids = |n: &'static str| {
        let found = plain_of("1500", &makers(n)).found_by(&RULE);
        let ids = found.iter().map(|one| (one.id().to_string(), one.severity));
        ids.collect::<Vec<_>>()
    };
    let warning = Severity::Warning;
    let both = [
        ("TASK003:a".to_owned(), warning),
        ("TASK003:b".to_owned(), warning),
    ];
    assert_eq!(ids("700"), both);
    assert_eq!(ids("500"), []);
}

#[test]
fn children_that_lost_their_parent_accuse_nobody() {
    let story = plain(&[("77", "sh", "sh", "480"), ("1", "init", "true", "490")]);
    let found = story.found_by(&RULE);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id().as_str(), "TASK003:sh");
}

#[test]
fn batches_of_short_jobs_are_no_storm() {
    // Twenty jobs a second on each core.
    assert!(
        with_use(story(40, 1.0, 20), "1.9")
            .found_by(&RULE)
            .is_empty()
    );
    // A build of very small files: each process does more than start.
    let small = with_use(story(450, 1.0, 20), "1.98").found_by(&RULE);
    assert_eq!(small[0].severity, Severity::Note, "{}", words(&small[0]));
    // Many makers, none of which has most.
    assert!(story(400, 0.3, 20).found_by(&RULE).is_empty());
    // A few seconds, as a package that is installed takes.
    assert!(story(900, 1.0, 5).found_by(&RULE).is_empty());
}

#[test]
fn one_script_on_one_core_is_a_note() {
    let found = with_use(story(400, 1.0, 20), "0.9").found_by(&RULE);
    assert_eq!(found[0].severity, Severity::Note);
    let told = Story::default().heard("cores", 1.0).told_by(&RULE);
    assert_eq!(told.not_judged.len(), 1);
}
