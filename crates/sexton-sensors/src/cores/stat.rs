//! The lines of `/proc/stat` that are about cores, see proc_stat(5).

/// Counters of a line: user, nice, system, idle, iowait, irq, softirq, steal, guest,
/// `guest_nice`. Every kernel since 2.6.33 has these ten; more are ignored.
const N_COUNTERS: usize = 10;

/// One more than the highest number a core may have. The greatest `NR_CPUS` that any
/// architecture can be built with.
const MAX_CORES: u32 = 8192;

/// What a core can be doing. Also the order of [`Ticks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    User,
    Nice,
    System,
    Irq,
    Softirq,
    Steal,
    Guest,
    Idle,
    Iowait,
}

/// How many modes there are.
pub(super) const N_MODES: usize = 9;

/// What the kernel has booked to each mode of one core since boot, in ticks of 10 ms.
pub(super) type Ticks = [u64; N_MODES];

/// A line that makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadLine;

/// Each core's number and ticks. Allocates nothing.
pub(super) fn cores(stat: &[u8]) -> impl Iterator<Item = Result<(u32, Ticks), BadLine>> {
    let lines = stat.split(|byte| *byte == b'\n');
    lines
        .map_while(|line| line.strip_prefix(b"cpu"))
        // The first is the sum of all and has no number.
        .filter(|line| line.first() != Some(&b' '))
        .map(|line| core(line).ok_or(BadLine))
}

/// The number on the line that begins so; such lines are the last of the file.
pub(super) fn count(stat: &[u8], name: &[u8]) -> Option<u64> {
    let mut lines = stat.rsplit(|byte| *byte == b'\n');
    number(lines.find_map(|line| line.strip_prefix(name))?)
}

fn core(line: &[u8]) -> Option<(u32, Ticks)> {
    let mut words = line.split(|byte| *byte == b' ');
    let number = u32::try_from(number(words.next()?)?).ok()?;
    let mut counters = [0; N_COUNTERS];
    for counter in &mut counters {
        *counter = self::number(words.next()?)?;
    }
    let [
        user,
        nice,
        system,
        idle,
        iowait,
        irq,
        softirq,
        steal,
        guest,
        guest_nice,
    ] = counters;
    let ticks = [
        // The kernel counts a guest's time twice: as guest, and as user or nice.
        user.saturating_sub(guest),
        nice.saturating_sub(guest_nice),
        system,
        irq,
        softirq,
        steal,
        guest.saturating_add(guest_nice),
        idle,
        iowait,
    ];
    (number < MAX_CORES).then_some((number, ticks))
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers and user, guest and iowait ticks.
    #[track_caller]
    fn check(stat: &str, expected: &[Result<(u32, [u64; 3]), BadLine>]) {
        let found: Vec<_> = cores(stat.as_bytes())
            .map(|line| {
                line.map(|(number, ticks)| {
                    let shown = [Mode::User, Mode::Guest, Mode::Iowait];
                    (number, shown.map(|mode| ticks[mode as usize]))
                })
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn cores_are_told_and_the_rest_is_not() {
        check(
            "cpu  30 1 2 3 4 5 6 7 8 1\ncpu0 20 1 2 3 4 5 6 7 8 1\ncpu12 10 9 9 9 2 9 9 9 0 0 77\nintr 5\ncpu3 x\n",
            &[Ok((0, [12, 9, 4])), Ok((12, [10, 0, 2]))],
        );
    }

    #[test]
    fn one_bad_line_does_not_spoil_the_next() {
        check(
            "cpu0 1 2 3\ncpu1 1 2 3 4 5 6 7 8 9 ten\ncpux 1 1 1 1 1 1 1 1 1 1\ncpu2 1 0 0 0 0 0 0 0 0 0\ncpu9999 1 0 0 0 0 0 0 0 0 0\n\
             cpu3 99999999999999999999 0 0 0 0 0 0 0 0 0\n",
            &[
                Err(BadLine),
                Err(BadLine),
                Err(BadLine),
                Ok((2, [1, 0, 0])),
                Err(BadLine),
                Err(BadLine),
            ],
        );
        check("", &[]);
    }

    #[test]
    fn counts_of_tasks() {
        let stat = b"cpu0 1\nintr 5 0\nprocesses 812\nprocs_running 3\nprocs_blocked 0\n";
        assert_eq!(count(stat, b"processes "), Some(812));
        assert_eq!(count(stat, b"procs_running "), Some(3));
        assert_eq!(count(b"processes x\n", b"processes "), None);
        assert_eq!(count(b"", b"processes "), None);
    }

    proptest! {
        #[test]
        fn any_bytes_do(stat: Vec<u8>) {
            cores(&stat).count();
            count(&stat, b"processes ");
        }

        #[test]
        fn any_line_does(line in "cpu[0-9 ]{0,80}\n?") {
            for (number, _) in cores(line.as_bytes()).flatten() {
                prop_assert!(number < MAX_CORES);
            }
        }
    }
}
