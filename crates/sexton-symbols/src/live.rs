//! Names of what runs now. Files are opened through the process that has them mapped, read in
//! pieces, and neither kept open nor mapped; memory is bounded whatever runs.

mod behind;
mod files;
mod kernel;
mod made;
mod programs;

use std::sync::Arc;

use sexton_model::stack::CodeKind;

pub use kernel::{Kernel, read_kallsyms};
pub use programs::{Programs, Ran};

/// A place in code. With a symbol it is the function's beginning: samples of one function
/// are one place, which is what flame graphs show and what keeps recordings small.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// Whose code it is.
    pub kind: CodeKind,
    /// What the function is called, if that is known.
    pub symbol: Option<Arc<str>>,
    /// What it is in: a file, `[kernel]`, a module of the kernel, `[exited]` and the like.
    pub module: Option<Arc<str>>,
    /// The offset in the file; the address itself for the kernel and for code made at run time.
    pub address: u64,
}

impl Place {
    /// Whether this is where the kernel serves softirqs; 6.10 renamed it.
    pub fn is_softirq(&self) -> bool {
        let name = self.symbol.as_deref();
        self.kind == CodeKind::Kernel && matches!(name, Some("handle_softirqs" | "__do_softirq"))
    }

    /// Whether this is where a core that has nothing to do waits.
    pub fn is_idle_loop(&self) -> bool {
        let name = self.symbol.as_deref();
        self.kind == CodeKind::Kernel && matches!(name, Some("cpu_startup_entry" | "do_idle"))
    }

    /// Whether this is where an interrupt enters the kernel, or ends. Names differ by
    /// architecture and have changed: entries of x86 before 5.8 have no `asm_`.
    pub fn is_interrupt(&self) -> bool {
        let name = self.symbol.as_deref().unwrap_or("");
        let begins = [
            "asm_sysvec_",
            "sysvec_",
            "irq_exit",
            "__irq_exit",
            "el1_irq",
            "el0_irq",
        ];
        self.kind == CodeKind::Kernel
            && (begins.iter().any(|begin| name.starts_with(begin))
                || matches!(
                    name,
                    "asm_common_interrupt"
                        | "common_interrupt"
                        | "asm_exc_nmi"
                        | "hrtimer_interrupt"
                        | "do_IRQ"
                        | "ret_from_intr"
                        | "handle_irq_event"
                        | "el1_interrupt"
                        | "el0_interrupt"
                        | "call_on_irq_stack"
                        | "gic_handle_irq"
                ))
    }

    /// Whether this is where timers fire.
    pub fn is_timer(&self) -> bool {
        let name = self.symbol.as_deref();
        self.kind == CodeKind::Kernel
            && matches!(
                name,
                Some(
                    "hrtimer_interrupt"
                        | "__hrtimer_run_queues"
                        | "hrtimer_run_softirq"
                        | "call_timer_fn"
                        | "__run_timers"
                        | "run_timer_softirq"
                )
            )
    }

    /// Its name for people: the function, or else where it is.
    pub fn name(&self) -> String {
        match (&self.symbol, &self.module) {
            (Some(symbol), _) => symbol.to_string(),
            (None, Some(module)) => format!("{module}+{:#x}", self.address),
            (None, None) => format!("{:#x}", self.address),
        }
    }
}
