//! Links between vital signs: each with findings whose evidence meets, and with findings that only
//! look alike.

use sexton_model::fact::process::{BlockedTasks, TASKS_BLOCKED};
use sexton_model::fact::unit::UNIT_STARTED;
use sexton_model::finding::{Confidence, Episode, Finding, FindingId, Severity};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::timeline::Records;

use super::{LINKS, Meeting};
use crate::case::Case;
use crate::policy::Policy;
use crate::testing::story::{Story, at, subject};

/// A finding about a subject from one second to another, that touches these.
fn finding(
    code: &'static str,
    about: &Subject,
    (from, to): (f64, f64),
    touches: &[&Subject],
) -> Finding {
    let mut touched = vec![about.clone()];
    touched.extend(touches.iter().map(|one| (*one).clone()));
    Finding {
        code,
        subject: about.clone(),
        severity: Severity::Warning,
        confidence: Confidence::CERTAIN,
        title: String::new(),
        figure: String::new(),
        since: None,
        evidence: Vec::new(),
        remedies: Vec::new(),
        episodes: vec![Episode {
            from: at(from),
            to: at(to),
            touched: touched.clone(),
        }],
        touched,
    }
}

/// How sure it is that the first causes the second, where these are the records; `None` when they
/// are not joined.
fn joined(story: &Story, cause: &Finding, effect: &Finding) -> Option<Confidence> {
    let records = Records::new(story.records().to_vec());
    let policy = Policy::default();
    let case = Case::new(&records, &policy);
    let links = LINKS.iter();
    let mut links = links.filter(|link| (link.cause, link.effect) == (cause.code, effect.code));
    let link = links.next().expect("there is such a link");
    match (link.meet)(&case, cause, effect) {
        Meeting::Joined(sure, evidence) => {
            assert!(!evidence.is_empty(), "it says why");
            Some(sure)
        }
        _ => None,
    }
}

fn unit(name: &str) -> Subject {
    subject(SubjectKind::Unit, name)
}

fn process(pid: &str) -> Subject {
    subject(SubjectKind::Process, pid)
}

#[test]
fn a_storm_has_the_cores_when_it_is_the_same_unit_at_the_same_time() {
    let none = Story::default();
    let storm = finding("TASK003", &unit("storm.service"), (10.0, 30.0), &[]);
    let same = finding("CPU003", &unit("storm.service"), (12.0, 30.0), &[]);
    assert_eq!(joined(&none, &storm, &same), Some(Confidence::CERTAIN));
    let other = finding("CPU003", &unit("build.service"), (12.0, 30.0), &[]);
    assert_eq!(joined(&none, &storm, &other), None);
    let later = finding("CPU003", &unit("storm.service"), (60.0, 80.0), &[]);
    assert_eq!(joined(&none, &storm, &later), None);
}

#[test]
fn what_makes_work_has_the_core_that_its_process_or_unit_has() {
    let none = Story::default();
    for code in ["TASK003", "CPU003", "UNIT002"] {
        let work = finding(code, &unit("w.service"), (10.0, 30.0), &[&process("77")]);
        let core = |pid: &str, owner: &str| {
            let touched = [&process(pid), &unit(owner)];
            finding("CPU001", &Subject::cpu(0), (11.0, 14.0), &touched)
        };
        let own = joined(&none, &work, &core("77", "w.service"));
        assert_eq!(own, Some(Confidence::CERTAIN), "{code}");
        let child = joined(&none, &work, &core("78", "w.service"));
        assert_eq!(child, Some(Confidence::LIKELY), "{code}");
        let stranger = joined(&none, &work, &core("79", "other.service"));
        assert_eq!(stranger, None, "{code}");
        let later = Finding {
            episodes: finding("CPU001", &Subject::cpu(0), (90.0, 94.0), &[]).episodes,
            ..core("77", "w.service")
        };
        assert_eq!(joined(&none, &work, &later), None, "{code}");
        let nameless = finding("CPU001", &Subject::cpu(0), (11.0, 14.0), &[]);
        assert_eq!(joined(&none, &work, &nameless), None, "{code}");
    }
}

