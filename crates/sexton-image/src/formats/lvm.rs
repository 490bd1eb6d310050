//! LVM2: logical volumes that are linear, on any number of partitions of one image.
//!
//! As in LVM's lib/format_text/layout.h. A volume that is mirrored, striped, thin or cached is
//! named and not read.

use std::io;
use std::sync::Arc;

use super::lvm_text::{self, Section, Value};
use super::volumes::{self, Volume};
use super::{Format, N_NESTED_MAX, Opened, Sniff, magic};
use crate::bytes::{Bytes, Shared};
use crate::error::ImageError;
use crate::gaps::Gaps;
use crate::tree::invalid;

const NAME: &str = "LVM";

pub(super) static FORMAT: Format = Format {
    name: NAME,
    sniff,
    open,
};

/// The label is in one of the first four sectors, by default in the second.
const LABEL_SECTORS: [u64; 4] = [1, 0, 2, 3];

/// LVM's own areas have 1 MiB; one that says more than this is damaged.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Segments of one volume, and volumes of one group.
const N_SEGMENTS_MAX: usize = 100_000;
const N_VOLUMES_MAX: usize = 1_000;

fn sniff(head: &[u8]) -> Sniff {
    let found = LABEL_SECTORS.map(|sector| magic(head, sector as usize * 512, b"LABELONE"));
    if found.contains(&Sniff::Yes) {
        return Sniff::Yes;
    }
    match head.len() < 2048 {
        true => Sniff::More(2048),
        false => Sniff::No,
    }
}

pub(super) fn is_member(bytes: &Shared) -> bool {
    let mut head = vec![0; 2048];
    let n = bytes.read_at(0, &mut head).unwrap_or(0);
    sniff(&head[..n]) == Sniff::Yes
}

/// A disk that is a physical volume as a whole.
fn open(bytes: &Shared, gaps: &mut Gaps, depth: usize) -> Result<Opened, ImageError> {
    if depth >= N_NESTED_MAX {
        return Err(ImageError::damaged(NAME, "a volume group within a volume"));
    }
    let mut unread = Vec::new();
    let found = volumes(&[Arc::clone(bytes)], gaps, &mut unread);
    volumes::join(NAME, found, unread, gaps)
}

/// A disk or partition that belongs to a group.
struct Member {
    id: String,
    bytes: Shared,
    text: Option<String>,
}

/// Opens every logical volume of the groups that these are of; says in `unread` what cannot be.
pub(super) fn volumes(
    members: &[Shared],
    gaps: &mut Gaps,
    unread: &mut Vec<String>,
) -> Vec<Volume> {
    let mut known = Vec::new();
    for bytes in members {
        match member(bytes) {
            Ok(member) => known.push(member),
            Err(error) => unread.push(format!("an LVM physical volume: {error}")),
        }
    }
    let mut volumes = Vec::new();
    for (name, group) in groups(&known, unread) {
        for (volume, section) in group.sections("logical_volumes").take(N_VOLUMES_MAX) {
            let title = format!("logical volume {name}/{volume}");
            let bytes = match linear(&group, section, &known) {
                Ok(bytes) => bytes,
                Err(error) => {
                    // What LVM itself uses has no name that could be mounted.
                    if is_visible(section) {
                        unread.push(format!("{title}: {error}"));
                    }
                    continue;
                }
            };
            let double = |name: &str| name.replace('-', "--");
            let mapper = format!("/dev/mapper/{}-{}", double(&name), double(volume));
            let ids = vec![mapper, format!("/dev/{name}/{volume}")];
            let opened = Volume::open(title, bytes, ids, gaps);
            volumes.extend(opened.into_volume(unread));
        }
    }
    volumes
}

fn is_visible(volume: &Section) -> bool {
    let is_said = |value: &Value| matches!(value, Value::Text(word) if word == "VISIBLE");
    volume
        .list("status")
        .is_ok_and(|list| list.iter().any(is_said))
}

