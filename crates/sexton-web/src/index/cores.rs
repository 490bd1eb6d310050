//! Lanes of single cores: how much of each the kernel had, and whether it was busy. The
//! modes of a core come one by one, and are added up here.

use ahash::AHashMap;
use sexton_model::fact::show::CoreTime;
use sexton_model::subject::Subject;

use super::pyramid::Pyramid;
use super::table::{CORE_CELL_NS, CORE_COVER_NS};

/// Cells of a core's lane: of many cores each has less, so that all stay in bounds.
const MAX_CELLS: usize = 1 << 19;
const MAX_CELLS_OF_MANY: usize = 1 << 17;
const FEW_CORES: u32 = 8;

/// More cores than any machine has.
const MAX_CORES: usize = 4096;

/// All cores.
#[derive(Debug, Default)]
pub(super) struct Cores {
    by_number: std::collections::BTreeMap<u32, Core>,
    numbers: AHashMap<Subject, u32>,
}

/// A core.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) kernel: Pyramid,
    pub(super) busy: Pyramid,
    /// Up to here it has been told.
    told_ns: Option<u64>,
    look: Option<Look>,
}

/// What one look said so far.
#[derive(Debug, Clone, Copy)]
struct Look {
    at_ns: u64,
    kernel: Option<f64>,
    idle: Option<f64>,
}

impl Cores {
    pub(super) fn add(&mut self, subject: &Subject, mode: CoreTime, at_ns: u64, value: f64) {
        let number = match self.numbers.get(subject) {
            Some(number) => *number,
            None => {
                let Ok(number) = subject.name.parse() else {
                    return;
                };
                if self.numbers.len() >= MAX_CORES {
                    return;
                }
                self.numbers.insert(subject.clone(), number);
                number
            }
        };
        let core = self
            .by_number
            .entry(number)
            .or_insert_with(|| Core::new(number));
        core.add(mode, at_ns, value);
    }

    pub(super) fn settle(&mut self) {
        for core in self.by_number.values_mut() {
            core.tell();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Core)> {
        self.by_number.iter().map(|(number, core)| (*number, core))
    }
}

impl Core {
    fn new(number: u32) -> Self {
        let max_cells = if number < FEW_CORES {
            MAX_CELLS
        } else {
            MAX_CELLS_OF_MANY
        };
        let pyramid = || Pyramid::new(CORE_CELL_NS, max_cells, true);
        Self {
            kernel: pyramid(),
            busy: pyramid(),
            told_ns: None,
            look: None,
        }
    }

    fn add(&mut self, mode: CoreTime, at_ns: u64, value: f64) {
        if self.told_ns.is_some_and(|told| at_ns <= told) {
            return;
        }
        if self.look.is_some_and(|look| look.at_ns != at_ns) {
            self.tell();
        }
        let look = self.look.get_or_insert(Look {
            at_ns,
            kernel: None,
            idle: None,
        });
        let sum = match mode {
            CoreTime::Kernel => &mut look.kernel,
            CoreTime::Idle => &mut look.idle,
        };
        *sum = Some(sum.unwrap_or(0.0) + value);
    }

    /// A look covers the time since the one before.
    #[allow(clippy::cast_possible_truncation, reason = "a ratio")]
    fn tell(&mut self) {
        let Some(look) = self.look.take() else {
            return;
        };
        let before = self.told_ns.replace(look.at_ns);
        let before = before.filter(|before| look.at_ns - before <= CORE_COVER_NS);
        let from_ns = before.unwrap_or(look.at_ns);
        if let Some(kernel) = look.kernel {
            self.kernel.cover(from_ns, look.at_ns, kernel as f32);
        }
        if let Some(idle) = look.idle {
            self.busy
                .cover(from_ns, look.at_ns, (1.0 - idle).clamp(0.0, 1.0) as f32);
        }
    }
}
