use sexton_host::FolderRoot;
use sexton_testkit::TempTree;

use super::*;

fn at(second: u64) -> Moment {
    Moment::from_ns(second * 1_000_000_000)
}

fn host(tree: &TempTree) -> Host {
    let root = FolderRoot::open(tree.path()).expect("it opens");
    Host::new(Box::new(root)).expect("a mount table")
}

/// A process: when it started, how long all its threads ran (both in ticks), and what `schedstat`
/// says of each, in milliseconds, the main thread first.
fn process(
    tree: TempTree,
    pid: u32,
    (started, ran): (u64, u64),
    threads: &[(u64, u64)],
) -> TempTree {
    let n = threads.len();
    let stat = format!("{pid} (a b) S 1 1 1 0 -1 0 0 0 0 0 {ran} 0 0 0 20 0 {n} 0 {started} 0 0\n");
    let tree = tree.file(&format!("/proc/{pid}/stat"), stat);
    let schedstat = |(ran, waited): (u64, u64)| format!("{}000000 {}000000 1\n", ran, waited);
    let tree = tree.file(&format!("/proc/{pid}/schedstat"), schedstat(threads[0]));
    (0..).zip(threads).fold(tree, |tree, (n, times)| {
        let tid = pid + n;
        tree.file(
            &format!("/proc/{pid}/task/{tid}/schedstat"),
            schedstat(*times),
        )
    })
}

fn of(look: &Look, pid: u32) -> Option<(u64, u64, usize)> {
    let found = look.grown.iter().find(|one| one.pid == pid)?;
    let ms = |ns: u64| ns / 1_000_000;
    let times = found.times;
    Some((ms(times.ran_ns), ms(times.waited_ns), found.endless.len()))
}

#[test]
fn times_of_a_task_are_read() {
    let times = |ran_ns, waited_ns| Some(Times { ran_ns, waited_ns });
    assert_eq!(parse(b"12 3390523 1\n"), times(12, 3_390_523));
    assert_eq!(parse(b"12\n"), None);
    assert_eq!(parse(b"\xff 1 2"), None);
}

/// Its main thread sleeps, as that of a program in Java or Go does.
#[test]
fn all_threads_of_a_process_count() {
    let mut processes = Processes::default();
    let tree = TempTree::node("");
    let tree = process(tree, 500, (100, 90), &[(1, 0), (400, 400), (500, 400)]);
    let first = processes.look(&host(&tree), (None, at(10)));
    assert_eq!(of(&first, 500), None);
    // One loops and waits, one waits much, and 1.5 s were run by one that exited.
    let tree = process(
        tree,
        500,
        (100, 390),
        &[(1, 0), (1_400, 4_350), (1_000, 1_900)],
    );
    let look = processes.look(&host(&tree), (Some(at(10)), at(15)));
    assert_eq!(of(&look, 500), Some((3_000, 3_950 + 1_500, 1)));
    // A fourth thread has begun since.
    let threads = [(1, 0), (1_400, 4_350), (1_000, 1_900), (700, 600)];
    let tree = process(tree, 500, (100, 460), &threads);
    let look = processes.look(&host(&tree), (Some(at(15)), at(20)));
    assert_eq!(of(&look, 500), Some((700, 600, 0)));
}

#[test]
fn what_began_before_and_was_not_known_is_not_counted_from_its_start() {
    let mut processes = Processes::default();
    let tree = process(TempTree::node(""), 7, (100, 0), &[(10, 10)]);
    processes.look(&host(&tree), (None, at(10)));
    // The first of these had begun before, the second has begun since.
    let tree = process(tree, 8, (500, 900), &[(9_000, 9_000)]);
    let tree = process(tree, 9, (1_200, 100), &[(1_000, 300)]);
    let look = processes.look(&host(&tree), (Some(at(10)), at(15)));
    assert_eq!(of(&look, 8), None);
    assert_eq!(of(&look, 9), Some((1_000, 300, 0)));
    assert_eq!(of(&look, 7), None);
    let tree = process(tree, 8, (500, 1_000), &[(9_500, 9_100)]);
    // The PID of the first one is used again.
    let tree = process(tree, 7, (1_600, 0), &[(5, 0)]);
    let look = processes.look(&host(&tree), (Some(at(15)), at(20)));
    assert_eq!(of(&look, 8), Some((500, 100, 0)));
    assert_eq!(of(&look, 7), Some((5, 0, 0)));
}

#[test]
fn one_that_never_sleeps_has_not_for_longer_with_each_look() {
    let mut processes = Processes::default();
    let mut tree = TempTree::node("");
    let mut seen = Vec::new();
    for look in 0..4_u64 {
        let ms = 5_000 * look;
        // The second sleeps for half of the third interval.
        let other = ms - if look >= 3 { 2_500 } else { 0 };
        tree = process(tree, 500, (100, 0), &[(ms / 2, ms / 2)]);
        tree = process(tree, 600, (100, 0), &[(other / 2, other / 2)]);
        let before = look.checked_sub(1).map(|look| at(10 + 5 * look));
        let found = processes.look(&host(&tree), (before, at(10 + 5 * look)));
        let grown = found.grown.iter();
        seen.extend(grown.flat_map(|one| one.endless.iter().map(|long| (one.pid, long.as_secs()))));
    }
    assert_eq!(seen, [(500, 5), (600, 5), (500, 10), (600, 10), (500, 15)]);
}

#[test]
fn looks_begin_with_those_that_were_read_last() {
    let mut processes = Processes::default();
    let tree = process(TempTree::node(""), 70, (100, 0), &[(10, 10)]);
    processes.look(&host(&tree), (None, at(10)));
    processes.from = 50;
    let mut pids = vec![10, 50, 60, 70, 80];
    processes.order(&mut pids);
    assert_eq!(pids, [70, 60, 80, 10, 50]);
}
