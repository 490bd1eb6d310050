//! Disk images: the partition that holds the root filesystem.

use std::sync::Arc;

use super::disk_table::{self, MasterRecord};
use super::{Format, Opened, Sniff, is_root, no_root};
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

/// Opens every partition; the first that holds a system is the root. The others, where
/// something may be mounted below it, are gaps.
fn open(disk: &Shared, gaps: &mut Gaps, depth: usize) -> Result<Opened, ImageError> {
    let (table, partitions) =
        disk_table::read(disk).map_err(|error| ImageError::damaged(NAME, error))?;
    let mut found: Option<Opened> = None;
    let mut others = Vec::new();
    for partition in partitions {
        let number = partition.number;
        if partition.from >= disk.len() {
            others.push(format!(
                "partition {number} lies beyond the end of the image"
            ));
            continue;
        }
        let bytes: Shared = Arc::new(Part::new(Arc::clone(disk), partition.from, partition.len));
        match super::open(&bytes, gaps, depth + 1) {
            Ok(Some((root, what))) if found.is_none() && is_root(root.as_ref()) => {
                found = Some((
                    root,
                    format!("{NAME} ({table}), partition {number}, {what}"),
                ));
            }
            Ok(Some((_, what))) if found.is_some() => {
                others.push(format!("partition {number} ({what}) is not the root"))
            }
            Ok(Some((root, what))) => {
                let why = no_root(root.as_ref(), what);
                others.push(format!("partition {number}: {why}"))
            }
            Ok(None) => {}
            Err(error) => others.push(format!("partition {number}: {error}")),
        }
    }
    match found {
        Some(opened) => {
            others.into_iter().for_each(|other| gaps.add(other));
            Ok(opened)
        }
        None if others.is_empty() => Err(ImageError::NoRoot {
            what: format!("a {NAME} ({table})"),
        }),
        None => Err(ImageError::damaged(
            NAME,
            format!(
                "no partition with a root filesystem can be read; {}",
                others.join("; ")
            ),
        )),
    }
}
