//! What to type about a saturated CPU.

use sexton_model::finding::{Remedy, RemedyKind};
use sexton_model::subject::{Subject, SubjectKind};

use crate::evidence::owners;
use crate::words::unit_name::systemctl;

/// What gives others their share, by who has the time, and whether it is of some cores alone.
pub(super) fn of(subject: &Subject, is_of_some: bool) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if is_of_some {
        remedies.push(Remedy::advice(
            RemedyKind::Prevent,
            "let what waits run on more cores (CPUAffinity=, AllowedCPUs=, cpuset, taskset)",
        ));
    }
    if subject.kind == SubjectKind::Unit {
        let unit = &subject.name;
        let set = systemctl("set-property --runtime", unit);
        remedies.push(Remedy::command(
            RemedyKind::Stop,
            format!("give other units more of the CPU than {unit} until the next boot"),
            format!("{set} CPUWeight=20"),
        ));
        remedies.push(Remedy::command(
            RemedyKind::Look,
            format!("see what {unit} is doing"),
            systemctl("status", unit),
        ));
    }
    remedies.push(Remedy::advice(
        RemedyKind::Prevent,
        match subject.kind {
            SubjectKind::Container => {
                "give the container fewer CPU shares or a CPU limit".to_owned()
            }
            SubjectKind::Unit => format!("set CPUWeight= or CPUQuota= of {}", subject.name),
            SubjectKind::Node => "move work to another node, or add cores".to_owned(),
            _ => format!(
                "run {} with nice, or with a CPU quota",
                owners::words(subject)
            ),
        },
    ));
    remedies.push(Remedy::command(
        RemedyKind::Look,
        "see who uses the CPU now",
        "ps -eo pid,ni,pcpu,comm,cgroup --sort=-pcpu | head -n 20",
    ));
    remedies
}
