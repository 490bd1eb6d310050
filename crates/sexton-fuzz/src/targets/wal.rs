//! The open segment of a bundle, as it is and with checksums that fit: payloads of batches
//! between `---`.

use sexton_store::fuzzing::{log, log_of};

use crate::file;

use crate::Target;

pub(crate) const TARGET: Target = Target { name: "wal", run };

fn run(bytes: &[u8]) {
    let _ = log(file::holding(bytes));
    let mut payloads = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(3).position(|three| three == b"---") {
        payloads.push(&rest[..at]);
        rest = &rest[at + 3..];
    }
    payloads.push(rest);
    log(file::holding(&log_of(&payloads))).expect("checksums that fit");
}
