//! squashfs 4.0, compressed with gzip, xz or zstd.
//!
//! Names are read once into a tree; content is unpacked when it is asked for.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use super::squashfs_inode::{self as inode, FileInode, Inode, Sort};
use super::{Format, Opened, magic};
use crate::bytes::Shared;
use crate::error::ImageError;
use crate::gaps::Gaps;
use crate::tree::{Contents, Node, Through, Tree, TreeRoot, invalid};
use crate::xz::Xz;

const NAME: &str = "squashfs";

pub(super) static FORMAT: Format = Format {
    name: NAME,
    sniff: |head| magic(head, 0, b"hsqs"),
    open,
};

/// The format's own limits.
const METADATA_BYTES_MAX: usize = 8 << 10;
const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 4 << 10..=1 << 20;
const NAME_BYTES_MAX: u32 = 4 << 10;

/// Deeper than any path can be long.
const DEPTH_MAX: usize = 200;

/// Unpacked metadata that is kept: 4 MiB.
const N_CACHED: usize = 512;

const XZ_MEMORY_KIB: u32 = 64 << 10;

#[derive(Clone, Copy)]
enum Compressor {
    Gzip,
    Xz,
    Zstd,
}

struct Squashfs {
    bytes: Shared,
    compressor: Compressor,
    block_bytes: u32,
    inodes_at: u64,
    dirs_at: u64,
    fragments_at: u64,
    n_fragments: u32,
    cache: Mutex<HashMap<u64, Arc<Unpacked>>>,
}

/// A metadata block, and where the next one begins.
struct Unpacked {
    content: Vec<u8>,
    next: u64,
}

fn open(bytes: &Shared, gaps: &mut Gaps, _depth: usize) -> Result<Opened, ImageError> {
    let damaged = |error: io::Error| ImageError::damaged(NAME, error);
    let (filesystem, root) = Squashfs::open(bytes)?;
    let mut walk = Walk {
        filesystem: &filesystem,
        tree: Tree::new(),
        seen: HashSet::new(),
        gaps,
    };
    walk.dir(root, &mut Vec::new(), 0).map_err(damaged)?;
    let tree = walk.tree;
    Ok((
        Box::new(TreeRoot {
            tree,
            contents: filesystem,
        }),
        NAME.into(),
    ))
}

impl Squashfs {
    fn open(bytes: &Shared) -> Result<(Self, u64), ImageError> {
        let mut raw = [0; 96];
        bytes
            .read_exact_at(0, &mut raw)
            .map_err(|error| ImageError::damaged(NAME, error))?;
        let half = |at: usize| u16::from_le_bytes([raw[at], raw[at + 1]]);
        let word = |at: usize| u32::from_le_bytes(raw[at..at + 4].try_into().expect("four"));
        let long = |at: usize| u64::from_le_bytes(raw[at..at + 8].try_into().expect("eight"));
        let compressor = match half(20) {
            1 => Compressor::Gzip,
            4 => Compressor::Xz,
            6 => Compressor::Zstd,
            other => {
                let name = match other {
                    2 => "lzma",
                    3 => "lzo",
                    5 => "lz4",
                    _ => "an unknown compressor",
                };
                return Err(ImageError::Unread {
                    what: format!("a squashfs compressed with {name}"),
                    remedy: "unpack it with unsquashfs and give the folder",
                });
            }
        };
        if half(28) != 4 || !BLOCK_BYTES.contains(&word(12)) {
            return Err(ImageError::damaged(
                NAME,
                "a version or block size that cannot be",
            ));
        }
        let filesystem = Self {
            bytes: Arc::clone(bytes),
            compressor,
            block_bytes: word(12),
            n_fragments: word(16),
            inodes_at: long(64),
            dirs_at: long(72),
            fragments_at: long(80),
            cache: Mutex::default(),
        };
        Ok((filesystem, long(32)))
    }

