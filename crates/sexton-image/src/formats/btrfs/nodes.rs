//! Blocks of trees, and the items in a range of keys.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::chunks::Chunks;
use super::layout::{KEY_BYTES, Key, long, part, size};
use super::superblock::{Pointer, Superblock};
use crate::bytes::Shared;
use crate::tree::invalid;

const HEAD_BYTES: usize = 101;
const ITEM_BYTES: usize = KEY_BYTES + 8;
const POINTER_BYTES: usize = KEY_BYTES + 16;

/// As high as a tree may be (`BTRFS_MAX_LEVEL`).
const N_LEVELS_MAX: u8 = 8;

/// Blocks that are kept: at 16 KiB each 4 MiB, and half as much for their keys.
const N_KEPT_MAX: usize = 256;

/// The device, its chunks, and the blocks that were read last.
pub(super) struct Nodes {
    pub(super) bytes: Shared,
    pub(super) superblock: Superblock,
    pub(super) chunks: Chunks,
    kept: Mutex<HashMap<u64, Arc<Node>>>,
}

/// A block of a tree.
struct Node {
    raw: Vec<u8>,
    keys: Vec<Key>,
}

impl Node {
    fn parse(raw: Vec<u8>, level: u8) -> io::Result<Self> {
        let n = size(&raw, 96)?;
        let entry_bytes = match level {
            0 => ITEM_BYTES,
            _ => POINTER_BYTES,
        };
        if n > (raw.len() - HEAD_BYTES) / entry_bytes {
            return Err(invalid("a block of a tree with an impossible size"));
        }
        let keys: Vec<Key> = (0..n)
            .map(|n| Key::parse(&raw, HEAD_BYTES + n * entry_bytes))
            .collect::<io::Result<_>>()?;
        match keys.windows(2).all(|pair| pair[0] < pair[1]) {
            true => Ok(Self { raw, keys }),
            false => Err(invalid("keys of a tree out of order")),
        }
    }
}

/// What to do with an item: go on or stop.
pub(super) type Visit<'a> = &'a mut dyn FnMut(Key, &[u8]) -> io::Result<bool>;

/// The keys that are asked for, both included.
#[derive(Clone, Copy)]
struct Range {
    from: Key,
    to: Key,
}

impl Nodes {
    pub(super) fn new(bytes: Shared, superblock: Superblock) -> io::Result<Self> {
        let chunks = Chunks::of_list(&superblock.first_chunks, superblock.device)?;
        let mut nodes = Self {
            bytes,
            superblock,
            chunks,
            kept: Mutex::default(),
        };
        let mut found = Vec::new();
        let device = nodes.superblock.device;
        let (from, to) = of_object(super::chunks::CHUNKS, super::chunks::CHUNK_ITEM);
        nodes.walk(nodes.superblock.chunk_root, from, to, &mut |key, item| {
            found.push((key.offset, item.to_vec()));
            Ok(true)
        })?;
        for (place, item) in found {
            nodes.chunks.add(place, &item, device)?;
        }
        Ok(nodes)
    }

    /// Shows each item from one key to another, in order.
    ///
    /// The keys of a block lie between those that the block above says, so no block comes twice
    /// in one walk.
    pub(super) fn walk(
        &self,
        root: Pointer,
        from: Key,
        to: Key,
        visit: Visit<'_>,
    ) -> io::Result<()> {
        if root.level >= N_LEVELS_MAX {
            return Err(invalid("a tree of an impossible height"));
        }
        self.branch(root, Range { from, to }, None, None, visit)
            .map(|_| ())
    }

    /// The item of a key.
    pub(super) fn find(&self, root: Pointer, key: Key) -> io::Result<Option<Vec<u8>>> {
        let mut found = None;
        self.walk(root, key, key, &mut |_, item| {
            found = Some(item.to_vec());
            Ok(false)
        })?;
        Ok(found)
    }

