//! The mount table: `/proc/self/mountinfo`, see proc_pid_mountinfo(5).

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use sexton_model::census::Device;

/// One mounted filesystem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The device behind it.
    pub device: Device,
    /// The part of the filesystem that is mounted, `/` for all of it.
    pub root: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
    /// The type of the filesystem.
    pub fs_type: String,
    /// Options of the filesystem, separated by commas.
    pub super_options: String,
}

impl Mount {
    /// Whether the filesystem has this option.
    pub fn has_option(&self, option: &str) -> bool {
        self.super_options.split(',').any(|has| has == option)
    }
}

/// Everything that is mounted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountTable {
    mounts: Vec<Mount>,
}

impl MountTable {
    /// Reads the table. One bad line spoils it: a table with holes would make us
    /// look in the wrong place.
    pub fn parse(table: &[u8]) -> Result<Self, String> {
        let mut mounts = Vec::new();
        for (i, line) in table.split(|byte| *byte == b'\n').enumerate() {
            if !line.is_empty() {
                mounts.push(parse_line(line).ok_or_else(|| format!("line {} is no mount", i + 1))?);
            }
        }
        Ok(Self { mounts })
    }

    /// All mounts, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter()
    }

    /// The first mount of a filesystem type, one that shows all of it if possible.
    pub fn of_type(&self, fs_type: &str) -> Option<&Mount> {
        let all = || self.mounts.iter().filter(|mount| mount.fs_type == fs_type);
        all()
            .find(|mount| mount.root == Path::new("/"))
            .or_else(|| all().next())
    }

    /// Where a file can be seen, given its device and its path inside that
    /// device's filesystem; `None` when no mount shows it.
    pub fn locate(&self, device: Device, inside: &[u8]) -> Option<Vec<u8>> {
        let shown = self.mounts.iter().filter(|mount| mount.device == device);
        let (below, mount) = shown
            .filter_map(|mount| {
                Some((
                    strip_root(inside, mount.root.as_os_str().as_bytes())?,
                    mount,
                ))
            })
            .min_by_key(|(below, mount)| (below.len(), mount.point.as_os_str().len()))?;
        let point = mount.point.as_os_str().as_bytes();
        let mut path = if point == b"/" {
            Vec::new()
        } else {
            point.to_vec()
        };
        path.extend_from_slice(below);
        Some(if path.is_empty() { b"/".to_vec() } else { path })
    }
}

/// What follows `root` in `path`, if `path` is `root` or lies below it.
fn strip_root<'a>(path: &'a [u8], root: &[u8]) -> Option<&'a [u8]> {
    if root == b"/" {
        return Some(path);
    }
    let below = path.strip_prefix(root)?;
    (below.is_empty() || below[0] == b'/').then_some(below)
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line
        .split(|byte| *byte == b' ')
        .filter(|field| !field.is_empty());
    let (_id, _parent) = (fields.next()?, fields.next()?);
    let device = parse_device(fields.next()?)?;
    let root = path(fields.next()?);
    let point = path(fields.next()?);
    let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
    let fs_type = text(rest.next()?);
    // A source may be empty, and then is left out.
    let tail: Vec<&[u8]> = rest.collect();
    let super_options = text(tail.last()?);
    Some(Mount {
        device,
        root,
        point,
        fs_type,
        super_options,
    })
}

/// `MAJOR:MINOR`
pub(crate) fn parse_device(field: &[u8]) -> Option<Device> {
    let (major, minor) = std::str::from_utf8(field).ok()?.split_once(':')?;
    Some(Device {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(&unescape(field)).into_owned()
}

fn path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape(field)))
}

/// Undoes the kernel's escapes: a backslash and three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let octal = (first == b'\\').then(|| after.get(..3)).flatten();
        match octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok())
        {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locate(table: &str, major: u32, inside: &str) -> Option<String> {
        let table = MountTable::parse(table.as_bytes()).expect("a good table");
        let found = table.locate(Device { major, minor: 0 }, inside.as_bytes())?;
        Some(String::from_utf8(found).expect("text"))
    }

    const TABLE: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:21 / /proc rw - proc proc rw
24 22 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
25 22 8:0 /var /mnt/a\\040b rw - xfs /dev/sda rw,attr2
26 22 8:0 /var/log /log rw master:1 propagate_from:2 - xfs /dev/sda rw
";

    #[test]
    fn a_file_is_found_where_it_is_mounted() {
        assert_eq!(
            locate(TABLE, 254, "/etc/passwd").as_deref(),
            Some("/etc/passwd")
        );
        assert_eq!(
            locate(TABLE, 8, "/var/lib/x").as_deref(),
            Some("/mnt/a b/lib/x")
        );
        assert_eq!(locate(TABLE, 8, "/var/log/x").as_deref(), Some("/log/x"));
        assert_eq!(locate(TABLE, 8, "/variant/x"), None);
        assert_eq!(locate(TABLE, 9, "/x"), None);
    }

    #[test]
    fn options_and_types_are_found() {
        let table = MountTable::parse(TABLE.as_bytes()).expect("a good table");
        let memory = table.of_type("cgroup").expect("is mounted");
        assert!(memory.has_option("memory") && !memory.has_option("mem"));
        assert_eq!(table.of_type("btrfs"), None);
    }

    #[test]
    fn a_bad_line_is_named() {
        assert_eq!(
            MountTable::parse(b"22 1 254:0 / /\nx\n").unwrap_err(),
            "line 1 is no mount"
        );
    }
}