    fn unpack(&self, packed: &[u8], limit: usize) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        let limit = limit as u64;
        match self.compressor {
            Compressor::Gzip => flate2::bufread::ZlibDecoder::new(packed)
                .take(limit)
                .read_to_end(&mut content),
            Compressor::Xz => Xz::new(packed, XZ_MEMORY_KIB)
                .take(limit)
                .read_to_end(&mut content),
            Compressor::Zstd => zstd::stream::Decoder::with_buffer(packed)?
                .take(limit)
                .read_to_end(&mut content),
        }?;
        Ok(content)
    }

    fn metadata(&self, at: u64) -> io::Result<Arc<Unpacked>> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cache.get(&at) {
            return Ok(Arc::clone(known));
        }
        let mut header = [0; 2];
        self.bytes.read_exact_at(at, &mut header)?;
        let header = u16::from_le_bytes(header);
        let len = usize::from(header & 0x7fff);
        let mut raw = vec![0; len.min(METADATA_BYTES_MAX)];
        self.bytes.read_exact_at(at + 2, &mut raw)?;
        let content = if header & 0x8000 != 0 {
            raw
        } else {
            self.unpack(&raw, METADATA_BYTES_MAX)?
        };
        let block = Arc::new(Unpacked {
            content,
            next: at + 2 + len as u64,
        });
        if cache.len() >= N_CACHED {
            cache.clear();
        }
        cache.insert(at, Arc::clone(&block));
        Ok(block)
    }

    /// Up to `len` bytes of metadata, across blocks.
    fn read_metadata(&self, mut at: u64, offset: u16, len: usize) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        let mut skip = usize::from(offset);
        while content.len() < len {
            let block = match self.metadata(at) {
                Ok(block) => block,
                // The last inode may be shorter than what was asked for.
                Err(_) if !content.is_empty() => break,
                Err(error) => return Err(error),
            };
            let rest = block.content.get(skip..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            content.extend_from_slice(&rest[..rest.len().min(len - content.len())]);
            skip = 0;
            at = block.next;
        }
        Ok(content)
    }

    fn inode_place(&self, reference: u64) -> (u64, u16) {
        (
            self.inodes_at.saturating_add(reference >> 16),
            (reference & 0xffff) as u16,
        )
    }

    fn inode(&self, reference: u64) -> io::Result<Inode> {
        let (at, offset) = self.inode_place(reference);
        inode::parse(&self.read_metadata(at, offset, inode::INODE_BYTES_MAX)?)
    }

    /// What follows an inode: a name or a list.
    fn after_inode(&self, reference: u64, inode: &Inode, len: usize) -> io::Result<Vec<u8>> {
        let (at, offset) = self.inode_place(reference);
        let all = self.read_metadata(at, offset, inode.bytes + len)?;
        let rest = all.get(inode.bytes..inode.bytes + len);
        rest.map(<[u8]>::to_vec)
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn data_block(&self, at: u64, size: u32) -> io::Result<Vec<u8>> {
        let len = size & 0x00ff_ffff;
        if len > self.block_bytes {
            return Err(invalid("a block that is too long"));
        }
        let mut raw = vec![0; len as usize];
        self.bytes.read_exact_at(at, &mut raw)?;
        if size & 1 << 24 != 0 {
            Ok(raw)
        } else {
            self.unpack(&raw, self.block_bytes as usize)
        }
    }

    fn fragment(&self, number: u32) -> io::Result<Vec<u8>> {
        if number >= self.n_fragments {
            return Err(invalid("a fragment that is not there"));
        }
        let mut place = [0; 8];
        let table = self
            .fragments_at
            .saturating_add(u64::from(number / 512) * 8);
        self.bytes.read_exact_at(table, &mut place)?;
        let entry =
            self.read_metadata(u64::from_le_bytes(place), (number % 512 * 16) as u16, 16)?;
        let entry: [u8; 16] = entry.try_into().map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let start = u64::from_le_bytes(entry[..8].try_into().expect("eight"));
        let size = u32::from_le_bytes(entry[8..12].try_into().expect("four"));
        self.data_block(start, size)
    }

    /// One block of a file's content: `number` of them counted from its start.
    fn block(&self, file: &FileInode, sizes: &[u32], number: usize) -> io::Result<Vec<u8>> {
        let block_bytes = u64::from(self.block_bytes);
        let begin = number as u64 * block_bytes;
        let len = (file.size_bytes - begin).min(block_bytes) as usize;
        if let Some(&size) = sizes.get(number) {
            if size == 0 {
                return Ok(vec![0; len]);
            }
            let before: u64 = sizes[..number]
                .iter()
                .map(|&size| u64::from(size & 0x00ff_ffff))
                .sum();
            return self.data_block(file.start.saturating_add(before), size);
        }
        let fragment = self.fragment(file.fragment)?;
        let from = file.fragment_offset as usize;
        let part = fragment.get(from..from.saturating_add(len));
        part.map(<[u8]>::to_vec)
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// The stored sizes of the blocks up to the one that holds byte `end`.
    fn block_sizes(
        &self,
        reference: u64,
        inode: &Inode,
        file: &FileInode,
        end: u64,
    ) -> io::Result<Vec<u32>> {
        let block_bytes = u64::from(self.block_bytes);
        let n_blocks = if file.fragment == u32::MAX {
            file.size_bytes.div_ceil(block_bytes)
        } else {
            file.size_bytes / block_bytes
        };
        let wanted = n_blocks.min(end.div_ceil(block_bytes));
        let bytes = usize::try_from(wanted * 4).map_err(io::Error::other)?;
        let raw = self.after_inode(reference, inode, bytes)?;
        let sizes = raw.chunks_exact(4);
        Ok(sizes
            .map(|size| u32::from_le_bytes(size.try_into().expect("four")))
            .collect())
    }
}

impl Contents<u64> for Squashfs {
    fn read(
        &self,
        reference: &u64,
        size_bytes: u64,
        offset: u64,
        len: usize,
    ) -> io::Result<Vec<u8>> {
        let inode = self.inode(*reference)?;
        let Sort::File(file) = inode.sort else {
            return Err(invalid("not a regular file"));
        };
        let end = offset.saturating_add(len as u64).min(size_bytes);
        let sizes = self.block_sizes(*reference, &inode, &file, end)?;
        let block_bytes = u64::from(self.block_bytes);
        let mut content = Vec::new();
        let mut at = offset;
        while at < end {
            let number = usize::try_from(at / block_bytes).map_err(io::Error::other)?;
            let block = self.block(&file, &sizes, number)?;
            let from = (at % block_bytes) as usize;
            let n = (end - at).min(block_bytes - at % block_bytes) as usize;
            let part = block
                .get(from..from + n)
                .ok_or(io::ErrorKind::UnexpectedEof)?;
            content.extend_from_slice(part);
            at += n as u64;
        }
        Ok(content)
    }
}

struct Walk<'a> {
    filesystem: &'a Squashfs,
    tree: Tree<u64>,
    /// Directories that were read: a directory within itself is a trap.
    seen: HashSet<u64>,
    gaps: &'a mut Gaps,
}

