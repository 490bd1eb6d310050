//! Entries for fuzzers: each takes any bytes and must not panic, hang or grow.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sexton_host::Root;

use super::blocks::{Blocks, Disk};
use super::vhd::Vhd;
use super::vhdx::Vhdx;
use super::vmdk::Vmdk;
use crate::bytes::{Bytes, Shared};
use crate::gaps::Gaps;

/// Any bytes as an image file.
pub fn image(bytes: &[u8]) {
    let shared: Shared = Arc::new(bytes.to_vec());
    let mut gaps = Gaps::default();
    if let Ok(Some((root, _))) = super::open(&shared, &mut gaps, 0) {
        let _ = root.list(Path::new("/etc"));
        let _ = root.read(Path::new("/etc/os-release"), 1 << 20);
    }
}

/// Any bytes as a partition table.
pub fn partition_table(bytes: &[u8]) {
    let shared: Shared = Arc::new(bytes.to_vec());
    let _ = super::disk_table::read(&shared);
}

/// Any bytes as a tar layer.
pub fn tar_layer(bytes: &[u8]) {
    let shared: Shared = Arc::new(bytes.to_vec());
    let mut gaps = Gaps::default();
    let mut layers = super::tar::Layers::default();
    let _ = layers.add(&shared, super::tar::Sort::Layer, &mut gaps);
}

/// Any bytes as the JSON files of an OCI image.
pub fn oci_manifest(bytes: &[u8]) {
    super::oci::parse_any(bytes);
}

/// Any bytes as the text of an LVM volume group.
pub fn lvm(bytes: &[u8]) {
    super::lvm::fuzz(&String::from_utf8_lossy(bytes));
}

/// Any sectors as an XFS filesystem, whose checksums are not checked.
pub fn xfs(bytes: &[u8]) {
    let mut gaps = Gaps::default();
    let sectors: Shared = Arc::new(Sectors::new(bytes));
    if let Ok((root, _)) = super::xfs::open(&sectors, &mut gaps, false) {
        walk(root.as_ref());
    }
}

/// Any sectors as a Btrfs filesystem, whose checksums are not checked.
pub fn btrfs(bytes: &[u8]) {
    let mut gaps = Gaps::default();
    let sectors: Shared = Arc::new(Sectors::new(bytes));
    if let Ok((root, _)) = super::btrfs::open(&sectors, &mut gaps, false) {
        walk(root.as_ref());
    }
}

/// Any sectors as a virtual disk, whose checksums are not checked; the first byte says of which
/// format.
pub fn virtual_disk(bytes: &[u8]) {
    let Some((format, bytes)) = bytes.split_first() else {
        return;
    };
    let file: Shared = Arc::new(Sectors::new(bytes).cut());
    match format % 3 {
        0 => sample(Vmdk::open(file)),
        1 => sample(Vhd::open(file, false)),
        _ => sample(Vhdx::open(file, false)),
    }
}

/// Reads here and there.
fn sample<B: Blocks>(disk: io::Result<B>) {
    let Ok(disk) = disk.map(Disk) else {
        return;
    };
    let mut buffer = [0; 700];
    for offset in (0..64)
        .map(|n| n * 65_521)
        .chain([disk.len().saturating_sub(9), u64::MAX])
    {
        let _ = disk.read_at(offset, &mut buffer);
    }
}

/// A filesystem of which only the sectors that hold something are given: the number of each,
/// in four bytes, and its 512 bytes. The others are zeros.
///
/// The smallest filesystems have 16 MiB, of which a fuzzer would change zeros.
struct Sectors {
    sectors: HashMap<u32, Vec<u8>>,
    len: u64,
}

impl Sectors {
    fn new(bytes: &[u8]) -> Self {
        let sectors = bytes.chunks_exact(516).map(|sector| {
            let number = u32::from_le_bytes(sector[..4].try_into().expect("four"));
            (number, sector[4..].to_vec())
        });
        Self {
            sectors: sectors.collect(),
            len: 512 << 20,
        }
    }

    /// Ends with a sector of zeros after the last, as a stream does.
    fn cut(mut self) -> Self {
        let last = self.sectors.keys().max().copied().unwrap_or(0);
        self.len = self.len.min((u64::from(last) + 2) * 512);
        self
    }
}

impl Bytes for Sectors {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len().saturating_sub(offset)).unwrap_or(usize::MAX);
        let n = buffer.len().min(left);
        let mut done = 0;
        while done < n {
            let at = offset + done as u64;
            let within = (at % 512) as usize;
            let piece = &mut buffer[done..n.min(done + 512 - within)];
            match u32::try_from(at / 512)
                .ok()
                .and_then(|at| self.sectors.get(&at))
            {
                Some(sector) => piece.copy_from_slice(&sector[within..within + piece.len()]),
                None => piece.fill(0),
            }
            done += piece.len();
        }
        Ok(n)
    }
}

/// Reads a little of everything.
fn walk(root: &dyn Root) {
    let mut folders = vec![PathBuf::from("/")];
    let mut n_left = 300;
    while let Some(folder) = folders.pop() {
        for entry in root.list(&folder).unwrap_or_default() {
            let path = folder.join(&entry.name);
            if n_left == 0 {
                return;
            }
            n_left -= 1;
            let _ = root.meta(&path);
            let _ = root.read_link(&path);
            let _ = root.read(&path, 64 << 10);
            let _ = root.read_at(&path, 1 << 20, 4096);
            if entry.is_dir {
                folders.push(path);
            }
        }
    }
}
