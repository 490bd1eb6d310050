//! What tracefs says of a tracepoint: its number, which fields its programs are given, and where.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::{self, Errno};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::{Host, HostError};

/// Where tracefs is when the mount table does not show it: below debugfs it is mounted
/// when someone looks.
const PLACES: [&str; 2] = ["kernel/tracing", "kernel/debug/tracing"];

/// A tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracepoint {
    /// What `perf_event_open` knows it by.
    pub id: u64,
    /// What its programs are given.
    pub fields: Vec<Field>,
}

/// One field of a tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Bytes from the start.
    pub offset: usize,
    /// Bytes it takes.
    pub size: usize,
    /// Whether it says where the content is instead of being it (`__data_loc`).
    pub is_located: bool,
}

impl Tracepoint {
    /// Reads the text of a format. `None` when its fields are not written as we know it.
    pub fn parse(format: &str, id: u64) -> Option<Self> {
        let fields = fields(format)?;
        Some(Self { id, fields })
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    /// The number in a field of one to eight bytes, as if it had no sign.
    pub fn number(&self, bytes: &[u8]) -> Option<u64> {
        let own = bytes.get(self.offset..)?.get(..self.size)?;
        Some(match *own {
            [a] => a.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            _ => u64::from_ne_bytes(own.try_into().ok()?),
        })
    }

    /// The text in a field, up to its closing zero: in place, or where the field says.
    pub fn text<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let own = if self.is_located {
            // The offset, and the length above it.
            let place = self.number(bytes)?;
            let (offset, len) = (place & 0xffff, place >> 16 & 0xffff);
            bytes.get(offset as usize..)?.get(..len as usize)?
        } else {
            bytes.get(self.offset..)?.get(..self.size)?
        };
        own.split(|&b| b == 0).next()
    }
}

/// The kernel's tracefs, to be read.
#[derive(Debug)]
pub struct Tracefs {
    place: PathBuf,
    /// Where nobody has mounted it: a mount that is in no folder, so that nobody else sees it,
    /// and that is gone with us.
    _own: Option<OwnedFd>,
}

impl Tracefs {
    /// Finds where it is mounted, or opens it for ourselves.
    pub fn open(host: &Host) -> Result<Self, HostError> {
        if let Some(place) = mounted(host)? {
            return Ok(Self { place, _own: None });
        }
        if !host.is_live() {
            return Err(HostError::NotMounted("tracefs"));
        }
        match open_unseen() {
            Ok(own) => Ok(Self {
                place: Path::new("/proc/self/fd").join(own.as_raw_fd().to_string()),
                _own: Some(own),
            }),
            Err(Errno::PERM) => Err(HostError::Read {
                path: host.sys(PLACES[0])?,
                source: Errno::PERM.into(),
            }),
            Err(_) => Err(HostError::NotMounted("tracefs")),
        }
    }

    /// Describes one, `cgroup/cgroup_mkdir`.
    pub fn tracepoint(&self, host: &Host, name: &str) -> Result<Tracepoint, HostError> {
        let folder = self.place.join("events").join(name);
        let (format, id) = (folder.join("format"), folder.join("id"));
        let text = host.read_text(&format)?;
        let number = host.read_text(&id)?.trim().parse();
        let number = number.map_err(|_| malformed(id, "it is no number"))?;
        Tracepoint::parse(&text, number)
            .ok_or_else(|| malformed(format, "its fields are not written as we know it"))
    }
}

fn mounted(host: &Host) -> Result<Option<PathBuf>, HostError> {
    if let Some(mount) = host.mounts().of_type("tracefs") {
        return Ok(Some(mount.point.clone()));
    }
    for below in PLACES {
        let place = host.sys(below)?;
        if host.list(place.join("events")).is_ok() {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// A tracefs that is mounted nowhere: Linux 5.2 and later give one to root.
fn open_unseen() -> io::Result<OwnedFd> {
    let filesystem = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&filesystem)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&filesystem, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn malformed(path: PathBuf, what: &str) -> HostError {
    HostError::Malformed {
        path,
        what: what.to_owned(),
    }
}

/// The fields in the text of a format; `None` when they are not written as we know it.
fn fields(format: &str) -> Option<Vec<Field>> {
    let lines = format.lines();
    let fields = lines.filter_map(|line| line.trim().strip_prefix("field:"));
    let fields: Option<Vec<Field>> = fields.map(parse).collect();
    fields.filter(|fields| !fields.is_empty())
}

/// `__data_loc char[] path; offset:24; size:4; signed:0;`, with tabs between.
fn parse(line: &str) -> Option<Field> {
    let mut parts = line.split(';').map(str::trim);
    let declared = parts.next()?;
    let name = declared.rsplit([' ', '*']).next()?;
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
    Some(Field {
        name: name.split('[').next()?.to_owned(),
        is_located: declared.starts_with("__data_loc "),
        offset: number("offset:")?,
        size: number("size:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<(&str, usize, usize)>) {
        let field = parse(line);
        let shown = field
            .as_ref()
            .map(|field| (field.name.as_str(), field.offset, field.size));
        assert_eq!(shown, expected);
    }

    #[test]
    fn fields_of_a_format() {
        check(
            "unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;",
            Some(("common_type", 0, 2)),
        );
        check(
            "__data_loc char[] path;\toffset:24;\tsize:4;\tsigned:0;",
            Some(("path", 24, 4)),
        );
        check(
            "char comm[16];\toffset:8;\tsize:16;\tsigned:0;",
            Some(("comm", 8, 16)),
        );
        check("char *name;\toffset:8;\tsize:8;", Some(("name", 8, 8)));
        check("int root;\toffset:x;\tsize:4;", None);
        check("int root", None);
    }
}
