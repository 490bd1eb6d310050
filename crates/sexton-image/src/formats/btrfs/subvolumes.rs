//! Subvolumes: each is a tree of its own. Which of them a boot takes for its root, and where it
//! mounts others.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use sexton_host::Root;
use sexton_signatures::units::grammar::{self, Mount};

use super::layout::{Key, half, long, part};
use super::nodes::of_object;
use super::superblock::Pointer;
use super::{Btrfs, Subvolume};
use crate::error::ImageError;
use crate::formats::volumes;
use crate::gaps::Gaps;
use crate::inodes::InodeRoot;
use crate::mounted::Mounted;
use crate::tree::invalid;

/// The subvolume that is always there, and holds all others.
pub(super) const TOP: u64 = 5;

/// Where the tree of roots keeps the name of the default subvolume.
const ROOT_DIR: u64 = 6;

/// The first file of each subvolume is its root directory.
const FIRST: u64 = 256;

/// A directory that is not there (`BTRFS_EMPTY_SUBVOL_DIR_OBJECTID`).
pub(super) const EMPTY: u64 = 2;

const DIR_ITEM: u8 = 84;
pub(super) const ROOT_ITEM: u8 = 132;
const ROOT_BACKREF: u8 = 144;
const ROOT_REF: u8 = 156;

/// Subvolumes that are looked at for one that holds a system. Snapshots may be many.
const N_LOOKED_AT_MAX: usize = 1_000;

/// As deep as subvolumes may lie in each other, before that is damage or a trap.
const DEPTH_MAX: usize = 64;

/// A file: its subvolume, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Number {
    pub(super) subvolume: u64,
    pub(super) file: u64,
}

impl Number {
    pub(super) fn root_of(subvolume: u64) -> Self {
        Self {
            subvolume,
            file: FIRST,
        }
    }
}

/// The tree of a subvolume.
pub(super) fn tree(filesystem: &Btrfs, subvolume: u64) -> io::Result<Pointer> {
    // Behind its number is when it was made, of a snapshot: there is only one.
    let (from, to) = of_object(subvolume, ROOT_ITEM);
    let mut found = None;
    let root = filesystem.nodes.superblock.root;
    filesystem.nodes.walk(root, from, to, &mut |_, item| {
        // It begins with an inode, of 160 bytes.
        found = Some(Pointer {
            place: long(item, 176)?,
            level: part(item, 238, 1)?[0],
            generation: long(item, 160)?,
        });
        Ok(false)
    })?;
    found.ok_or_else(|| invalid("a subvolume that is not there"))
}

/// The root directory of a subvolume that a directory of another names.
pub(super) fn below(filesystem: &Btrfs, own: u64, subvolume: u64) -> io::Result<Number> {
    let root = filesystem.nodes.superblock.root;
    let is_own = filesystem
        .nodes
        .find(root, Key::new(own, ROOT_REF, subvolume))?;
    Ok(match is_own {
        Some(_) => Number::root_of(subvolume),
        None => Number {
            subvolume: own,
            file: EMPTY,
        },
    })
}

/// The subvolume that is mounted where nothing else is asked for.
fn default(filesystem: &Btrfs) -> io::Result<u64> {
    let (from, to) = of_object(ROOT_DIR, DIR_ITEM);
    let mut found = TOP;
    let root = filesystem.nodes.superblock.root;
    filesystem.nodes.walk(root, from, to, &mut |_, item| {
        let name = part(item, 30, usize::from(half(item, 27)?))?;
        if name == b"default" {
            found = Key::parse(item, 0)?.object;
        }
        Ok(true)
    })?;
    Ok(found)
}

