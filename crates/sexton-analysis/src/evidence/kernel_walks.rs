//! What the kernel does for a reader of memory cgroups, by the functions on its stack: data,
//! in `signatures/kernel-walks.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

const FILE: &str = include_str!("../../../../signatures/kernel-walks.toml");

/// What a function does with memory cgroups, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Does {
    /// Formats the statistics of one.
    Read,
    /// Brings those that changed up to date.
    Flush,
    /// Goes through all of them.
    Walk,
}

impl Does {
    /// In words, as what a process does.
    pub(crate) fn words(self) -> &'static str {
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
pub(crate) struct Seen {
    /// What the kernel does.
    pub(crate) does: Does,
    /// The function that tells.
    pub(crate) function: String,
}

/// What a stack, outermost first, shows of work on memory cgroups: the gravest.
pub(crate) fn seen(stack: &[String]) -> Option<Seen> {
    let frames: Vec<&str> = stack.iter().map(|frame| plain(frame)).collect();
    let is_there = |function: &&Function| {
        let Some(at) = frames.iter().position(|frame| *frame == function.name) else {
            return false;
        };
        let has_caller = function.under.is_empty()
            || frames[..at]
                .iter()
                .any(|frame| function.under.iter().any(|known| known == frame));
        has_caller && (!function.innermost || at + 1 == frames.len())
    };
    let found = FUNCTIONS.iter().filter(is_there);
    // The first of those that weigh the same, as the file has them.
    let gravest = found.rev().max_by_key(|function| function.does)?;
    Some(Seen {
        does: gravest.does,
        function: gravest.name.clone(),
    })
}

/// The function of a stack that tells most: the one that is known, else the innermost.
pub(crate) fn telling(stack: &[String]) -> Option<String> {
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
