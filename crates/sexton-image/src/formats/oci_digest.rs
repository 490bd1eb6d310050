//! Whether a blob is what its digest and its size say. A layer that was dropped or changed would
//! show an image that is not the one that boots.

use std::path::PathBuf;

use sha2::{Sha256, Sha512};

use crate::bytes::Bytes;
use crate::error::ImageError;

/// Read so much at a time.
const PIECE_BYTES: usize = 1 << 20;

pub(super) fn damaged(what: impl ToString) -> ImageError {
    ImageError::damaged("an OCI image", what)
}

/// Where a blob lies. A digest is letters, digits and one colon: anything else would be a
/// way to name another file.
pub(super) fn blob_path(digest: &str) -> Result<PathBuf, ImageError> {
    let is_plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric());
    match digest.split_once(':') {
        Some((algorithm, hash)) if is_plain(algorithm) && is_plain(hash) => {
            Ok(PathBuf::from("/blobs").join(algorithm).join(hash))
        }
        _ => Err(damaged("a digest that is none")),
    }
}

/// The digest that the path of a blob names; `None` of other paths.
pub(super) fn digest_of(path: &str) -> Option<String> {
    let (algorithm, hash) = path.strip_prefix("blobs/")?.split_once('/')?;
    Some(format!("{algorithm}:{hash}"))
}

/// Fails if the bytes are not those of the digest, or not as many as the size says.
pub(super) fn check(bytes: &dyn Bytes, digest: &str, size: Option<u64>) -> Result<(), ImageError> {
    if let Some(size) = size.filter(|size| *size != bytes.len()) {
        let len = bytes.len();
        return Err(damaged(format!("{digest} has {len} bytes and not {size}")));
    }
    let found = match digest.split_once(':') {
        Some(("sha256", _)) => hash::<Sha256>(bytes),
        Some(("sha512", _)) => hash::<Sha512>(bytes),
        _ => {
            return Err(damaged(format!(
                "{digest}: no digest that sexton can check"
            )));
        }
    };
    let found = found.map_err(|error| damaged(format!("{digest} cannot be read: {error}")))?;
    let is_same = digest
        .split_once(':')
        .is_some_and(|(_, named)| named.eq_ignore_ascii_case(&found));
    match is_same {
        true => Ok(()),
        false => Err(damaged(format!(
            "{digest} was changed: its bytes have the digest {found}"
        ))),
    }
}

fn hash<H: sha2::Digest>(bytes: &dyn Bytes) -> std::io::Result<String> {
    let mut hasher = H::new();
    let mut piece = vec![0; PIECE_BYTES];
    let mut offset = 0;
    loop {
        let n = bytes.read_at(offset, &mut piece)?;
        if n == 0 {
            break;
        }
        hasher.update(&piece[..n]);
        offset += n as u64;
    }
    let digest = hasher.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_digest_names_a_blob_and_nothing_else() {
        let check = |digest: &str, expected: Option<&str>| {
            assert_eq!(blob_path(digest).ok().as_deref(), expected.map(Path::new));
        };
        check("sha256:ab12", Some("/blobs/sha256/ab12"));
        check("sha256:../../etc/passwd", None);
        check("../x:ab", None);
        check("sha256:", None);
        check("ab12", None);
    }

    #[test]
    fn bytes_are_those_of_their_digest() {
        let abc = b"abc".to_vec();
        let digest = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert!(check(&abc, digest, Some(3)).is_ok());
        assert!(check(&abc, digest, Some(4)).is_err());
        let error = check(&b"abd".to_vec(), digest, None).expect_err("changed");
        assert!(error.to_string().contains(digest), "{error}");
        assert!(check(&abc, "md5:900150983cd24fb0d6963f7d28e17f72", None).is_err());
    }
}
