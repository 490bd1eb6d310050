//! How many tasks sleep uninterruptibly, worked out of the load average: a cheap sign that asks
//! for a scan.
//!
//! Every 5 s the kernel counts the tasks that run, could run or are in state D, and moves the
//! load of one minute towards that number. Two loads 5 s apart tell the number, and the same
//! file tells how many run or could. Tasks that hang in a filesystem that is frozen or on a server
//! that does not answer are in no other small file: `procs_blocked` counts only those that wait
//! for a disk.

/// What is left of the load after one count: `EXP_1 / FIXED_1` of the kernel.
const KEPT: f64 = 1884.0 / 2048.0;

/// The load has two decimals, of which this much of a task cannot be told.
const BLUR: f64 = 0.8;

/// A `/proc/loadavg`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Load {
    /// Of the last minute.
    load: f64,
    /// Tasks that run or could, with the one that reads.
    running: u64,
    /// Processes and threads.
    pub(super) tasks: u64,
}

impl Load {
    /// Reads `0.52 0.58 0.59 2/389 12345`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let load = words.next()?.parse().ok()?;
        let (running, tasks) = words.nth(2)?.split_once('/')?;
        Some(Self {
            load,
            running: running.parse().ok()?,
            tasks: tasks.parse().ok()?,
        })
    }

    /// Whether more tasks are in state D than these, as far as two loads 5 s apart can tell.
    pub(super) fn has_blocked(&self, before: &Self, n_known: usize) -> bool {
        let active = (self.load - KEPT * before.load) / (1.0 - KEPT);
        let running = self.running.max(before.running).saturating_sub(1) as f64;
        // On a node that is busy more or fewer tasks run at each count, by about the root of them.
        active - running - n_known as f64 >= BLUR + running.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(load: f64, running: u64) -> Load {
        Load {
            load,
            running,
            tasks: 300,
        }
    }

    #[test]
    fn a_line_is_read() {
        let load = Load::parse("0.52 0.58 0.59 2/389 12345\n").expect("a load");
        assert_eq!((load.load, load.running, load.tasks), (0.52, 2, 389));
        for text in ["", "0.5", "0.5 1 1 2", "x 1 1 2/3 4"] {
            assert_eq!(Load::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_task_in_state_d_moves_the_load_and_one_that_runs_is_told_apart() {
        // One more task in state D: the load goes 0.08 of the way to it.
        assert!(load(0.08, 1).has_blocked(&load(0.0, 1), 0));
        assert!(load(0.54, 1).has_blocked(&load(0.50, 1), 0));
        // It is known already, or it runs.
        assert!(!load(0.08, 1).has_blocked(&load(0.0, 1), 1));
        assert!(!load(0.08, 2).has_blocked(&load(0.0, 1), 0));
        // A quiet node, and one whose load falls.
        assert!(!load(0.0, 1).has_blocked(&load(0.0, 1), 0));
        assert!(!load(1.84, 1).has_blocked(&load(2.0, 1), 0));
        // Eight jobs of a build, of which some sleep when they are counted.
        assert!(!load(8.2, 7).has_blocked(&load(8.0, 9), 0));
    }
}
