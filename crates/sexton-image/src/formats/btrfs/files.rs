//! Files: inodes, directories, and extents, packed or not.

use std::io::{self, Read as _};

use sexton_host::{Kind, Meta};

use super::Btrfs;
use super::layout::{Key, half, long, part, word};
use super::lzo;
use super::nodes::of_object;
use super::subvolumes::{self, Number, ROOT_ITEM};
use crate::inodes::Names;
use crate::tree::invalid;

const INODE_ITEM: u8 = 1;
const DIR_INDEX: u8 = 96;
const EXTENT_DATA: u8 = 108;

/// As long as a symbolic link may be (`PATH_MAX`).
const TARGET_BYTES_MAX: u64 = 4096;

/// A file in more pieces is damaged or a trap.
const N_EXTENTS_MAX: usize = 1_000_000;

/// What is packed together, before and after (`BTRFS_MAX_COMPRESSED`,
/// `BTRFS_MAX_UNCOMPRESSED`).
const PACKED_BYTES_MAX: u64 = 128 << 10;

pub(super) struct Inode {
    pub(super) number: Number,
    mode: u32,
    size_bytes: u64,
}

impl Inode {
    pub(super) fn meta(&self) -> Meta {
        Meta {
            kind: match self.mode & 0o170_000 {
                0o040_000 => Kind::Dir,
                0o100_000 => Kind::File,
                0o120_000 => Kind::Link,
                _ => Kind::Other,
            },
            size_bytes: self.size_bytes,
            permissions: self.mode & 0o7777,
        }
    }
}

pub(super) fn inode(filesystem: &Btrfs, number: Number) -> io::Result<Inode> {
    // A snapshot holds no subvolumes of what it was taken of: the kernel shows empty directories.
    if number.file == subvolumes::EMPTY {
        return Ok(Inode {
            number,
            mode: 0o040_755,
            size_bytes: 0,
        });
    }
    let tree = filesystem.tree(number.subvolume)?;
    let item = filesystem
        .nodes
        .find(tree, Key::new(number.file, INODE_ITEM, 0))?;
    let item = item.ok_or_else(|| invalid("a file without an inode"))?;
    let size_bytes = long(&item, 16)?;
    if size_bytes > i64::MAX as u64 {
        return Err(invalid("an inode with an impossible size"));
    }
    Ok(Inode {
        number,
        mode: word(&item, 52)?,
        size_bytes,
    })
}

pub(super) fn names(filesystem: &Btrfs, dir: &Inode) -> io::Result<Names<Number>> {
    let mut names = Names::new();
    if dir.number.file == subvolumes::EMPTY {
        return Ok(names);
    }
    let own = dir.number.subvolume;
    let tree = filesystem.tree(own)?;
    let (from, to) = of_object(dir.number.file, DIR_INDEX);
    let mut below = Vec::new();
    filesystem.nodes.walk(tree, from, to, &mut |_, item| {
        let location = Key::parse(item, 0)?;
        let name = part(item, 30, usize::from(half(item, 27)?))?;
        match location.sort {
            INODE_ITEM => {
                let number = Number {
                    subvolume: own,
                    file: location.object,
                };
                let is_dir = *part(item, 29, 1)?.first().expect("one") == 2;
                names.add(name, number, Some(is_dir))?;
            }
            ROOT_ITEM => below.push((name.to_vec(), location.object)),
            _ => return Err(invalid("a name of nothing that can have one")),
        }
        Ok(true)
    })?;
    for (name, subvolume) in below {
        let number = subvolumes::below(filesystem, own, subvolume)?;
        names.add(&name, number, Some(true))?;
    }
    Ok(names)
}

pub(super) fn target(filesystem: &Btrfs, link: &Inode) -> io::Result<Vec<u8>> {
    if link.size_bytes > TARGET_BYTES_MAX {
        return Err(invalid("a link longer than any path can be"));
    }
    let len = usize::try_from(link.size_bytes).map_err(io::Error::other)?;
    read(filesystem, link, 0, len)
}

/// Where the bytes of a part of a file are.
enum Place {
    /// In the tree itself.
    Here(Vec<u8>),
    /// In the filesystem, from this byte on; the part begins `skipped` bytes behind it.
    There {
        place: u64,
        disk_bytes: u64,
        skipped: u64,
    },
}

struct Extent {
    from: u64,
    /// How many bytes of the file it is.
    len: u64,
    packing: u8,
    /// How long it is when unpacked.
    whole_bytes: u64,
    place: Place,
}

