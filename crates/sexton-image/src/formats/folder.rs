//! A folder: the tree of a system, or an OCI layout.

use std::path::Path;
use std::sync::Arc;

use sexton_host::FolderRoot;

use super::{Opened, oci};
use crate::error::ImageError;
use crate::gaps::Gaps;

pub(crate) fn open(folder: &Path, gaps: &mut Gaps) -> Result<Opened, ImageError> {
    let root = FolderRoot::open(folder).map_err(|source| ImageError::Read {
        path: folder.to_owned(),
        source,
    })?;
    if oci::is_image(&root) {
        return oci::open(Arc::new(root), gaps);
    }
    Ok((Box::new(root), "root folder".into()))
}
