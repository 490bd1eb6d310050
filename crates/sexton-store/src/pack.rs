//! A bundle as one file, `.tar.zst`: to be sent, kept, attached to a ticket. Whoever reads
//! one reads bytes of others: names that lead out, bombs and all that is no plain file are
//! refused.

mod ustar;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Component, Path, PathBuf};

use crate::error::StoreError;
use crate::ledger::Segment;
use crate::stacks::{self, StackSegment};
use crate::{meta, wal};

/// The first bytes of every zstd frame that holds data (RFC 8878, 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Segments are compressed already, so the fastest level will do.
const LEVEL: i32 = 1;

/// What a packed bundle may hold, whatever it says: so much more than its own size, so many
/// bytes anyway, and so many files. Segments do not shrink a second time; the few raw
/// files do.
const MAX_RATIO: u64 = 16;
const MIN_LIMIT_BYTES: u64 = 64 << 20;
const MAX_FILES: u64 = 100_000;

/// The folders of a bundle; anything deeper is below `raw`.
const FOLDERS: [&str; 3] = ["records", stacks::FOLDER, "raw"];

/// Writes a bundle into one file, which must not be there yet. It may be written to
/// meanwhile: what it held when this began is in the file.
pub fn pack(dir: &Path, file: &Path) -> Result<u64, StoreError> {
    meta::Meta::read(dir)?.ok_or_else(|| StoreError::NotABundle {
        dir: dir.to_owned(),
        why: "it has no bundle.json".into(),
    })?;
    let out = OpenOptions::new().write(true).create_new(true).open(file);
    let out = out.map_err(StoreError::io("create", file))?;
    write(dir, file, out).inspect_err(|_| {
        let _ = fs::remove_file(file);
    })
}

fn write(dir: &Path, file: &Path, out: File) -> Result<u64, StoreError> {
    let failed = || StoreError::io("write", file);
    let mut out = zstd::Encoder::new(BufWriter::new(out), LEVEL).map_err(failed())?;
    // The logs are in it before anything is listed: what is sealed meanwhile is then met
    // again as a segment, and left out once by whoever reads it.
    for list in [logs, sealed, raw] {
        for name in list(dir)? {
            let path = dir.join(&name);
            match File::open(&path) {
                Ok(from) => add(&mut out, &name, from, &path).map_err(failed())?,
                // Dropped meanwhile, as the ring went on.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::io("open", &path)(error)),
            }
        }
    }
    ustar::write_end(&mut out).map_err(failed())?;
    let out = out.finish().map_err(failed())?;
    let out = out
        .into_inner()
        .map_err(|error| failed()(error.into_error()))?;
    out.sync_all().map_err(failed())?;
    Ok(out.metadata().map_err(failed())?.len())
}

fn add(out: &mut dyn Write, name: &str, from: File, path: &Path) -> io::Result<()> {
    let bytes = from.metadata()?.len();
    if !ustar::write_header(out, name, bytes)? {
        let text = format!("the name of {} is too long for an archive", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    // A log may grow meanwhile; what comes later is not of this moment.
    let copied = io::copy(&mut from.take(bytes), out)?;
    io::copy(
        &mut io::repeat(0).take(bytes - copied + ustar::padding(bytes)),
        out,
    )?;
    Ok(())
}

/// Whose bundle it is, and its open segments, in the order in which records move.
fn logs(_: &Path) -> Result<Vec<String>, StoreError> {
    let stacks = format!("{}/{}", stacks::FOLDER, stacks::LOG_FILE);
    let [open, closed] = [wal::FILE, wal::CLOSED_FILE].map(|log| format!("records/{log}"));
    Ok(vec![meta::FILE.to_owned(), stacks, open, closed])
}

/// Its sealed segments. Of stacks the samples come last: they are dropped first, so where
/// they are there is all they refer to.
fn sealed(dir: &Path) -> Result<Vec<String>, StoreError> {
    let mut names = Vec::new();
    for segment in Segment::list(&dir.join("records"))? {
        names.push(format!("records/{}", segment.file_name()));
    }
    for segment in StackSegment::list(dir)? {
        for table in stacks::TABLES {
            let file = segment.file_name(table);
            names.push(format!("{}/{file}", stacks::FOLDER));
        }
    }
    Ok(names)
}

/// The files that it has as they were.
fn raw(dir: &Path) -> Result<Vec<String>, StoreError> {
    let mut names = Vec::new();
    let mut folders = vec![dir.join("raw")];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(StoreError::io("list", &folder)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(StoreError::io("list", &folder))?;
            let kind = entry.file_type().map_err(StoreError::io("list", &folder))?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file()
                && let Ok(below) = entry.path().strip_prefix(dir)
                && let Some(name) = below.to_str()
            {
                names.push(name.to_owned());
            }
        }
    }
    Ok(names)
}

/// Whether a file begins like a packed bundle.
pub fn is_packed(path: &Path) -> bool {
    let mut start = [0; ZSTD.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == ZSTD
}

/// Writes what a packed bundle holds into a folder that is not there yet.
pub fn unpack(file: &Path, dir: &Path) -> Result<(), StoreError> {
    fs::create_dir(dir).map_err(StoreError::io("create", dir))?;
    unpack_into(file, dir).inspect_err(|_| {
        let _ = fs::remove_dir_all(dir);
    })
}

/// The same, into a folder that is there and empty.
pub(crate) fn unpack_into(file: &Path, dir: &Path) -> Result<(), StoreError> {
    let packed = File::open(file).map_err(StoreError::io("open", file))?;
    let packed_bytes = packed.metadata().map_or(0, |file| file.len());
    for folder in FOLDERS {
        let folder = dir.join(folder);
        fs::create_dir(&folder).map_err(StoreError::io("create", &folder))?;
    }
    let mut write = |name: &Path, content: &mut dyn Read| {
        let path = dir.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        io::copy(content, &mut file).map(drop)
    };
    let read = read_all(
        BufReader::new(packed),
        limit_bytes(packed_bytes),
        &mut write,
    );
    read.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => StoreError::NotABundle {
            dir: file.to_owned(),
            why: error.to_string(),
        },
        _ => StoreError::io("unpack", file)(error),
    })?;
    let none = |why| StoreError::NotABundle {
        dir: file.to_owned(),
        why,
    };
    match meta::Meta::read(dir) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(none("it has no bundle.json".into())),
        // Named by the file: nobody knows the folder.
        Err(StoreError::NotABundle { why, .. }) => Err(none(why)),
        Err(error) => Err(error),
    }
}

