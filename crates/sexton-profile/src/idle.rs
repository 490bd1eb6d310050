//! Idle cores in files that do not say so.
//!
//! perf samples a core that has nothing to run as thread 0, `swapper`. That thread also runs
//! interrupts, so its stack decides. The words are those of FlameScope, so that its heat map
//! and ours show the same cells: `app/perf/regexp.py` of <https://github.com/Netflix/flamescope>
//! at `be26595f`.

use sexton_model::stack::{Frame, StackTables};

/// The thread that runs when nothing else does.
pub const THREAD: &str = "swapper";

const WORDS: [&str; 6] = [
    "cpuidle",
    "cpu_idle",
    "cpu_bringup_and_idle",
    "native_safe_halt",
    "xen_hypercall_sched_op",
    "xen_hypercall_vcpu_op",
];

/// Whether an idle core waits in this frame.
pub(crate) fn is_idle_frame(tables: &StackTables, frame: &Frame) -> bool {
    let names = [frame.symbol, frame.module];
    names
        .into_iter()
        .flatten()
        .any(|name| has_idle_word(tables.name(name)))
}

fn has_idle_word(text: &str) -> bool {
    WORDS.iter().any(|word| text.contains(word))
}