impl Extent {
    /// `None` of one that reads as zeros.
    fn parse(from: u64, item: &[u8]) -> io::Result<Option<Self>> {
        let whole_bytes = long(item, 8)?;
        let head = part(item, 0, 21)?;
        let (packing, encryption) = (head[16], head[17]);
        if encryption != 0 || half(item, 18)? != 0 {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "it is encrypted or coded in an unknown way",
            ));
        }
        if packing != 0 && whole_bytes > PACKED_BYTES_MAX {
            return Err(invalid("more is packed than may be"));
        }
        let (len, place) = match head[20] {
            0 => {
                let content = item[21..].to_vec();
                let is_whole = packing != 0 || content.len() as u64 == whole_bytes;
                if !is_whole {
                    return Err(invalid("an extent in a tree that is cut off"));
                }
                (whole_bytes, Place::Here(content))
            }
            1 => {
                let place = long(item, 21)?;
                let disk_bytes = long(item, 29)?;
                if place == 0 {
                    return Ok(None);
                }
                if packing != 0 && disk_bytes > PACKED_BYTES_MAX {
                    return Err(invalid("more is packed than may be"));
                }
                let skipped = long(item, 37)?;
                let there = Place::There {
                    place,
                    disk_bytes,
                    skipped,
                };
                (long(item, 45)?, there)
            }
            // Reserved and never written.
            2 => return Ok(None),
            _ => return Err(invalid("an extent of an impossible sort")),
        };
        from.checked_add(len)
            .ok_or_else(|| invalid("an extent beyond every file"))?;
        Ok(Some(Self {
            from,
            len,
            packing,
            whole_bytes,
            place,
        }))
    }

    /// Fills a buffer with what begins `within` bytes behind the extent's first.
    fn fill(&self, filesystem: &Btrfs, within: u64, piece: &mut [u8]) -> io::Result<()> {
        let (packed, skipped) = match &self.place {
            Place::Here(content) => (content.clone(), 0),
            Place::There {
                place,
                disk_bytes,
                skipped,
            } => {
                if self.packing == 0 {
                    let at = skipped.saturating_add(within);
                    if at.saturating_add(piece.len() as u64) > *disk_bytes {
                        return Err(invalid("a part of an extent beyond its end"));
                    }
                    return filesystem.nodes.read(place.saturating_add(at), piece);
                }
                let len = usize::try_from(*disk_bytes).map_err(io::Error::other)?;
                let mut packed = vec![0; len];
                filesystem.nodes.read(*place, &mut packed)?;
                (packed, *skipped)
            }
        };
        let whole = self.unpack(filesystem, packed)?;
        let from = usize::try_from(skipped.saturating_add(within)).unwrap_or(usize::MAX);
        // What is packed may end before the sector does: zeros follow.
        let known = whole.get(from..).unwrap_or_default();
        let n = known.len().min(piece.len());
        piece[..n].copy_from_slice(&known[..n]);
        piece[n..].fill(0);
        Ok(())
    }

    fn unpack(&self, filesystem: &Btrfs, packed: Vec<u8>) -> io::Result<Vec<u8>> {
        let limit = usize::try_from(self.whole_bytes).map_err(io::Error::other)?;
        let mut whole = Vec::new();
        match self.packing {
            0 => whole = packed,
            1 => {
                let decoder = flate2::bufread::ZlibDecoder::new(&*packed);
                decoder.take(self.whole_bytes).read_to_end(&mut whole)?;
            }
            2 => {
                let sector_bytes = filesystem.nodes.superblock.sector_bytes;
                whole = lzo::unpack(&packed, sector_bytes, limit)?;
            }
            3 => {
                let decoder = zstd::stream::Decoder::with_buffer(&*packed)?.single_frame();
                decoder.take(self.whole_bytes).read_to_end(&mut whole)?;
            }
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "it is packed in an unknown way",
                ));
            }
        }
        Ok(whole)
    }
}

/// Up to `len` bytes of a file; what no extent covers reads as zeros.
pub(super) fn read(
    filesystem: &Btrfs,
    file: &Inode,
    offset: u64,
    len: usize,
) -> io::Result<Vec<u8>> {
    let left = file.size_bytes.saturating_sub(offset);
    let len = len.min(usize::try_from(left).unwrap_or(usize::MAX));
    let end = offset.saturating_add(len as u64);
    let mut extents = Vec::new();
    if len == 0 {
        return Ok(Vec::new());
    }
    let tree = filesystem.tree(file.number.subvolume)?;
    let from = Key::new(file.number.file, EXTENT_DATA, 0);
    let to = Key::new(file.number.file, EXTENT_DATA, end - 1);
    let mut n_extents = 0;
    filesystem.nodes.walk(tree, from, to, &mut |key, item| {
        n_extents += 1;
        if n_extents > N_EXTENTS_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let extent = Extent::parse(key.offset, item)?;
        extents.extend(extent.filter(|extent| extent.from + extent.len > offset));
        Ok(true)
    })?;
    let mut content = vec![0; len];
    let mut done = offset;
    for extent in &extents {
        // Extents do not overlap: that they do would be a way to have one unpacked again and
        // again.
        if extent.from < done && extent.from > offset {
            return Err(invalid("extents that overlap"));
        }
        let from = extent.from.max(offset);
        let to = (extent.from + extent.len).min(end);
        if from >= to {
            continue;
        }
        let within = |place: u64| usize::try_from(place - offset).expect("within the buffer");
        let piece = &mut content[within(from)..within(to)];
        extent.fill(filesystem, from - extent.from, piece)?;
        done = to;
    }
    Ok(content)
}
