//! What is left, why, and what would free it.

use std::collections::{BTreeMap, HashSet};

use sexton_host::Host;
use sexton_host::process::Status;
use sexton_model::census::{FileKind, PinFile};
use sexton_model::fix::Leftover;
use sexton_model::text::escape;

use super::holders::{self, Holders};
use super::stock::Stock;

/// How many different reasons are told one by one.
const SHOWN: usize = 8;

/// Groups what is left by what holds it, most first.
pub(crate) fn leftovers(host: &Host, stock: &Stock<'_>) -> Vec<Leftover> {
    let held = holders_of(host, stock);
    let mut reasons: BTreeMap<(String, String), u64> = BTreeMap::new();
    for ix in stock.iter() {
        let pages = stock.pages(ix);
        let file = stock.files_of(ix).next();
        let reason = match file {
            Some(file) => by_file(host, file, &held),
            None if pages.swap > 0 => by_swap(),
            None if pages.holding() == 0 => by_nothing(),
            None => by_memory(),
        };
        *reasons.entry(reason).or_default() += 1;
    }
    let mut left: Vec<Leftover> = reasons
        .into_iter()
        .map(|((why, frees), dying)| Leftover { dying, why, frees })
        .collect();
    left.sort_by(|a, b| (b.dying, &a.why).cmp(&(a.dying, &b.why)));
    let others: u64 = left.iter().skip(SHOWN).map(|left| left.dying).sum();
    if others > 0 {
        left.truncate(SHOWN);
        left.push(Leftover {
            dying: others,
            why: "other files hold them".into(),
            frees: "see `sexton zombies --by file`".into(),
        });
    }
    left
}

fn holders_of(host: &Host, stock: &Stock<'_>) -> Holders {
    let files = stock.files();
    let wanted: HashSet<_> = files
        .iter()
        .filter(|(file, _)| file.mapped || file.deleted)
        .map(|(file, _)| holders::key(file))
        .collect();
    holders::find(host, &wanted)
}

fn by_file(host: &Host, file: &PinFile, held: &Holders) -> (String, String) {
    let path = escape(&file.path);
    let pid = held
        .mapped_by
        .get(&holders::key(file))
        .and_then(|pids| pids.first());
    let who = pid.map(|pid| {
        let name = Status::read(host, *pid).map_or_else(|_| "?".into(), |status| status.name);
        format!("{name} (pid {pid})")
    });
    match (file.kind, who) {
        (FileKind::Shmem, _) if file.deleted => (
            format!("shared memory {path} holds them"),
            "end the processes that use it".into(),
        ),
        (FileKind::Shmem, _) => (
            format!("the tmpfs file {path} holds them; it has no disk to go to"),
            "delete it if it is no longer needed".into(),
        ),
        (FileKind::Anonymous, _) => by_memory(),
        (FileKind::BlockDevice, _) => (
            format!("metadata of the filesystem on {path} holds them"),
            "the kernel reclaims it under memory pressure, or use --allow-global".into(),
        ),
        (FileKind::File, Some(who)) => (
            format!("{path} is mapped by {who}"),
            format!("restart {who}, or --allow-siblings"),
        ),
        (FileKind::File, None) if file.deleted => (
            format!("{path} is deleted but still in use"),
            "end the process that has it open".into(),
        ),
        (FileKind::File, None) if !file.mounted => (
            format!("{path} is on a filesystem that is not mounted here"),
            "--allow-global, or end the container that it belongs to".into(),
        ),
        (FileKind::File, None) => (
            format!("{path} holds them"),
            "--allow-siblings, or --allow-global".into(),
        ),
    }
}

fn by_swap() -> (String, String) {
    (
        "swapped-out memory holds them".into(),
        "swapoff and swapon, if there is memory for it, or a reboot".into(),
    )
}

fn by_memory() -> (String, String) {
    (
        "memory of a process that is not a file holds them".into(),
        "end that process, or a reboot".into(),
    )
}

fn by_nothing() -> (String, String) {
    (
        "no page holds them: they are on their way out, or a socket does".into(),
        "wait a minute; then restart the service whose connections are old".into(),
    )
}