/// The subvolumes below the first one, with their paths.
fn all(filesystem: &Btrfs) -> io::Result<Vec<(u64, String)>> {
    let mut parents: HashMap<u64, (u64, u64, Vec<u8>)> = HashMap::new();
    let root = filesystem.nodes.superblock.root;
    let (from, to) = (
        Key::new(FIRST, ROOT_BACKREF, 0),
        Key::new(u64::MAX - 256, u8::MAX, u64::MAX),
    );
    filesystem.nodes.walk(root, from, to, &mut |key, item| {
        if key.sort == ROOT_BACKREF {
            let name = part(item, 18, usize::from(half(item, 16)?))?;
            parents.insert(key.object, (key.offset, long(item, 0)?, name.to_vec()));
        }
        Ok(parents.len() < N_LOOKED_AT_MAX)
    })?;
    let mut numbers: Vec<u64> = parents.keys().copied().collect();
    numbers.sort_unstable();
    let path = |number: u64| path(filesystem, &parents, number);
    let paths = numbers.into_iter().map(|number| (number, path(number)));
    Ok(paths
        .filter_map(|(number, path)| Some((number, path?)))
        .collect())
}

/// Its path from the first subvolume on; `None` of one that is nowhere.
fn path(
    filesystem: &Btrfs,
    parents: &HashMap<u64, (u64, u64, Vec<u8>)>,
    number: u64,
) -> Option<String> {
    let mut parts = Vec::new();
    let mut here = number;
    for _ in 0..DEPTH_MAX {
        if here == TOP {
            parts.reverse();
            return Some(parts.join("/"));
        }
        let (parent, folder, name) = parents.get(&here)?;
        parts.push(String::from_utf8(name.clone()).ok()?);
        let mut folder = *folder;
        for _ in 0..DEPTH_MAX {
            if folder == FIRST {
                break;
            }
            let (above, name) = above(filesystem, *parent, folder).ok()??;
            parts.push(name);
            folder = above;
        }
        here = *parent;
    }
    None
}

/// The directory that a directory is in, and its name there.
fn above(filesystem: &Btrfs, subvolume: u64, folder: u64) -> io::Result<Option<(u64, String)>> {
    const INODE_REF: u8 = 12;
    let (from, to) = of_object(folder, INODE_REF);
    let mut found = None;
    let tree = filesystem.tree(subvolume)?;
    filesystem.nodes.walk(tree, from, to, &mut |key, item| {
        let name = part(item, 10, usize::from(half(item, 8)?))?;
        let name = String::from_utf8(name.to_vec()).ok();
        found = name.map(|name| (key.offset, name));
        Ok(false)
    })?;
    Ok(found)
}

fn open(filesystem: &Arc<Btrfs>, subvolume: u64) -> io::Result<Box<dyn Root>> {
    let root = Number::root_of(subvolume);
    super::files::inode(filesystem, root)?;
    Ok(Box::new(InodeRoot::new(Subvolume {
        filesystem: Arc::clone(filesystem),
        root,
    })))
}

/// The subvolume that the options of a mount ask for.
fn asked(all: &[(u64, String)], options: &[String]) -> Option<Asked> {
    for option in options {
        if let Some(path) = option.strip_prefix("subvol=") {
            let path = path.trim_matches('/');
            let found = all.iter().find(|(_, known)| known == path);
            return Some(match (path, found) {
                ("", _) => Asked::Found(TOP),
                (_, Some((number, _))) => Asked::Found(*number),
                (_, None) => Asked::Gone(option.clone()),
            });
        }
        if let Some(number) = option.strip_prefix("subvolid=") {
            let number: Option<u64> = number.parse().ok();
            let number = number.map(|number| if number == 0 { TOP } else { number });
            let found = number
                .filter(|number| *number == TOP || all.iter().any(|(known, _)| known == number));
            return Some(found.map_or_else(|| Asked::Gone(option.clone()), Asked::Found));
        }
    }
    None
}

enum Asked {
    Found(u64),
    /// There is none; the option that asks for it.
    Gone(String),
}

fn table(root: &dyn Root) -> Vec<Mount> {
    let table = root.read(Path::new("/etc/fstab"), 1 << 20);
    grammar::fstab(&String::from_utf8_lossy(&table.unwrap_or_default()))
}

/// Opens what a mount with these options would show.
pub(super) fn mounted(
    filesystem: &Arc<Btrfs>,
    options: &[String],
) -> Result<Box<dyn Root>, String> {
    let all = all(filesystem).map_err(|error| error.to_string())?;
    let number = match asked(&all, options) {
        Some(Asked::Found(number)) => number,
        Some(Asked::Gone(option)) => return Err(format!("{option}: there is no such subvolume")),
        None => default(filesystem).map_err(|error| error.to_string())?,
    };
    open(filesystem, number).map_err(|error| error.to_string())
}

