//! A unit is stopped with all that triggers it, what it left is freed, and all of that is
//! taken back: on a real systemd.

use std::time::Duration;

use serde_json::Value;
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton;
use sexton_kernel_tests::systemd::Systemd;
use sexton_lab::script::WITHOUT_BPF;

const UNITS: [(&str, &str); 4] = [
    (
        "churn.service",
        "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=100ms\n\
         ExecStart=/bin/sh -c \"head -c 8192 /dev/zero >> /job/churn.log\"\n\
         [Install]\nWantedBy=multi-user.target\n",
    ),
    (
        "churn.timer",
        "[Timer]\nOnActiveSec=1s\nOnUnitInactiveSec=1s\nAccuracySec=100ms\n\
         [Install]\nWantedBy=timers.target\n",
    ),
    (
        "churn.socket",
        "[Socket]\nListenStream=/run/churn.sock\n[Install]\nWantedBy=sockets.target\n",
    ),
    (
        "quiet.service",
        "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n",
    ),
];

/// Units that came with the image lie where a package would put them: what lies in `/etc`
/// is the administrator's own and cannot be masked.
const BEGIN: &str = r#"
mkdir -p /usr/local/lib/systemd/system
mv /etc/systemd/system/churn.* /usr/local/lib/systemd/system/ 2>/dev/null || \
    mv /run/systemd/system/churn.* /usr/local/lib/systemd/system/
systemctl daemon-reload
systemctl enable churn.service churn.timer churn.socket quiet.service
systemctl start churn.socket churn.timer quiet.service
systemctl start --no-block churn.service
sleep 6
state() {
    for u in churn.service churn.timer churn.socket quiet.service; do
        echo "$u $(systemctl is-enabled $u) $(systemctl show --value -p ActiveState $u)"
    done
}
"#;

fn run(job: &str) -> Systemd {
    for need in [Need::Root, Need::Bpf, Need::Sexton, Need::Systemd] {
        require(need);
    }
    let sexton = sexton::binary().expect("required");
    let programs = [sexton.to_str().expect("a plain path")];
    let job = format!("{BEGIN}\n{job}");
    Systemd::run(&UNITS, &programs, &job, Duration::from_secs(120)).expect("a run")
}

fn states(systemd: &Systemd, name: &str) -> Vec<(String, String, String)> {
    let text = systemd.read(name).expect("states");
    let word =
        |words: &mut std::str::SplitWhitespace<'_>| words.next().unwrap_or_default().to_owned();
    text.lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            (word(&mut words), word(&mut words), word(&mut words))
        })
        .collect()
}

