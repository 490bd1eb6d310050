//! Where the debug file of a stripped program is, and whether a file is it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::elf::{DebugLink, Headers};
use crate::source::Source;

/// Where debug packages install.
const FOLDER: &str = "/usr/lib/debug";

/// The checksum of a larger file is not taken. Files of packages have build-ids.
const MAX_SUMMED_BYTES: u64 = 64 << 20;

/// What a stripped file says of its debug file.
#[derive(Debug, Default)]
pub struct Wanted {
    /// What both have in common.
    pub build_id: Option<Vec<u8>>,
    /// The name of the other, and its checksum.
    pub link: Option<DebugLink>,
}

impl Wanted {
    /// What is wanted for a file; nothing when it was not stripped.
    pub fn of(headers: &Headers, source: &dyn Source) -> Self {
        if headers.has_all_symbols() {
            return Self::default();
        }
        Self {
            build_id: headers.build_id(source),
            link: headers.debug_link(source),
        }
    }

    /// The paths at which it may be, best first, for a program at `path`.
    pub fn paths(&self, path: &Path) -> Vec<PathBuf> {
        let by_id = self.build_id.as_deref().and_then(|id| {
            let (first, rest) = hex_parts(id)?;
            Some(format!("{FOLDER}/.build-id/{first}/{rest}.debug").into())
        });
        let mut paths: Vec<PathBuf> = by_id.into_iter().collect();
        if let (Some(link), Some(folder)) = (&self.link, path.parent()) {
            let name = OsStr::from_bytes(&link.name);
            let below = folder.strip_prefix("/").unwrap_or(folder);
            paths.push(folder.join(".debug").join(name));
            paths.push(Path::new(FOLDER).join(below).join(name));
            // A file may be called like its own debug file.
            paths.extend(Some(folder.join(name)).filter(|beside| beside != path));
        }
        paths
    }

    /// Whether a file is the one that is wanted.
    pub fn is_met_by(&self, headers: &Headers, source: &dyn Source) -> bool {
        if !headers.has_all_symbols() {
            return false;
        }
        match (&self.build_id, headers.build_id(source)) {
            (Some(wanted), Some(found)) => *wanted == found,
            _ => self
                .link
                .as_ref()
                .is_some_and(|link| checksum(source) == Some(link.crc)),
        }
    }
}

/// A build-id as paths write it: the first byte, and the others.
pub fn hex_parts(build_id: &[u8]) -> Option<(String, String)> {
    let (first, rest) = build_id
        .split_first()
        .filter(|(_, rest)| !rest.is_empty())?;
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    Some((hex(&[*first]), hex(rest)))
}

/// The CRC-32 of a file, as `objcopy --add-gnu-debuglink` writes it.
fn checksum(source: &dyn Source) -> Option<u32> {
    let mut bytes = vec![0; 64 << 10];
    let (mut at, mut crc) = (0, u32::MAX);
    loop {
        let n = source.read_at(&mut bytes, at).ok()?;
        for byte in &bytes[..n] {
            let index = (crc ^ u32::from(*byte)) & 0xff;
            crc = TABLE[index as usize] ^ (crc >> 8);
        }
        at += n as u64;
        if n < bytes.len() {
            return Some(!crc);
        }
        if at > MAX_SUMMED_BYTES {
            return None;
        }
    }
}

const TABLE: [u32; 256] = {
    const REVERSED_POLYNOMIAL: u32 = 0xedb8_8320;
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            let carry = if crc & 1 == 1 { REVERSED_POLYNOMIAL } else { 0 };
            crc = (crc >> 1) ^ carry;
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_everyone() {
        // The check value of CRC-32/ISO-HDLC.
        assert_eq!(checksum(&b"123456789".to_vec()), Some(0xcbf4_3926));
    }

    #[test]
    fn where_to_look() {
        let wanted = Wanted {
            build_id: Some(vec![0xab, 0xcd, 0xef]),
            link: Some(DebugLink {
                name: b"x.debug".to_vec(),
                crc: 0,
            }),
        };
        let paths = wanted.paths(Path::new("/usr/bin/x"));
        assert_eq!(
            paths,
            [
                "/usr/lib/debug/.build-id/ab/cdef.debug",
                "/usr/bin/.debug/x.debug",
                "/usr/lib/debug/usr/bin/x.debug",
                "/usr/bin/x.debug",
            ]
            .map(PathBuf::from)
        );
        assert_eq!(Wanted::default().paths(Path::new("/x")), [] as [&Path; 0]);
    }
}