fn limit_bytes(packed_bytes: u64) -> u64 {
    packed_bytes.saturating_mul(MAX_RATIO).max(MIN_LIMIT_BYTES)
}

/// Hands over every file of an archive, none of which leads out of where it is put.
pub(crate) fn read_all(
    packed: impl io::BufRead,
    limit_bytes: u64,
    write: &mut dyn FnMut(&Path, &mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    let refuse = |why: String| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    let mut from = zstd::Decoder::with_buffer(packed)?.take(limit_bytes);
    let mut n_files = 0;
    while let Some(entry) = ustar::read_header(&mut from).map_err(as_data)? {
        n_files += 1;
        if n_files > MAX_FILES {
            return refuse(format!("it has over {MAX_FILES} files"));
        }
        if entry.bytes > from.limit() {
            return refuse(format!("it unpacks to over {limit_bytes} bytes"));
        }
        let name = place(&entry.name);
        let mut content = (&mut from).take(entry.bytes);
        match name {
            Some(name) if !entry.is_dir => write(&name, &mut content)?,
            Some(_) => {}
            None if is_left_out(&entry) => {}
            None => {
                return refuse(format!(
                    "{} is no part of a bundle",
                    entry.name.escape_debug()
                ));
            }
        }
        // What was not taken, and what fills the block.
        let rest = content.limit() + ustar::padding(entry.bytes);
        io::copy(&mut (&mut from).take(rest), &mut io::sink()).map_err(as_data)?;
    }
    Ok(())
}

/// What a broken archive says is a fault of the archive.
fn as_data(error: io::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// The lock of the writer, and the folder that tar(1) puts around.
fn is_left_out(entry: &ustar::Entry) -> bool {
    entry.is_dir || Path::new(&entry.name).file_name() == Some("lock".as_ref())
}

/// Where a file of the archive belongs in the bundle: `None` when nowhere.
fn place(name: &str) -> Option<PathBuf> {
    let mut parts = Vec::new();
    for part in Path::new(name).components() {
        match part {
            Component::Normal(part) => parts.push(part),
            Component::CurDir => {}
            _ => return None,
        }
    }
    let is_top = |part: &&std::ffi::OsStr| {
        FOLDERS.iter().any(|folder| part == folder) || **part == *meta::FILE
    };
    let first = parts.iter().take(2).position(is_top)?;
    let parts = &parts[first..];
    let fits = match parts {
        [file] => **file == *meta::FILE,
        [folder, _] if **folder == *"records" || **folder == *stacks::FOLDER => true,
        [raw, _, ..] => **raw == *"raw",
        _ => false,
    };
    fits.then(|| parts.iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: Option<&str>) {
        assert_eq!(place(name), expected.map(PathBuf::from), "{name}");
    }

    #[test]
    fn only_what_a_bundle_has_has_a_place() {
        check("bundle.json", Some("bundle.json"));
        check("./records/current.wal", Some("records/current.wal"));
        check(
            "node-1.bundle/records/1-2-3.parquet",
            Some("records/1-2-3.parquet"),
        );
        check("raw/etc/os-release", Some("raw/etc/os-release"));
        check("./stacks/current.wal", Some("stacks/current.wal"));
        check(
            "x/stacks/samples-1-2-3.parquet",
            Some("stacks/samples-1-2-3.parquet"),
        );
        for none in [
            "",
            "/bundle.json",
            "../bundle.json",
            "raw/../../x",
            "raw/..",
            "records/a/b",
            "records",
            "stacks",
            "stacks/a/b",
            "stacks/../x",
            "stacks/../../x",
            "x/y/bundle.json",
            "etc/passwd",
        ] {
            check(none, None);
        }
    }
}