#[test]
#[ignore = "needs root, bpf, sexton and systemd: run cargo xtask test kernel"]
fn a_unit_and_its_triggers_are_stopped_purged_and_restored() {
    let systemd = run(r#"
        state > before
        ./sexton fix --unit churn.service --apply --yes --json > report || echo $? > code
        state > fixed
        sleep 2
        state > later
        ./sexton fix --undo --yes > undone
        sleep 1
        state > restored
        ./sexton fix --undo --yes 2> again || true
        systemctl stop churn.socket churn.timer churn.service
    "#);
    let report: Value =
        serde_json::from_str(&systemd.read("report").expect("a report")).expect("JSON");
    assert!(report["before"].as_u64() >= Some(11), "{report:#}");
    assert!(report["after"].as_u64() <= Some(2), "{report:#}");
    assert!(report["still_leaking"].is_null(), "{report:#}");

    for name in ["fixed", "later"] {
        for (unit, enabled, active) in states(&systemd, name) {
            let is_quiet = unit == "quiet.service";
            let expected = if is_quiet { "enabled" } else { "masked" };
            assert_eq!(enabled, expected, "{name} {unit}");
            assert_eq!(active == "active", is_quiet, "{name} {unit} {active}");
        }
    }
    let enabled = |name| -> Vec<(String, String)> {
        let states = states(&systemd, name).into_iter();
        states.map(|(unit, enabled, _)| (unit, enabled)).collect()
    };
    assert_eq!(enabled("before"), enabled("restored"));
    for (unit, _, active) in states(&systemd, "restored") {
        assert!(
            active == "active" || active == "activating",
            "{unit} {active}"
        );
    }
    let again = systemd.read("again").expect("it was asked again");
    assert!(again.contains("nothing to take back"), "{again}");
}

/// The slice stays when the unit is gone, and nothing in it is alive: then the kernel may be asked to
/// empty it, though nothing names what it holds.
const IN_SLICE: &str = r#"
mkdir -p /run/systemd/system/churn.service.d
printf '[Service]\nSlice=jobs.slice\n' > /run/systemd/system/churn.service.d/slice.conf
systemctl stop churn.socket churn.timer churn.service
systemctl daemon-reload
systemctl start jobs.slice churn.socket churn.timer
systemctl start --no-block churn.service
sleep 6
"#;

#[test]
#[ignore = "needs root, sexton and systemd: run cargo xtask test kernel"]
fn without_bpf_a_unit_is_stopped_and_its_parent_asked_to_let_go() {
    let job = r#"
        mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
        $sexton fix --unit churn.service --apply --yes --json > report || echo $? > code
        state > fixed
        systemctl stop churn.socket churn.timer churn.service
    "#;
    let systemd = run(&format!("{IN_SLICE}{WITHOUT_BPF}{job}"));
    let report: Value =
        serde_json::from_str(&systemd.read("report").expect("a report")).expect("JSON");
    for (unit, enabled, active) in states(&systemd, "fixed") {
        let is_quiet = unit == "quiet.service";
        assert_eq!(enabled == "masked", !is_quiet, "{unit} {enabled}");
        assert_eq!(active == "active", is_quiet, "{unit} {active}");
    }
    let steps = report["steps"].as_array().expect("steps");
    let outcome = |title: &str| {
        let mut steps = steps.iter().rev();
        let step = steps.find(|step| step["title"].as_str().expect("text").contains(title));
        step.map(|step| step["outcome"].as_str().expect("text"))
    };
    assert_eq!(outcome("drop all clean page cache"), Some("withheld"));
    // Others leave and free some meanwhile: this kernel's count is of all of them.
    let reclaim = steps
        .iter()
        .find(|step| step["outcome"] == "done" && !step["before"].is_null());
    let reclaim = reclaim.unwrap_or_else(|| panic!("nothing was reclaimed: {report:#}"));
    let number = |key: &str| reclaim[key].as_u64().expect("a count");
    assert!(number("before") >= number("after") + 11, "{report:#}");
    let typed = report["plan"].to_string();
    let is_asked = |file: &str| typed.contains(&format!("jobs.slice/{file}"));
    assert!(
        is_asked("memory.force_empty") || is_asked("memory.reclaim"),
        "{typed}"
    );
}

#[test]
#[ignore = "needs root, bpf, sexton and systemd: run cargo xtask test kernel"]
fn a_kill_at_any_moment_leaves_an_undo_file_that_works() {
    let systemd = run(r#"
        state > before
        for i in 05 10 15 20 30 40 60 80; do
            ./sexton fix --unit churn.service --apply --yes --json > /dev/null 2>&1 &
            pid=$!
            sleep 0.$i
            kill -9 $pid 2>/dev/null || true
            wait $pid || true
            while ./sexton fix --undo --yes > told 2> trouble; do :; done
            grep -q 'nothing to take back' trouble || cat trouble told >> troubles
        done
        sleep 1
        state > restored
        touch troubles
        systemctl stop churn.socket churn.timer churn.service
    "#);
    assert_eq!(systemd.read("troubles").expect("troubles"), "");
    let before = states(&systemd, "before");
    for ((unit, was, _), (_, is, active)) in before.iter().zip(states(&systemd, "restored")) {
        assert_eq!(*was, is, "{unit}");
        assert!(
            active == "active" || active == "activating",
            "{unit} {active}"
        );
    }
}

/// A socket refuses to listen for a service that runs. A fix that was killed between the two
/// leaves just that.
#[test]
#[ignore = "needs root, bpf, sexton and systemd: run cargo xtask test kernel"]
fn a_socket_listens_again_though_its_service_runs_already() {
    let systemd = run(r#"
        systemctl stop churn.timer churn.service
        sed -i 's/^ExecStart=.*/ExecStart=sleep infinity/' /usr/local/lib/systemd/system/churn.service
        systemctl daemon-reload
        systemctl start churn.service
        ./sexton fix --unit churn.service --apply --yes --json > report || echo $? > code
        systemctl unmask churn.service
        systemctl start churn.service
        ./sexton fix --undo --yes > undone 2>&1 || echo "left with $?" >> undone
        sleep 1
        state > restored
        systemctl stop churn.socket churn.timer churn.service
    "#);
    let undone = systemd.read("undone").expect("it was undone");
    assert!(!undone.contains("left with"), "{undone}");
    for (unit, enabled, active) in states(&systemd, "restored") {
        assert_eq!(enabled, "enabled", "{unit}");
        let is_stopped = unit == "churn.timer";
        assert_eq!(active != "active", is_stopped, "{unit} {active}");
    }
}

#[test]
#[ignore = "needs root, bpf, sexton and systemd: run cargo xtask test kernel"]
fn restarts_are_bounded_where_a_mask_may_be_too_much() {
    let systemd = run(r#"
        systemctl stop churn.timer churn.socket
        ./sexton fix --unit churn.service --how bound --apply --yes --json > report || true
        sleep 3
        systemctl show --value -p Result churn.service > result
        systemctl is-enabled churn.service > enabled
        ./sexton fix --undo --yes > undone
        ls /etc/systemd/system/ > left
        systemctl stop churn.service
    "#);
    assert_eq!(
        systemd.read("result").expect("a result").trim(),
        "start-limit-hit"
    );
    assert_eq!(systemd.read("enabled").expect("a state").trim(), "enabled");
    let left = systemd.read("left").expect("a list");
    assert!(!left.contains("churn.service.d"), "{left}");
}