#[test]
fn errors_of_a_disk_slow_that_disk() {
    let none = Story::default();
    let device = |name: &str| subject(SubjectKind::Device, name);
    let controller = device("nvme0");
    let errors = finding("HW001", &controller, (10.0, 11.0), &[]);
    let slow = |disk: &str| finding("IO001", &device(disk), (10.0, 30.0), &[]);
    let own = joined(&none, &errors, &slow("nvme0n1"));
    assert_eq!(own, Some(Confidence::LIKELY));
    assert_eq!(joined(&none, &errors, &slow("sda")), None);
}

#[test]
fn an_error_of_the_hardware_resets_its_network_device() {
    use sexton_model::fact::nic::NIC_IDENTITY;
    let device = |name: &str| subject(SubjectKind::Device, name);
    let says = [("bus", "0000:00:05.0")];
    let story = Story::default().event("nics", 5.0, &device("ens5"), &NIC_IDENTITY, &says);
    let errors = |name: &str| finding("HW001", &device(name), (10.0, 10.0), &[]);
    let reset = |at: f64| finding("NIC001", &device("ens5"), (at - 5.0, at), &[]);
    let likely = Some(Confidence::LIKELY);
    let address = errors("0000:00:05.0");
    assert_eq!(joined(&story, &address, &reset(12.0)), likely);
    assert_eq!(joined(&story, &errors("ens5"), &reset(12.0)), likely);
    let other = errors("0000:00:06.0");
    assert_eq!(joined(&story, &other, &reset(12.0)), None);
    // The error came after the reset, long before it, or was corrected.
    assert_eq!(joined(&story, &address, &reset(9.0)), None);
    assert_eq!(joined(&story, &address, &reset(500.0)), None);
    let corrected = Finding {
        severity: Severity::Note,
        ..errors("0000:00:05.0")
    };
    assert_eq!(joined(&story, &corrected, &reset(12.0)), None);
}

#[test]
fn tasks_hang_because_a_disk_does_not_answer() {
    let disk = |name: &str| subject(SubjectKind::Device, name);
    let timeout = |story: Story| {
        let says = [("device", "nvme0")];
        story.line(20.0, &disk("nvme0"), "disk_timeout", &says)
    };
    let errors = |name: &str| finding("HW001", &disk(name), (20.0, 20.0), &[]);
    let hung = |function: &str, from: f64| {
        let about = subject(SubjectKind::Task, function);
        finding("TASK001", &about, (from, from + 20.0), &[])
    };
    let (waits, locks) = ("folio_wait_bit_common", "percpu_rwsem_wait");
    let likely = Some(Confidence::LIKELY);
    let check = |function: &str, name: &str, from: f64, expected| {
        let story = timeout(blocked(function));
        let met = joined(&story, &errors(name), &hung(function, from));
        assert_eq!(met, expected, "{function} {name} {from}");
    };
    check(waits, "nvme0", 25.0, likely);
    // The request began before the kernel logged that it timed out.
    check(waits, "nvme0", 5.0, likely);
    check(waits, "nvme0", 200.0, None);
    check(locks, "nvme0", 25.0, None);
    // It is no disk, but memory or a bus.
    check(waits, "MC0", 25.0, None);
}

#[test]
fn what_saturates_a_disk_has_the_core_when_it_is_the_same_process_then() {
    let none = Story::default();
    let disk = subject(SubjectKind::Device, "vda");
    let busy = finding("IO001", &disk, (10.0, 30.0), &[&process("812")]);
    let core = |pid: &str, from: f64| {
        finding(
            "CPU001",
            &Subject::cpu(0),
            (from, from + 4.0),
            &[&process(pid)],
        )
    };
    let own = joined(&none, &busy, &core("812", 12.0));
    assert_eq!(own, Some(Confidence::CERTAIN));
    assert_eq!(joined(&none, &busy, &core("812", 90.0)), None);
    assert_eq!(joined(&none, &busy, &core("7", 12.0)), None);
    let nameless = finding("CPU001", &Subject::cpu(0), (12.0, 16.0), &[]);
    assert_eq!(joined(&none, &busy, &nameless), None);
}

