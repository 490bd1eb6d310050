mod signs;

use sexton_model::diagnosis::Diagnosis;
use sexton_model::fact::exit::PROCESS_FAILED;
use sexton_model::fact::napi::{NAPI_SERVED, NAPI_STARVED};
use sexton_model::fact::stack::PROCESS_ON_CORE;
use sexton_model::finding::{Episode, FindingId, Severity};
use sexton_model::subject::{Subject, SubjectKind};

use super::*;
use crate::rules::RULES;
use crate::testing::at;
use crate::testing::story::{Story, subject};

#[test]
fn cause_runs_down_the_list_of_rules() {
    let place = |code| RULES.iter().position(|rule| rule.code == code);
    for link in LINKS {
        let (cause, effect) = (place(link.cause), place(link.effect));
        // Rules about unit files judge what was there before anything ran: whatever they find
        // comes first, and nothing causes it.
        let is_about_files = |code| ["UNIT004", "UNIT005", "UNIT006"].contains(&code);
        let is_first = is_about_files(link.cause) && !is_about_files(link.effect);
        assert!(
            is_first || cause.is_some() && cause < effect,
            "{} must come before {} in the list of rules",
            link.cause,
            link.effect
        );
    }
}

/// A finding of which only the place and the time matter, in seconds.
pub(super) fn found(code: &'static str, subject: Subject, from: u64, to: u64) -> Finding {
    Finding {
        code,
        severity: Severity::Serious,
        confidence: Confidence::CERTAIN,
        title: String::new(),
        figure: String::new(),
        since: None,
        evidence: Vec::new(),
        remedies: Vec::new(),
        touched: vec![subject.clone()],
        episodes: vec![Episode {
            from: at(from),
            to: at(to),
            touched: vec![subject.clone()],
        }],
        subject,
    }
}

fn ids(chain: &[FindingId]) -> Vec<&str> {
    chain.iter().map(FindingId::as_str).collect()
}

fn link<'a>(diagnosis: &'a Diagnosis, cause: &str, effect: &str) -> Option<&'a Link> {
    let links = diagnosis.links.iter();
    links
        .filter(|link| link.cause.as_str() == cause)
        .find(|link| link.effect.as_str() == effect)
}

fn quiet(seconds: f64) -> Story {
    let all = ["klog", "napi", "stacks", "exits", "cores", "nics", "memcg"];
    all.into_iter().fold(Story::default(), |story, sensor| {
        story.heard(sensor, seconds)
    })
}

/// A process that had this part of core 3 in the kernel, each second.
fn on_core(story: Story, comm: &str, pid: &str, ratio: &str, stack: &str) -> Story {
    (1..=5).fold(story, |story, second| {
        story.event(
            "stacks",
            100.0 + f64::from(second),
            &subject(SubjectKind::Process, pid),
            &PROCESS_ON_CORE,
            &[
                ("comm", comm),
                ("cpu", "3"),
                ("interval_ns", "1000000000"),
                ("kernel_ratio", ratio),
                ("hot_stack", stack),
            ],
        )
    })
}

/// Polling of ens5 that waited 5.2 s for core 3.
fn starved(story: Story, pid: &str, stack: &str) -> Story {
    let details = |waited| {
        [
            ("what", "napi/ens5-8193"),
            ("waited_ns", waited),
            ("holder_pid", pid),
            ("holder_comm", "kubelet"),
            ("stack", stack),
        ]
    };
    let core = Subject::cpu(3);
    let story = story.event("napi", 100.6, &core, &NAPI_STARVED, &details("600000000"));
    story.event("napi", 105.2, &core, &NAPI_SERVED, &details("5200000000"))
}

fn gave_up(story: Story, seconds: f64, device: &str) -> Story {
    let about = subject(SubjectKind::Device, device);
    story.line(seconds, &about, "nic_reset", &[("device", device)])
}

const READ: &str = "do_syscall_64;vfs_read;seq_read_iter;memory_stat_show;memory_stat_format";
const ZERO: &str = "do_syscall_64;vfs_read;read_zero";

