use sexton_model::fact::exit::{OOM_VICTIMS, PROCESS_FAILED};

use super::*;
use crate::testing::story::{Story, subject, words};

const UNIT: &str = "/system.slice/hungry.service";

/// The lines of the kernel for one kill at the limit of a unit, and the exit that follows.
fn kill(story: Story, seconds: f64, pid: &str) -> Story {
    let node = Subject::node();
    let process = subject(SubjectKind::Process, pid);
    story
        .line(seconds, &node, "oom_report", &[("limit_kb", "51200")])
        .line(
            seconds,
            &process,
            "oom_report",
            &[
                ("constraint", "CONSTRAINT_MEMCG"),
                ("limited_cgroup", UNIT),
                ("cgroup", UNIT),
                ("pid", pid),
            ],
        )
        .line(
            seconds,
            &process,
            "oom_kill",
            &[("pid", pid), ("comm", "java")],
        )
        .event(
            "exits",
            seconds + 0.1,
            &process,
            &PROCESS_FAILED,
            &[
                ("tgid", pid),
                ("comm", "java"),
                ("oom", "true"),
                ("cgroup", UNIT),
            ],
        )
}

fn watched() -> Story {
    let story = Story::default().heard("klog", 1_000.0);
    story.heard("exits", 1_000.0).heard("klog", 1_015.0)
}

#[test]
fn three_kills_are_three_though_two_sensors_tell_of_them() {
    let node = Subject::node();
    let story = ["11", "12", "13"]
        .iter()
        .zip([1_002.0, 1_006.0, 1_010.0])
        .fold(watched(), |story, (pid, at)| kill(story, at, pid))
        .sample("exits", 1_000.0, &node, &OOM_VICTIMS, 0.0)
        .sample("exits", 1_015.0, &node, &OOM_VICTIMS, 3.0);
    let found = story.found_by(&RULE);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id().as_str(), "MEM001:hungry.service");
    assert_eq!(found[0].severity, Severity::Serious);
    assert_eq!(
        found[0].title,
        "the kernel OOM-killed java in hungry.service 3 times (cgroup limit 50 MiB), last 5.0 s \
         before the end of the watch"
    );
    assert_eq!(found[0].since, Some(crate::testing::story::at(1_002.0)));
    assert!(words(&found[0]).contains("the memory limit of cgroup /system.slice/hungry.service"));
}

#[test]
fn the_node_out_of_memory_is_told_from_a_limit() {
    let about = subject(SubjectKind::Process, "7");
    let report = [("pid", "7"), ("constraint", "CONSTRAINT_NONE")];
    let found = watched()
        .line(1_003.0, &about, "oom_report", &report)
        .line(
            1_003.0,
            &about,
            "oom_kill",
            &[("pid", "7"), ("comm", "java")],
        )
        .found_by(&RULE);
    assert!(
        found[0]
            .title
            .contains("java once (the node is out of memory)")
    );
    let commands: Vec<_> = found[0]
        .remedies
        .iter()
        .flat_map(|one| &one.command)
        .collect();
    assert!(commands.iter().any(|one| one.starts_with("ps -eo")));
}

#[test]
fn exits_tell_where_the_log_cannot_be_read() {
    let about = subject(SubjectKind::Process, "7");
    let id = "a".repeat(64);
    let path = format!("/system.slice/docker-{id}.scope");
    let says = [
        ("tgid", "7"),
        ("comm", "ray"),
        ("oom", "true"),
        ("cgroup", &path),
    ];
    let found = Story::default()
        .heard("exits", 1_000.0)
        .event("exits", 1_003.0, &about, &PROCESS_FAILED, &says)
        .found_by(&RULE);
    assert_eq!(found[0].subject, subject(SubjectKind::Container, &id));
    assert!(
        found[0]
            .title
            .contains("ray in container aaaaaaaaaaaa once")
    );
    assert!(words(&found[0]).contains("missing: the sensor klog was not recorded"));
}

#[test]
fn a_counter_tells_how_many_where_nothing_else_does() {
    let node = Subject::node();
    let found = watched()
        .sample("exits", 1_000.0, &node, &OOM_VICTIMS, 4.0)
        .sample("exits", 1_015.0, &node, &OOM_VICTIMS, 6.0)
        .found_by(&RULE);
    assert_eq!(found[0].figure, "2 OOM kills");
    assert_eq!(found[0].subject, node);
}

/// A job that a user ends with SIGKILL, a kill of yesterday, and a line that a program wrote
/// while the exits show no victim.
#[test]
fn other_ends_are_no_oom_kills() {
    let about = subject(SubjectKind::Process, "7");
    let killed = [
        ("tgid", "7"),
        ("comm", "java"),
        ("signal", "9"),
        ("oom", "false"),
    ];
    let story = watched().event("exits", 1_003.0, &about, &PROCESS_FAILED, &killed);
    assert!(story.found_by(&RULE).is_empty());
    let long_ago = watched().line(100.0, &about, "oom_kill", &[("pid", "7")]);
    assert!(long_ago.found_by(&RULE).is_empty());
    let forged = [("pid", "7"), ("written_by", "userspace")];
    let forged = watched().line(1_003.0, &about, "oom_kill", &forged);
    assert!(forged.found_by(&RULE).is_empty());
}

#[test]
fn what_could_not_be_seen_is_not_judged() {
    let story = Story::default().heard("cores", 1.0);
    assert_eq!(story.told_by(&RULE).not_judged.len(), 1);
}

/// One sentence: the unit is OOM-killed, and restarted for that.
#[test]
fn a_unit_that_is_killed_and_restarted_is_one_chain() {
    use sexton_model::fact::unit::{UNIT_RESTARTS, UNIT_STARTED, UNIT_STOPPED};
    let unit = subject(SubjectKind::Unit, "hungry.service");
    let pids = ["11", "12", "13", "14", "15", "16"];
    let story = pids.iter().enumerate().fold(watched(), |story, (n, pid)| {
        let at = 1_001.0 + 2.0 * n as f64;
        kill(story, at, pid)
            .event(
                "units",
                at + 0.1,
                &unit,
                &UNIT_STOPPED,
                &[("result", "oom-kill")],
            )
            .event("units", at + 0.3, &unit, &UNIT_STARTED, &[])
            .sample("units", at + 0.3, &unit, &UNIT_RESTARTS, 1.0 + n as f64)
    });
    let diagnosis = story.heard("units", 1_015.0).judged();
    let chain: Vec<&str> = diagnosis.chains[0].iter().map(|id| id.as_str()).collect();
    assert_eq!(chain, ["MEM001:hungry.service", "UNIT001:hungry.service"]);
    let explanation = diagnosis
        .explanations
        .iter()
        .find(|one| one.name == "oom kill");
    let text = &explanation.expect("it is weighed").evidence[0].text;
    assert!(text.contains("6 times"), "{text}");
}