    /// `first` is the key that the block must begin with, `end` the one that it may not reach.
    fn branch(
        &self,
        pointer: Pointer,
        range: Range,
        first: Option<Key>,
        end: Option<Key>,
        visit: Visit<'_>,
    ) -> io::Result<bool> {
        let node = self.node(pointer)?;
        let (raw, keys) = (&node.raw, &node.keys);
        let is_in_place = first.is_none_or(|first| keys.first() == Some(&first))
            && end.is_none_or(|end| keys.last().is_none_or(|last| *last < end));
        if !is_in_place {
            return Err(invalid("keys of a tree out of order"));
        }
        if pointer.level == 0 {
            let start = keys.partition_point(|key| *key < range.from);
            for (n, key) in keys.iter().enumerate().skip(start) {
                if *key > range.to {
                    break;
                }
                let entry = part(raw, HEAD_BYTES + n * ITEM_BYTES + KEY_BYTES, 8)?;
                let from = HEAD_BYTES.saturating_add(size(entry, 0)?);
                if !visit(*key, part(raw, from, size(entry, 4)?)?)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        // The last one that begins at or before the first key may hold it.
        let start = keys.partition_point(|key| *key <= range.from);
        for n in start.saturating_sub(1)..keys.len() {
            if keys[n] > range.to {
                break;
            }
            let at = HEAD_BYTES + n * POINTER_BYTES + KEY_BYTES;
            let below = Pointer {
                place: long(raw, at)?,
                level: pointer.level - 1,
                generation: long(raw, at + 8)?,
            };
            let next = keys.get(n + 1).copied().or(end);
            if !self.branch(below, range, Some(keys[n]), next, visit)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn node(&self, pointer: Pointer) -> io::Result<Arc<Node>> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept().get(&pointer.place).cloned();
        if let Some(node) = known {
            self.check_place(&node.raw, pointer)?;
            return Ok(node);
        }
        let node_bytes = self.superblock.node_bytes;
        let (copies, left) = self.chunks.find(pointer.place)?;
        if left < node_bytes as u64 {
            return Err(invalid("a block of a tree across the end of a chunk"));
        }
        let mut outcome = Err(invalid("a block of a tree that is nowhere"));
        for copy in copies {
            let mut node = vec![0; node_bytes];
            outcome = self
                .bytes
                .read_exact_at(copy, &mut node)
                .and_then(|()| self.check(&node, pointer))
                .map(|()| node);
            if outcome.is_ok() {
                break;
            }
        }
        let node = Arc::new(Node::parse(outcome?, pointer.level)?);
        let mut kept = kept();
        if kept.len() >= N_KEPT_MAX {
            kept.clear();
        }
        kept.insert(pointer.place, Arc::clone(&node));
        Ok(node)
    }

    /// Checks that a block is whole, and that it is the one that was asked for.
    fn check(&self, node: &[u8], pointer: Pointer) -> io::Result<()> {
        if self.superblock.checks_sums {
            if !self.superblock.sum.is_right(node) {
                return Err(invalid("a checksum is wrong"));
            }
            if part(node, 32, 16)? != self.superblock.uuid || long(node, 48)? != pointer.place {
                return Err(invalid("metadata of another place or filesystem"));
            }
        }
        self.check_place(node, pointer)
    }

    fn check_place(&self, node: &[u8], pointer: Pointer) -> io::Result<()> {
        if node[100] != pointer.level {
            return Err(invalid("a block of a tree at the wrong level"));
        }
        if self.superblock.checks_sums && long(node, 80)? != pointer.generation {
            return Err(invalid("a block of a tree of another time"));
        }
        Ok(())
    }

    /// Fills a buffer from a place of the filesystem on: of files, of which one copy is as good
    /// as another.
    pub(super) fn read(&self, mut place: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            let (copies, left) = self.chunks.find(place)?;
            let n = buffer
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            let (piece, rest) = buffer.split_at_mut(n);
            let copy = copies.first().ok_or(io::ErrorKind::UnexpectedEof)?;
            self.bytes.read_exact_at(*copy, piece)?;
            place = place.saturating_add(n as u64);
            buffer = rest;
        }
        Ok(())
    }
}

/// From the first to the last key of one sort of an object.
pub(super) fn of_object(object: u64, sort: u8) -> (Key, Key) {
    (Key::new(object, sort, 0), Key::new(object, sort, u64::MAX))
}