impl Walk<'_> {
    fn dir(&mut self, reference: u64, path: &mut Vec<u8>, depth: usize) -> io::Result<()> {
        if depth > DEPTH_MAX || !self.seen.insert(reference) {
            return Err(invalid("directories within themselves"));
        }
        let filesystem = self.filesystem;
        let Sort::Dir { block, offset, len } = filesystem.inode(reference)?.sort else {
            return Err(invalid("a directory that is none"));
        };
        let at = filesystem.dirs_at.saturating_add(u64::from(block));
        // The length counts `.` and `..`, which are not stored, as three bytes.
        let listing = filesystem.read_metadata(at, offset, (len as usize).saturating_sub(3))?;
        for (name, child) in entries(&listing)? {
            let before = path.len();
            path.push(b'/');
            path.extend_from_slice(name);
            match self.entry(child, path, depth) {
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => return Err(error),
                Err(error) => self.gaps.of(&path[1..], error),
                Ok(()) => {}
            }
            path.truncate(before);
        }
        Ok(())
    }

    fn entry(&mut self, reference: u64, path: &mut Vec<u8>, depth: usize) -> io::Result<()> {
        let inode = self.filesystem.inode(reference)?;
        let node = match &inode.sort {
            Sort::Dir { .. } => Node::Dir(Default::default()),
            Sort::File(file) => Node::File {
                content: reference,
                size_bytes: file.size_bytes,
                permissions: inode.permissions,
            },
            Sort::Link { target_bytes } if *target_bytes > NAME_BYTES_MAX => {
                return Err(invalid("a link longer than any path can be"));
            }
            Sort::Link { target_bytes } => {
                let target =
                    self.filesystem
                        .after_inode(reference, &inode, *target_bytes as usize)?;
                Node::Link(target.into())
            }
            Sort::Other => Node::Other,
        };
        self.tree.put(path, node, Through::Nothing)?;
        match inode.sort {
            Sort::Dir { .. } => self.dir(reference, path, depth + 1),
            _ => Ok(()),
        }
    }
}

/// Names and inodes of a directory.
fn entries(listing: &[u8]) -> io::Result<Vec<(&[u8], u64)>> {
    let mut entries = Vec::new();
    let mut rest = listing;
    let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
    while !rest.is_empty() {
        let (header, after) = rest.split_at_checked(12).ok_or_else(cut)?;
        let n = u32::from_le_bytes(header[..4].try_into().expect("four"));
        let block = u32::from_le_bytes(header[4..8].try_into().expect("four"));
        rest = after;
        for _ in 0..=n {
            let (fixed, after) = rest.split_at_checked(8).ok_or_else(cut)?;
            let offset = u16::from_le_bytes([fixed[0], fixed[1]]);
            let len = usize::from(u16::from_le_bytes([fixed[6], fixed[7]])) + 1;
            let (name, after) = after.split_at_checked(len).ok_or_else(cut)?;
            entries.push((name, u64::from(block) << 16 | u64::from(offset)));
            rest = after;
        }
    }
    Ok(entries)
}
