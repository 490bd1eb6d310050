//! What the kernel does for a reader of memory cgroups, by the functions on its stack: data,
//! in `signatures/kernel-walks.toml`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use sexton_model::fact::stack::StackShare;

const FILE: &str = include_str!("../../../signatures/kernel-walks.toml");

/// What a function does with memory cgroups, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Does {
    /// Formats the statistics of one.
    Read,
    /// Brings those that changed up to date.
    Flush,
    /// Goes through all of them.
    Walk,
}

impl Does {
    /// In words, as what a process does.
    pub fn words(self) -> &'static str {
        match self {
            Self::Read => "reading memory cgroup statistics",
            Self::Flush => "flushing memory cgroup statistics",
            Self::Walk => "walking memory cgroups",
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    function: Vec<Function>,
}

/// A function that is known.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Function {
    name: String,
    does: Does,
    /// One of these must be further out.
    #[serde(default)]
    under: Vec<String>,
    /// Whether nothing may be further in.
    #[serde(default)]
    innermost: bool,
    /// Whether its caller may leave no frame: then the stack counts only beside one that
    /// shows it.
    #[serde(default)]
    frameless: bool,
    /// Where it is so, in words.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the file"))]
    kernels: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the file"))]
    source: String,
}

/// Parsed once. The file is part of the program, and a test reads it.
static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let parsed = toml::from_str::<File>(FILE);
    parsed.map(|file| file.function).unwrap_or_default()
});

/// What a stack shows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// What the kernel does.
    pub does: Does,
    /// The function that tells.
    pub function: String,
    /// The function further out that shows for whom, where one must be there.
    pub caller: Option<String>,
}

/// What a stack, outermost first, shows of work on memory cgroups: the gravest.
pub fn seen(stack: &[String]) -> Option<Seen> {
    gravest(stack, false)
}

/// The same of stacks that show it by themselves, or of those that do not.
fn gravest(stack: &[String], frameless: bool) -> Option<Seen> {
    let frames: Vec<&str> = stack.iter().map(|frame| plain(frame)).collect();
    let known = FUNCTIONS.iter().filter(|one| one.frameless == frameless);
    let found = known.filter_map(|function| Some((function, function.is_in(&frames)?)));
    // The first of those that weigh the same, as the file has them.
    let found: Vec<(&Function, Option<&str>)> = found.collect();
    let (function, caller) = found.iter().rev().max_by_key(|(one, _)| one.does)?;
    Some(Seen {
        does: function.does,
        function: function.name.clone(),
        caller: caller.map(str::to_owned),
    })
}

impl Function {
    /// Whether a stack, outermost first, has it, and under which of the callers it asks for.
    fn is_in<'a>(&self, frames: &[&'a str]) -> Option<Option<&'a str>> {
        let at = frames.iter().position(|frame| *frame == self.name)?;
        if self.innermost && at + 1 != frames.len() {
            return None;
        }
        if self.under.is_empty() {
            return Some(None);
        }
        let is_caller = |frame: &&&str| self.under.iter().any(|known| known == **frame);
        let caller = frames[..at].iter().rev().find(is_caller)?;
        Some(Some(caller))
    }
}

/// What the stacks of a process show together.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The gravest of what is a fair part of it.
    pub seen: Seen,
    /// The part of the samples that are at any of it.
    pub share: f64,
}

/// A part that is smaller does not say what the rest is: one sample of a busy process may be
/// in reclaim.
const FAIR_PART: f64 = 0.1;

/// What stacks with their samples show of work on memory cgroups.
pub fn work(stacks: &[StackShare]) -> Option<Work> {
    let all: u64 = stacks.iter().map(|stack| stack.samples).sum();
    let mut shown: BTreeMap<Seen, u64> = BTreeMap::new();
    let mut unshown: BTreeMap<Does, u64> = BTreeMap::new();
    for stack in stacks {
        if let Some(seen) = seen(&stack.frames) {
            *shown.entry(seen).or_default() += stack.samples;
        } else if let Some(seen) = gravest(&stack.frames, true) {
            *unshown.entry(seen.does).or_default() += stack.samples;
        }
    }
    let of = |does: Does| {
        let alike = shown.iter().filter(move |(seen, _)| seen.does == does);
        alike.map(|(_, n)| *n).sum::<u64>()
    };
    // What hides its caller is what another stack of the same process shows it to be.
    let company = unshown.iter().filter(|(does, _)| of(**does) > 0);
    let company: u64 = company.map(|(_, n)| n).sum();
    let part = |n: u64| n as f64 / all.max(1) as f64;
    let kinds = [Does::Walk, Does::Flush, Does::Read];
    let fair = kinds.into_iter().find(|does| part(of(*does)) >= FAIR_PART);
    let does = fair.or_else(|| kinds.into_iter().find(|does| of(*does) > 0))?;
    let most = shown.iter().filter(|(seen, _)| seen.does == does);
    let (seen, _) = most.max_by_key(|(seen, n)| (**n, Reverse(*seen)))?;
    Some(Work {
        seen: seen.clone(),
        share: part(shown.values().sum::<u64>() + company),
    })
}