/// The root of a system, with its other subvolumes where its table of mounts has them; the
/// default subvolume where there is no system. Also what it is.
pub(super) fn joined(
    filesystem: &Arc<Btrfs>,
    gaps: &mut Gaps,
) -> Result<(Box<dyn Root>, String), ImageError> {
    let damaged = |error: io::Error| ImageError::damaged(super::NAME, error);
    let all = all(filesystem).map_err(damaged)?;
    let (number, root) = choose(filesystem, &all)?;
    let path = all.iter().find(|(known, _)| *known == number);
    let what = match path {
        Some((_, path)) => format!("{}, subvolume {path}", super::NAME),
        None => super::NAME.to_owned(),
    };
    let mounts = table(root.as_ref());
    let own = mounts.iter().find(|mount| mount.place == "/");
    let own = own.map(|mount| mount.what.clone());
    let names = volumes::names(&filesystem.nodes.bytes);
    let is_this = |mount: &Mount| {
        let is_named = names
            .iter()
            .any(|name| name.eq_ignore_ascii_case(&mount.what));
        mount.sort == "btrfs" && (is_named || own.as_ref() == Some(&mount.what))
    };
    let mut joined = Mounted::new(root);
    let others = mounts
        .iter()
        .filter(|mount| mount.place.starts_with('/') && mount.place != "/" && is_this(mount));
    for mount in others {
        let place = &mount.place;
        let number = match asked(&all, &mount.options) {
            Some(Asked::Found(number)) => Ok(number),
            Some(Asked::Gone(option)) => Err(format!("{option}: there is no such subvolume")),
            None => default(filesystem).map_err(|error| error.to_string()),
        };
        let opened =
            number.and_then(|number| open(filesystem, number).map_err(|error| error.to_string()));
        match opened {
            Ok(root) => joined.mount(Path::new(place), root),
            Err(why) => gaps.add(format!("{place}: {why} (/etc/fstab)")),
        }
    }
    Ok((joined.into_root(), what))
}

/// The subvolume that a boot takes for its root: the default one if that holds a system, else the
/// one whose own table of mounts names it, else the only one, or the one of the usual name.
fn choose(
    filesystem: &Arc<Btrfs>,
    all: &[(u64, String)],
) -> Result<(u64, Box<dyn Root>), ImageError> {
    const USUAL: &[&str] = &["@", "root", "@root", "@rootfs"];
    let damaged = |error: io::Error| ImageError::damaged(super::NAME, error);
    let default = default(filesystem).map_err(damaged)?;
    let first = open(filesystem, default).map_err(damaged)?;
    if volumes::is_system(first.as_ref()) {
        return Ok((default, first));
    }
    let mut systems: Vec<(u64, &String, Box<dyn Root>)> = Vec::new();
    for (number, path) in all {
        match open(filesystem, *number) {
            Ok(root) if volumes::is_system(root.as_ref()) => systems.push((*number, path, root)),
            _ => {}
        }
    }
    let names_itself = |(number, _, root): &(u64, &String, Box<dyn Root>)| {
        let mounts = table(root.as_ref());
        let own = mounts.iter().find(|mount| mount.place == "/");
        let asked = own.and_then(|mount| asked(all, &mount.options));
        matches!(asked, Some(Asked::Found(found)) if found == *number)
    };
    let chosen = match systems.len() {
        0 => return Ok((default, first)),
        1 => Some(0),
        _ => systems.iter().position(names_itself).or_else(|| {
            let usual = |name: &&str| systems.iter().position(|(_, path, _)| path == name);
            USUAL.iter().find_map(usual)
        }),
    };
    let Some(chosen) = chosen else {
        let paths: Vec<&str> = systems.iter().map(|(_, path, _)| path.as_str()).collect();
        return Err(ImageError::Unread {
            what: format!(
                "a Btrfs filesystem with several systems (subvolumes {})",
                paths.join(", ")
            ),
            remedy: "set the one that boots with btrfs subvolume set-default, or mount it \
                     read-only and give the folder",
        });
    };
    let (number, _, root) = systems.swap_remove(chosen);
    Ok((number, root))
}