#[test]
fn from_the_reader_to_the_lost_job() {
    let story =
        quiet(90.0)
            .core(0, (90.0, 110.0), (0.02, 0.1))
            .core(3, (100.0, 105.3), (0.97, 0.0));
    let story = on_core(story, "kubelet", "812", "0.95", READ);
    let story = gave_up(starved(story, "812", READ), 105.1, "ens5");
    let raylet = subject(SubjectKind::Process, "990");
    let died = [("comm", "raylet"), ("role", "ray"), ("signal", "6")];
    let story = story
        .event("exits", 107.0, &raylet, &PROCESS_FAILED, &died)
        .heard("klog", 111.0);
    let diagnosis = story.judged();
    assert_eq!(
        ids(&diagnosis.chains[0]),
        [
            "CPU002:kubelet",
            "CPU001:3",
            "NET001:3",
            "NIC001:ens5",
            "JOB001:raylet"
        ]
    );
    assert_eq!(diagnosis.chains.len(), 1, "{:?}", diagnosis.chains);
    for (cause, effect) in [("CPU002:kubelet", "NET001:3"), ("NET001:3", "NIC001:ens5")] {
        let link = link(&diagnosis, cause, effect).expect("joined");
        assert_eq!(link.confidence, Confidence::CERTAIN, "{link:?}");
    }
    let root = diagnosis.root().expect("a cause");
    assert_eq!(root.as_str(), "CPU002:kubelet");
}

#[test]
fn a_saturated_core_accuses_nobody_of_walking() {
    let story = quiet(90.0).core(3, (100.0, 105.3), (0.97, 0.0));
    let diagnosis = on_core(story, "dd", "7", "0.96", ZERO).judged();
    let all: Vec<FindingId> = diagnosis.findings.iter().map(Finding::id).collect();
    assert_eq!(ids(&all), ["CPU001:3"]);
    assert_eq!(diagnosis.root(), None);
}

#[test]
fn a_reader_beside_a_greater_hog_is_not_its_cause() {
    let story = quiet(90.0).core(3, (100.0, 105.3), (0.97, 0.0));
    let story = on_core(story, "dd", "7", "0.7", ZERO);
    let story = starved(on_core(story, "kubelet", "812", "0.25", READ), "7", ZERO);
    let diagnosis = story.judged();
    assert!(link(&diagnosis, "CPU002:kubelet", "CPU001:3").is_none());
    assert!(link(&diagnosis, "CPU002:kubelet", "NET001:3").is_none());
    assert!(link(&diagnosis, "CPU001:3", "NET001:3").is_some());
    assert_eq!(
        diagnosis.separations.len(),
        2,
        "{:?}",
        diagnosis.separations
    );
}

#[test]
fn a_reset_of_another_device_or_time_stays_alone() {
    let story = gave_up(starved(quiet(90.0), "7", ZERO), 95.0, "ens5").heard("klog", 111.0);
    let diagnosis = story.judged();
    assert!(link(&diagnosis, "NET001:3", "NIC001:ens5").is_none());
    assert_eq!(diagnosis.separations.len(), 1);
    // At the right time, but another device: possible, as the core may poll both.
    let story = gave_up(starved(quiet(90.0), "7", ZERO), 105.1, "ens9");
    let diagnosis = story.judged();
    let link = link(&diagnosis, "NET001:3", "NIC001:ens9").expect("joined");
    assert_eq!(link.confidence, Confidence::POSSIBLE);
}

#[test]
fn a_reset_from_before_the_watch_is_joined_with_care() {
    let story = gave_up(starved(quiet(90.0), "7", ZERO), 20.0, "ens5");
    let diagnosis = story.judged();
    let link = link(&diagnosis, "NET001:3", "NIC001:ens5").expect("joined");
    assert_eq!(link.confidence, Confidence::POSSIBLE);
    assert!(
        link.evidence
            .iter()
            .any(|one| one.text.contains("before its NAPI polling was watched"))
    );
}

#[test]
fn a_lockup_explains_a_reset_of_its_core() {
    let lockup = [
        ("cpu", "3"),
        ("comm", "java"),
        ("pid", "991"),
        ("stuck_seconds", "22"),
    ];
    let ens5 = subject(SubjectKind::Device, "ens5");
    let story = quiet(90.0)
        .line(60.0, &Subject::cpu(3), "soft_lockup", &lockup)
        .line(
            45.0,
            &ens5,
            "nic_tx_timeout",
            &[("device", "ens5"), ("queue", "5"), ("cpu", "3")],
        );
    let diagnosis = story.judged();
    let link = link(&diagnosis, "KRN001:3", "NIC001:ens5").expect("joined");
    assert_eq!(link.confidence, Confidence::CERTAIN);
}
