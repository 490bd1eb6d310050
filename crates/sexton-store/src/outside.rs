//! Opens Parquet files that another writer may have made, whole in memory.
//!
//! They have no checksums of ours, and the library is not proof against hostile bytes: the
//! footer and the header of every page are looked over before it sees them.

use bytes::Bytes;
use parquet::file::reader::{FileReader as _, SerializedFileReader};

use crate::sealed::{check_footer_bytes, check_pages, guarded, malformed};

/// Rows of one row group, at most.
const MAX_ROWS: i64 = 1 << 20;
/// Bytes of a row group after decompression, at most.
const MAX_GROUP_BYTES: i64 = 1 << 30;

/// Opens a file; the reason is in words if it cannot be read.
pub fn open_outside(bytes: &Bytes) -> Result<SerializedFileReader<Bytes>, String> {
    let open = || {
        check_footer_bytes(bytes)?;
        let reader = SerializedFileReader::new(bytes.clone()).map_err(malformed)?;
        for group in reader.metadata().row_groups() {
            let is_plausible = (0..=MAX_ROWS).contains(&group.num_rows())
                && (0..=MAX_GROUP_BYTES).contains(&group.total_byte_size());
            if !is_plausible {
                return Err(malformed("a row group is larger than it can be"));
            }
            check_pages(group, bytes, 0)?;
        }
        Ok(reader)
    };
    guarded(open).map_err(|damage| damage.to_string())
}

/// Reads with the library; what makes it panic is a reason in words.
pub fn guard<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    guarded(|| read().map_err(malformed)).map_err(|damage| damage.to_string())
}
