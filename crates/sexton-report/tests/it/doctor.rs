//! The check-up as text and JSON.

use sexton_model::sight::{Checkup, Clarity, SensorSight, Sight};
use sexton_report::doctor::{json, text};
use sexton_testkit::check_snapshot;

#[test]
fn what_is_not_seen_comes_with_a_remedy() {
    let checkup = Checkup {
        kernel: "5.10.0-46-cloud-amd64".into(),
        user: "user 1000".into(),
        ground: vec![
            Sight::blind("privileges", "missing CAP_BPF (load BPF programs)")
                .partly()
                .with_remedy("run as root"),
            Sight::sees("kernel lockdown", "not in force"),
        ],
        sensors: vec![SensorSight {
            sensor: "memcg",
            watches: "memory cgroups: live, dying, leaked",
            clarity: Clarity::Partly,
            sights: vec![
                Sight::sees("memory controller", "cgroup v2, mounted at /sys/fs/cgroup"),
                Sight::blind("bpf-walk", "needs CAP_BPF and CAP_PERFMON")
                    .with_remedy("run as root: sudo sexton doctor"),
            ],
        }],
    };
    let (mut for_people, mut for_programs) = (Vec::new(), Vec::new());
    text(&mut for_people, &checkup).expect("a vector takes all");
    json(&mut for_programs, &checkup).expect("a vector takes all");
    check_snapshot!("doctor.txt", String::from_utf8(for_people).expect("text"));
    check_snapshot!(
        "doctor.json",
        String::from_utf8(for_programs).expect("text")
    );
}