/// The function of a stack that tells most: the one that is known, else the innermost.
pub fn telling(stack: &[String]) -> Option<String> {
    let innermost = plain(stack.last()?);
    Some(seen(stack).map_or_else(|| innermost.to_owned(), |seen| seen.function))
}

/// A function without what compilers and symbolizers append: `.isra.0`, `+0x1c`, ` [module]`.
fn plain(frame: &str) -> &str {
    let frame = frame.trim();
    let end = frame.find(['.', '+', ' ']).unwrap_or(frame.len());
    &frame[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_and_every_function_has_its_source() {
        let file: File = toml::from_str(FILE).expect("it is right");
        assert!(file.function.len() >= 15);
        for function in &file.function {
            assert!(
                !function.source.is_empty() && !function.kernels.is_empty(),
                "{function:?}"
            );
        }
    }

    fn check(stack: &str, expected: Option<(Does, &str)>) {
        let frames: Vec<String> = stack.split(';').map(str::to_owned).collect();
        let seen = seen(&frames);
        let seen = seen
            .as_ref()
            .map(|seen| (seen.does, seen.function.as_str()));
        assert_eq!(seen, expected, "{stack}");
    }

    #[test]
    fn a_walk_is_told_from_a_read() {
        // As perf shows it on 5.4 with everything inlined that can be.
        check(
            "entry_SYSCALL_64;do_syscall_64;vfs_read;seq_read;memcg_numa_stat_show;cpumask_next",
            Some((Does::Walk, "cpumask_next")),
        );
        check(
            "ksys_read;seq_read;memcg_numa_stat_show;mem_cgroup_iter.part.0",
            Some((Does::Walk, "mem_cgroup_iter")),
        );
        // As on 5.10 and later.
        check(
            "vfs_read;seq_read_iter;memcg_numa_stat_show;seq_printf;vsnprintf",
            Some((Does::Read, "memcg_numa_stat_show")),
        );
        check(
            "vfs_read;seq_read_iter;memory_stat_show;memory_stat_format;mem_cgroup_flush_stats+0x1c;css_rstat_flush",
            Some((Does::Flush, "mem_cgroup_flush_stats")),
        );
    }

    fn check_work(stacks: &[(u64, &str)], expected: Option<(Does, &str, u32)>) {
        let shares = stacks.iter().map(|(samples, stack)| StackShare {
            samples: *samples,
            frames: stack.split(';').map(str::to_owned).collect(),
        });
        let work = work(&shares.collect::<Vec<StackShare>>());
        let work = work.as_ref().map(|work| {
            let percent = (work.share * 100.0).round() as u32;
            (work.seen.does, work.seen.function.as_str(), percent)
        });
        assert_eq!(work, expected, "{stacks:?}");
    }

    #[test]
    fn all_stacks_count_and_not_the_hottest_alone() {
        let bare = "vfs_read;seq_read;kernfs_seq_show;cgroup_seqfile_show;cpumask_next";
        // As sampled on 5.4: none is more than a third, one does not show its caller.
        check_work(
            &[
                (
                    24,
                    "seq_read;cgroup_seqfile_show;memcg_numa_stat_show;cpumask_next",
                ),
                (24, bare),
                (
                    19,
                    "seq_read;cgroup_seqfile_show;memcg_numa_stat_show;mem_cgroup_iter",
                ),
                (
                    30,
                    "seq_read;cgroup_seqfile_show;memcg_numa_stat_show;mem_cgroup_node_nr_lru_pages",
                ),
                (3, "do_syscall_64;vfs_write;tty_write"),
            ],
            Some((Does::Walk, "cpumask_next", 97)),
        );
        // Alone it may be any file of a cgroup.
        check_work(&[(90, bare)], None);
        check_work(
            &[
                (90, bare),
                (10, "vfs_read;memory_stat_show;memory_stat_format"),
            ],
            Some((Does::Read, "memory_stat_show", 10)),
        );
        // One look by reclaim does not make a reader walk.
        check_work(
            &[
                (95, "vfs_read;memory_stat_show;memory_stat_format;vsnprintf"),
                (
                    5,
                    "page_fault;try_to_free_pages;shrink_node;mem_cgroup_iter",
                ),
            ],
            Some((Does::Read, "memory_stat_show", 100)),
        );
        check_work(&[], None);
    }

    #[test]
    fn reclaim_walks_only_where_it_is_at_it() {
        check(
            "kswapd;balance_pgdat;shrink_node;mem_cgroup_iter",
            Some((Does::Walk, "mem_cgroup_iter")),
        );
        check("kswapd;balance_pgdat;shrink_node;shrink_lruvec", None);
        check("do_syscall_64;vfs_read;read_zero;clear_user", None);
        check("[user]", None);
        check("", None);
    }
}