/// The newest text of each group.
fn groups(members: &[Member], unread: &mut Vec<String>) -> Vec<(String, Section)> {
    let mut groups: Vec<(String, Section, u64)> = Vec::new();
    for text in members.iter().filter_map(|member| member.text.as_deref()) {
        let parsed = match lvm_text::parse(text) {
            Ok(parsed) => parsed,
            Err(error) => {
                unread.push(error.to_string());
                continue;
            }
        };
        for (name, value) in parsed.0 {
            let Value::Section(group) = value else {
                continue;
            };
            let number = group.number("seqno").unwrap_or(0);
            match groups.iter_mut().find(|(known, ..)| *known == name) {
                Some(known) if known.2 < number => *known = (name, group, number),
                Some(_) => {}
                None => groups.push((name, group, number)),
            }
        }
    }
    let groups = groups.into_iter().map(|(name, group, _)| (name, group));
    groups.collect()
}

fn member(bytes: &Shared) -> io::Result<Member> {
    let mut label = [0; 512];
    let at = LABEL_SECTORS.map(|sector| sector * 512);
    let at = at.into_iter().find(|&at| {
        let read = bytes.read_exact_at(at, &mut label);
        read.is_ok() && label.starts_with(b"LABELONE")
    });
    let at = at.ok_or_else(|| invalid("it has no label"))?;
    let header = at + u64::from(word(&label, 20));
    let mut raw = [0; 512];
    bytes.read_exact_at(header, &mut raw)?;
    let id = String::from_utf8_lossy(&raw[..32]).into_owned();
    // Two lists of places, each of which ends with an empty one: data, then metadata.
    let mut places = raw[40..].chunks_exact(16);
    let mut list = || {
        let place = |raw: &[u8]| (long(raw, 0), long(raw, 8));
        let list = places.by_ref().map(place);
        list.take_while(|&(at, _)| at != 0).collect::<Vec<_>>()
    };
    let _data = list();
    let mut why = None;
    for (at, _) in list() {
        match text(bytes, at) {
            Ok(None) => {}
            Ok(text) => {
                let bytes = Arc::clone(bytes);
                return Ok(Member { id, bytes, text });
            }
            Err(error) => why = Some(error),
        }
    }
    match why {
        Some(error) => Err(error),
        // Another member of the group holds the text.
        None => Ok(Member {
            id,
            bytes: Arc::clone(bytes),
            text: None,
        }),
    }
}

/// The newest text in an area, which is written round and round.
fn text(bytes: &Shared, area: u64) -> io::Result<Option<String>> {
    let mut head = [0; 512];
    bytes.read_exact_at(area, &mut head)?;
    if &head[4..20] != b" LVM2 x[5A%r0N*>" || sum(&head[4..]) != word(&head, 0) {
        return Err(invalid("its metadata is damaged"));
    }
    let area_bytes = long(&head, 32);
    let (from, len) = (long(&head, 40), long(&head, 48));
    if from == 0 || len == 0 {
        return Ok(None);
    }
    if area_bytes > TEXT_BYTES_MAX || !(512..area_bytes).contains(&from) || len > area_bytes - 512 {
        return Err(invalid("its metadata has impossible sizes"));
    }
    let mut raw = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    let first = usize::try_from(len.min(area_bytes - from)).map_err(io::Error::other)?;
    bytes.read_exact_at(area + from, &mut raw[..first])?;
    bytes.read_exact_at(area + 512, &mut raw[first..])?;
    if sum(&raw) != word(&head, 56) {
        return Err(invalid("the checksum of its metadata is wrong"));
    }
    Ok(Some(String::from_utf8_lossy(&raw).into_owned()))
}

/// LVM's own checksum: the polynomial of zlib from another start, without the last turn.
fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0xf597_a6cf, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| match sum & 1 {
            0 => sum >> 1,
            _ => sum >> 1 ^ 0xedb8_8320,
        })
    })
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"))
}

