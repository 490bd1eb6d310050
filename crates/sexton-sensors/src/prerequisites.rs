//! What every sensor builds on: privileges, and what the kernel lets them do.

use sexton_host::capabilities::Capabilities;
use sexton_host::{Host, machine};
use sexton_model::sight::Sight;

use crate::bpf;

/// What sexton uses of root's privileges, and for what.
const PRIVILEGES: [(&str, &str); 4] = [
    ("CAP_BPF", "load BPF programs"),
    ("CAP_PERFMON", "let them read kernel memory"),
    (
        "CAP_DAC_READ_SEARCH",
        "read the state of container runtimes",
    ),
    ("CAP_SYSLOG", "read the kernel's log"),
];

/// Examines what sensors build on.
pub fn prerequisites(host: &Host) -> Vec<Sight> {
    vec![privileges(host), type_information(host), lockdown(host)]
}

fn privileges(host: &Host) -> Sight {
    const WHAT: &str = "privileges";
    let held = match Capabilities::of_self(host) {
        Ok(held) => held,
        Err(error) => return Sight::blind(WHAT, error.chain()),
    };
    let missing: Vec<String> = PRIVILEGES
        .iter()
        .filter(|(name, _)| !held.has(name))
        .map(|(name, purpose)| format!("{name} ({purpose})"))
        .collect();
    if missing.is_empty() {
        return Sight::sees(WHAT, PRIVILEGES.map(|(name, _)| name).join(", "));
    }
    Sight::blind(WHAT, format!("missing {}", missing.join(", ")))
        .partly()
        .with_remedy("run as root: sudo sexton doctor")
}

fn type_information(host: &Host) -> Sight {
    const WHAT: &str = "kernel types (BTF)";
    if machine::has_type_information(host) {
        // Whether a program fits is for each sensor to say: it tries.
        return Sight::sees(WHAT, "the kernel describes its types");
    }
    if let Some(file) = sexton_bpf::types::file() {
        return Sight::sees(WHAT, format!("by {}", file.display()));
    }
    let blind = Sight::blind(WHAT, "the kernel does not describe its types");
    match sexton_bpf::shares_memory() {
        true => blind.with_remedy(bpf::NO_TYPES),
        // They would help no program.
        false => blind,
    }
}

fn lockdown(host: &Host) -> Sight {
    const WHAT: &str = "kernel lockdown";
    match machine::lockdown(host).as_deref() {
        Some("confidentiality") => Sight::blind(
            WHAT,
            "confidentiality: BPF programs may not read kernel memory",
        )
        .with_remedy("boot with lockdown=integrity or none"),
        Some(mode) => Sight::sees(WHAT, mode),
        None => Sight::sees(WHAT, "not in force"),
    }
}
