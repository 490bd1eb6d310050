//! Trouble of a known maker is led back to that maker, and work that drains to nobody.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use sexton_kernel_tests::churner::{Churner, LOOP};
use sexton_kernel_tests::dump;
use sexton_kernel_tests::judging::{judge, watch};
use sexton_kernel_tests::nursery::{Nursery, Pin};
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::systemd::Systemd;
use sexton_model::diagnosis::Diagnosis;
use sexton_model::fact::memcg::MEMCG_ORIGIN;
use sexton_model::finding::Finding;
use sexton_model::record::Record;
use sexton_model::subject::Subject;

const LEAKER: &str = env!("CARGO_BIN_EXE_leaker");
const DUMP: &str = env!("CARGO_BIN_EXE_sensor-dump");

/// Four censuses, and more than the ten seconds that churn must last.
const TIME: Duration = Duration::from_secs(15);

fn nursery(name: &str) -> Nursery {
    require(Need::Root);
    require(Need::Bpf);
    Nursery::new(name).expect("a cgroup of our own")
}

/// A parent in the nursery, for one maker.
fn parent(nursery: &Nursery, name: &str) -> PathBuf {
    let parent = nursery.keep(name).expect("made");
    // On v2 what is below has the controller only if this says so; on v1 there is no such file.
    let control = parent.join("cgroup.subtree_control");
    if control.exists() {
        fs::write(control, "+memory").expect("the controller can be handed on");
    }
    parent
}

fn found<'d>(diagnosis: &'d Diagnosis, id: &str) -> &'d Finding {
    let finding = diagnosis
        .findings
        .iter()
        .find(|finding| finding.id().as_str() == id);
    finding.unwrap_or_else(|| panic!("{id} is not among {:#?}", diagnosis.findings))
}