/// A part of a logical volume: its first byte, its length, and where it is.
struct Segment {
    from: u64,
    len: u64,
    bytes: Shared,
    at: u64,
}

struct Linear {
    segments: Vec<Segment>,
    len: u64,
}

fn linear(group: &Section, volume: &Section, members: &[Member]) -> io::Result<Shared> {
    let extent_bytes = sectors(group.number("extent_size")?)?;
    let n_segments = volume.number("segment_count")?;
    let mut linear = Linear {
        segments: Vec::new(),
        len: 0,
    };
    for number in (1..=n_segments).take(N_SEGMENTS_MAX) {
        let segment = volume.section(&format!("segment{number}"))?;
        let sort = segment.text("type")?;
        if sort != "striped" || segment.number("stripe_count")? != 1 {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("a volume that is not linear ({sort}); activate it and give the device"),
            ));
        }
        let too_large = || invalid("a volume of an impossible size");
        let extents = |n: u64| n.checked_mul(extent_bytes).ok_or_else(too_large);
        let [Value::Text(place), Value::Number(first)] = segment.list("stripes")? else {
            return Err(invalid("a segment without a place"));
        };
        let place = group.section("physical_volumes")?.section(place)?;
        let id = place.text("id")?.replace('-', "");
        let member = members.iter().find(|member| member.id == id);
        let member = member.ok_or_else(|| {
            let device = place.text("device").unwrap_or("a device");
            let what = format!("a part of it is on {device}, which is not part of this image");
            io::Error::new(io::ErrorKind::NotFound, what)
        })?;
        let begin = sectors(place.number("pe_start")?)?;
        let (from, len) = (
            extents(segment.number("start_extent")?)?,
            extents(segment.number("extent_count")?)?,
        );
        // Segments are in order and without gaps.
        if from != linear.len || len == 0 {
            return Err(invalid("segments out of order"));
        }
        linear.len = from.checked_add(len).ok_or_else(too_large)?;
        linear.segments.push(Segment {
            from,
            len,
            bytes: Arc::clone(&member.bytes),
            at: extents(*first)?.checked_add(begin).ok_or_else(too_large)?,
        });
    }
    Ok(Arc::new(linear))
}

fn sectors(n: u64) -> io::Result<u64> {
    n.checked_mul(512)
        .ok_or_else(|| invalid("a volume of an impossible size"))
}

impl Bytes for Linear {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let mut done = 0;
        while done < wanted {
            let at = offset + done as u64;
            let number = self
                .segments
                .partition_point(|segment| segment.from + segment.len <= at);
            let segment = &self.segments[number];
            let within = at - segment.from;
            let rest = usize::try_from(segment.len - within).unwrap_or(usize::MAX);
            let n = rest.min(wanted - done);
            let place = segment.at.saturating_add(within);
            let piece = &mut buffer[done..done + n];
            segment.bytes.read_exact_at(place, piece)?;
            done += n;
        }
        Ok(wanted)
    }
}

/// Any text as that of a volume group, all of whose members are here.
pub(super) fn fuzz(text: &str) {
    let Ok(parsed) = lvm_text::parse(text) else {
        return;
    };
    for (_, value) in parsed.0 {
        let Value::Section(group) = value else {
            continue;
        };
        let members = group
            .sections("physical_volumes")
            .map(|(_, member)| Member {
                id: member.text("id").unwrap_or_default().replace('-', ""),
                bytes: Arc::new(vec![0; 4096]),
                text: None,
            });
        let members: Vec<Member> = members.collect();
        for (_, volume) in group.sections("logical_volumes") {
            if let Ok(bytes) = linear(&group, volume, &members) {
                let mut buffer = [0; 64];
                for offset in [0, 4090, bytes.len() / 2, bytes.len() - 1, u64::MAX] {
                    let _ = bytes.read_at(offset, &mut buffer);
                }
            }
        }
    }
}
