//! XFS images, filled without mounting them.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// A folder in the words of `mkfs.xfs -p`. Names and targets may hold no white space.
fn prototype(folder: &Path, text: &mut Vec<u8>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let meta = fs::symlink_metadata(&path)?;
        let name = path.file_name().unwrap_or_default();
        text.extend_from_slice(name.as_bytes());
        let mode = format!("--{:03o} 0 0", meta.mode() & 0o777);
        if meta.is_dir() {
            writeln!(text, " d{mode}")?;
            prototype(&path, text)?;
            text.extend_from_slice(b"$\n");
        } else if meta.is_symlink() {
            writeln!(text, " l{mode} {}", fs::read_link(&path)?.display())?;
        } else if !meta.is_file() {
            writeln!(text, " p{mode}")?;
        } else {
            write!(text, " -{mode} ")?;
            text.extend_from_slice(path.as_os_str().as_bytes());
            text.push(b'\n');
        }
    }
    Ok(())
}

/// Makes an XFS image with what is in `folder`, an absolute path.
///
/// # Panics
///
/// If `mkfs.xfs` is not there or fails.
pub fn make(folder: &Path, image: &Path, options: &[&str]) -> io::Result<()> {
    let mut text = b"/dev/null\n0 0\nd--755 0 0\n".to_vec();
    prototype(folder, &mut text)?;
    text.extend_from_slice(b"$\n");
    let list = image.with_extension("prototype");
    fs::write(&list, text)?;
    // mkfs.xfs wants 300 MB; they are sparse.
    fs::File::create(image)?.set_len(304 << 20)?;
    let output = Command::new("mkfs.xfs")
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .args(["-q", "-p"])
        .arg(&list)
        .args(options)
        .arg(image)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "mkfs.xfs failed: {said}");
    fs::remove_file(list)
}
