//! The shell script that plays a night in namespaces: all parts share one watch.

use std::fmt::Write as _;

use super::trouble::Trouble;
use super::{LEAD_MS, Night, Part};
use crate::script::{PRELUDE, PROOFS, unit_file};

/// The log of a kernel that nights share holds lines of earlier ones: only those of the watch count.
const POLICY: &str = "policy='--policy policy.toml'\nfor rule in MEM001 HW001 IO002 CPU005; do\n\
    printf '[rules.%s]\\nbefore = 0\\n' $rule\ndone > policy.toml\n";

/// The file in which a part says whether it happened, by its place in the night.
pub(super) fn proof(i: usize) -> String {
    format!("happened-{i}")
}

/// How long sexton watches: as long as the slowest of the parts needs.
pub fn watch_seconds(night: &Night, troubles: &[Trouble]) -> u32 {
    let parts = parts(night, troubles);
    let seconds = parts.map(|(_, trouble)| trouble.watch_seconds);
    seconds.max().unwrap_or_default()
}

/// The script of one night.
pub fn script(night: &Night, troubles: &[Trouble]) -> String {
    let mut text = format!(
        "pause=0.3\nsexton=./sexton\n{POLICY}{PRELUDE}\n\
         cat > proofs <<'END_OF_PROOFS'\n{PROOFS}\nEND_OF_PROOFS\n"
    );
    for (part, trouble) in parts(night, troubles) {
        for (name, unit) in &trouble.units {
            text += &unit_file(&part.fill(name), &part.fill(unit));
        }
    }
    text += "systemctl daemon-reload\n";
    for (part, trouble) in parts(night, troubles) {
        let _ = writeln!(text, "{}", part.fill(&trouble.setup));
    }
    for (part, trouble) in parts(night, troubles) {
        let begins = part.begins_ms as f64 / 1000.0;
        let begin = part.fill(&trouble.begin);
        let _ = writeln!(text, "(sleep {begins}\n{begin}\n) &");
    }
    let (lead, watch) = (LEAD_MS as f64 / 1000.0, watch_seconds(night, troubles));
    let _ = writeln!(text, "sleep {lead}\nmark ready\nlook {watch}");
    for (i, (part, trouble)) in parts(night, troubles).enumerate() {
        let (name, happened) = (proof(i), part.fill(&trouble.happened));
        let _ = writeln!(
            text,
            "holds {name} <<'END_OF_PROOF'\n{happened}\nEND_OF_PROOF"
        );
    }
    for (part, trouble) in parts(night, troubles) {
        let _ = writeln!(text, "{}", part.fill(&trouble.end));
    }
    text + "end_engine\n"
}

/// Parts with the files that they were drawn from.
pub(super) fn parts<'a>(
    night: &'a Night,
    troubles: &'a [Trouble],
) -> impl Iterator<Item = (&'a Part, &'a Trouble)> {
    night.parts.iter().filter_map(|part| {
        let mut troubles = troubles.iter();
        let trouble = troubles.find(|trouble| trouble.name == part.trouble)?;
        Some((part, trouble))
    })
}