/// Tasks that hang in this function of the kernel.
fn blocked(function: &str) -> Story {
    let about = subject(SubjectKind::Task, function);
    let says = BlockedTasks {
        n: 3,
        longest_ns: 12_000_000_000,
        stack: vec![function.to_owned(), "vfs_write".to_owned()],
        ..BlockedTasks::default()
    };
    Story::default().says("processes", 25.0, &about, &TASKS_BLOCKED, says)
}

#[test]
fn tasks_hang_because_of_a_disk_only_when_they_wait_for_one_then() {
    let disk = subject(SubjectKind::Device, "sda");
    let slow = finding("IO001", &disk, (10.0, 30.0), &[]);
    let hung = |function: &str, from: f64| {
        let about = subject(SubjectKind::Task, function);
        finding("TASK001", &about, (from, from + 10.0), &[])
    };
    let (waits, locks) = ("folio_wait_bit_common", "percpu_rwsem_wait");
    let meets = joined(&blocked(waits), &slow, &hung(waits, 15.0));
    assert_eq!(meets, Some(Confidence::POSSIBLE));
    let later = joined(&blocked(waits), &slow, &hung(waits, 90.0));
    assert_eq!(later, None);
    let lock = joined(&blocked(locks), &slow, &hung(locks, 15.0));
    assert_eq!(lock, None);
}

#[test]
fn an_oom_kill_ends_the_unit_that_is_restarted() {
    let hungry = unit("hungry.service");
    let kill = |unit: &Subject| {
        let node = Subject::node();
        finding("MEM001", unit, (10.0, 10.0), &[unit, &node])
    };
    let restarts = finding("UNIT001", &hungry, (10.0, 30.0), &[]);
    let started = |n: usize| {
        (0..n).fold(Story::default(), |story, i| {
            story.event("units", 11.0 + i as f64, &hungry, &UNIT_STARTED, &[])
        })
    };
    let each = joined(&started(2), &kill(&hungry), &restarts);
    assert_eq!(each, Some(Confidence::LIKELY));
    // Most starts have no kill: something else ends the unit, too.
    let few = joined(&started(9), &kill(&hungry), &restarts);
    assert_eq!(few, Some(Confidence::POSSIBLE));
    let other = joined(&started(2), &kill(&unit("db.service")), &restarts);
    assert_eq!(other, None);
}

#[test]
fn a_storm_of_a_plain_shell_is_one_chain() {
    use sexton_model::fact::exit::PROCESS_MAKER;
    use sexton_model::fact::stack::CPU_USE;
    let mut story = super::quiet(9.0)
        .heard("runq", 9.0)
        .heard("pressure", 9.0)
        .core(0, (9.0, 30.0), (0.5, 0.45))
        .core(1, (9.0, 30.0), (0.5, 0.45));
    for second in 10..30 {
        let says = [
            ("comm", "sh"),
            ("child_comm", "true"),
            ("cgroup", "/"),
            ("n", "1960"),
            ("n_short", "1960"),
            ("n_all", "2000"),
            ("interval_ns", "1000000000"),
        ];
        let second = f64::from(second);
        story = story.event("exits", second, &process("77"), &PROCESS_MAKER, &says);
    }
    for (comm, cores) in [("true", "1.4"), ("sh", "0.4")] {
        let says = [
            ("comm", comm),
            ("cgroup", "/"),
            ("n_processes", "900"),
            ("cores", cores),
            ("kernel_cores", cores),
            ("interval_ns", "10000000000"),
        ];
        let about = subject(SubjectKind::Task, comm);
        story = story.event("stacks", 25.0, &about, &CPU_USE, &says);
    }
    let diagnosis = story.judged();
    assert_eq!(
        super::ids(&diagnosis.chains[0]),
        ["TASK003:sh", "CPU003:sh"]
    );
    assert_eq!(diagnosis.root().map(FindingId::as_str), Some("TASK003:sh"));
}