/// Findings that have to do with the nursery.
fn of_nursery<'d>(diagnosis: &'d Diagnosis, nursery: &Nursery) -> Vec<&'d Finding> {
    let is_own = |subject: &Subject| subject.name.starts_with(nursery.path.as_str());
    let findings = diagnosis.findings.iter();
    findings
        .filter(|finding| finding.touched.iter().any(is_own))
        .collect()
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn a_shell_loop_is_led_back_to_its_process() {
    let nursery = nursery("shell");
    let jobs = parent(&nursery, "jobs");
    let churner = Churner::start(&jobs, &nursery.files.join("jobs.log"), "0.2").expect("a loop");
    let diagnosis = judge(watch(&["cgroups", "memcg"], TIME));
    let id = format!("UNIT002:{}", churner.name());
    let pile = format!("MCG001:{}/jobs/run-<n>", nursery.path);
    let chain = diagnosis
        .chains
        .iter()
        .find(|chain| chain[0].as_str() == id);
    let chain =
        chain.unwrap_or_else(|| panic!("no chain begins with {id}: {:#?}", diagnosis.findings));
    assert_eq!(chain[1].as_str(), pile);
    let evidence = &found(&diagnosis, &pile).evidence;
    let log = nursery.files.join("jobs.log");
    let is_named = evidence
        .iter()
        .any(|one| one.text.contains(&log.display().to_string()));
    assert!(is_named, "{evidence:#?}");
    assert!(
        diagnosis
            .forecasts
            .iter()
            .any(|forecast| forecast.n_points >= 3)
    );
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn two_leakers_are_both_named_the_greater_first() {
    let nursery = nursery("two");
    let (large, small) = (parent(&nursery, "large"), parent(&nursery, "small"));
    let slow = Churner::start(&small, &nursery.tmpfs.join("small.out"), "0.3").expect("a loop");
    let fast = Churner::start(&large, &nursery.files.join("large.log"), "0.03").expect("a loop");
    let diagnosis = judge(watch(&["cgroups", "memcg"], TIME));
    let roots: Vec<&str> = diagnosis
        .chains
        .iter()
        .map(|chain| chain[0].as_str())
        .collect();
    let place = |churner: &Churner| {
        let id = format!("UNIT002:{}", churner.name());
        let place = roots.iter().position(|root| *root == id);
        place.unwrap_or_else(|| panic!("{id} is not among {roots:?}"))
    };
    assert!(place(&fast) < place(&slow), "{roots:?}");
    // What a tmpfs pins only deleting frees, and that is said.
    let pile = found(
        &diagnosis,
        &format!("MCG001:{}/small/run-<n>", nursery.path),
    );
    let frees = pile
        .remedies
        .iter()
        .any(|remedy| remedy.text.contains("small.out"));
    assert!(frees, "{:#?}", pile.remedies);
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn a_burst_that_drains_accuses_nobody() {
    let nursery = nursery("drains");
    let watching = thread::spawn(|| watch(&["cgroups", "memcg"], TIME));
    thread::sleep(Duration::from_secs(2));
    let leak = nursery.leak(LEAKER, "job", 401, Pin::Tmpfs).expect("made");
    // Long enough for a census to see them.
    thread::sleep(Duration::from_secs(5));
    drop(leak);
    nursery.delete_files();
    let records = watching.join().expect("it watched");
    let pattern = format!("{}/job-<n>", nursery.path);
    let seen = records
        .iter()
        .filter(|record| record.fact() == Some(&MEMCG_ORIGIN.fact));
    let n_seen = seen
        .filter(|record| *record.subject.name == *pattern)
        .count();
    assert!(n_seen > 0, "no census saw the burst");
    let diagnosis = judge(records);
    assert!(
        of_nursery(&diagnosis, &nursery).is_empty(),
        "{:#?}",
        diagnosis.findings
    );
}

/// A supervisor that systemd sees healthy, and a unit that it restarts.
const UNITS: [(&str, &str); 2] = [
    (
        "churn.service",
        "[Service]\nExecStart=/bin/sh /job/loop /run/memory/sexton-churn /var/tmp/churn.log 0.2\n",
    ),
    (
        "crash.service",
        "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=300ms\n\
         ExecStart=/bin/sh -c \"exit 3\"\n",
    ),
];

/// The memory hierarchy as this systemd may see it: v1 beside its own, or its own.
const JOB: &str = r#"
mkdir /run/memory
mount -t cgroup -o memory none /run/memory || mount --bind /sys/fs/cgroup /run/memory
mkdir /run/memory/sexton-churn
test ! -e /run/memory/sexton-churn/cgroup.subtree_control || echo +memory > /run/memory/sexton-churn/cgroup.subtree_control
cat > loop <<'END'
LOOP
END
systemctl start --no-block churn.service crash.service
./sensor-dump units 27 500 > records
systemctl show --value -p NRestarts churn.service > churn.restarts
systemctl show --value -p ActiveState churn.service > churn.state
systemctl stop churn.service crash.service
rm -f /var/tmp/churn.log
for i in 1 2 3 4 5 6 7 8 9; do
    find /run/memory/sexton-churn -depth -type d -exec rmdir {} \; && break
    sleep 0.3
done
"#;

#[test]
#[ignore = "needs root, bpf and systemd: run cargo xtask test kernel"]
fn a_unit_that_looks_healthy_is_behind_what_its_supervisor_makes() {
    require(Need::Root);
    require(Need::Bpf);
    require(Need::Systemd);
    let job = JOB.replace("LOOP", LOOP);
    let watching = thread::spawn(|| watch(&["cgroups", "memcg"], Duration::from_secs(24)));
    let systemd = Systemd::run(&UNITS, &[DUMP], &job, Duration::from_secs(90)).expect("a run");
    let mut records = watching.join().expect("it watched");
    // Both watched the same trouble; the one outside ended first.
    let end = records.iter().map(|record| record.at).max().expect("some");
    let dumped = systemd.read("records").expect("records");
    records.extend(
        dumped
            .lines()
            .filter_map(record)
            .filter(|record| record.at <= end),
    );
    let state = ["churn.state", "churn.restarts"].map(|file| systemd.read(file).expect("asked"));
    assert_eq!(state.each_ref().map(|text| text.trim()), ["active", "0"]);

    let diagnosis = judge(records);
    let churn = found(&diagnosis, "UNIT002:churn.service");
    assert!(churn.title.contains("is \"active\" but"), "{}", churn.title);
    let pile = diagnosis.links.iter().find(|link| link.cause == churn.id());
    let pile = pile.unwrap_or_else(|| panic!("it causes nothing: {:#?}", diagnosis.findings));
    assert!(
        pile.effect.as_str().ends_with("/sexton-churn/run-<n>"),
        "{}",
        pile.effect
    );
    found(&diagnosis, "UNIT001:crash.service");
    let crash_hides = diagnosis
        .findings
        .iter()
        .any(|f| f.id().as_str() == "UNIT002:crash.service");
    assert!(!crash_hides, "systemd itself tells of that one");
}

/// A record of the sensor that ran inside.
fn record(line: &str) -> Option<Record> {
    dump::record(&serde_json::from_str(line).expect("a line of JSON"))
}
