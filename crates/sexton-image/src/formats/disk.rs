//! Disk images: partitions, those of LVM among them, joined as a boot would mount them.

use std::sync::Arc;

use super::disk_table::{self, MasterRecord, Partition};
use super::volumes::{self, Volume};
use super::{Format, N_NESTED_MAX, Opened, Sniff, lvm};
use crate::bytes::{Part, Shared};
use crate::error::ImageError;
use crate::gaps::Gaps;

const NAME: &str = "disk image";

pub(super) static FORMAT: Format = Format {
    name: NAME,
    sniff: |head| match head.len() {
        0..4104 if MasterRecord::parse(head).is_none() => Sniff::More(4104),
        _ if MasterRecord::parse(head).is_some() => Sniff::Yes,
        _ if head.get(512..520) == Some(b"EFI PART") => Sniff::Yes,
        _ if head.get(4096..4104) == Some(b"EFI PART") => Sniff::Yes,
        _ => Sniff::No,
    },
    open,
};

fn open(disk: &Shared, gaps: &mut Gaps, depth: usize) -> Result<Opened, ImageError> {
    if depth >= N_NESTED_MAX {
        return Err(ImageError::damaged(NAME, "a disk within a partition"));
    }
    let (table, partitions) =
        disk_table::read(disk).map_err(|error| ImageError::damaged(NAME, error))?;
    let mut found = Vec::new();
    let mut unread = Vec::new();
    let mut members = Vec::new();
    for partition in partitions {
        let number = partition.number;
        if partition.from >= disk.len() {
            unread.push(format!(
                "partition {number} lies beyond the end of the image"
            ));
            continue;
        }
        let bytes: Shared = Arc::new(Part::new(Arc::clone(disk), partition.from, partition.len));
        if lvm::is_member(&bytes) {
            members.push(bytes);
            continue;
        }
        let title = format!("partition {number}");
        let opened = Volume::open(title, bytes, ids(&partition), gaps);
        let volume = opened.into_volume(&mut unread);
        found.extend(volume.map(|volume| volume.of_type(partition.place())));
    }
    found.extend(lvm::volumes(&members, gaps, &mut unread));
    let name = match table {
        "GPT" => "disk image (GPT)",
        _ => "disk image (MBR)",
    };
    volumes::join(name, found, unread, gaps)
}

/// By what a table of mounts may name a partition.
fn ids(partition: &Partition) -> Vec<String> {
    let mut ids = volumes::device_names(partition.number);
    ids.extend(volumes::tagged("PARTUUID", "partuuid", &partition.uuid));
    if !partition.label.is_empty() {
        ids.extend(volumes::tagged("PARTLABEL", "partlabel", &partition.label));
    }
    ids
}
