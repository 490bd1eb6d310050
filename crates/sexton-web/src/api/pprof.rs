//! The samples of a window as pprof, for other viewers.

use std::io::{self, Write};

use sexton_profile::export::pprof::Pprof;

use super::export::file_name;
use super::flame::Asked;
use crate::http::{Payload, Problem, Response};
use crate::source::Source;
use crate::stacks::Samples;

/// A file of an hour of two busy cores has a few megabytes.
const MAX_BYTES: usize = 64 << 20;

/// The file.
pub(super) fn answer(source: &Source, asked: &Asked) -> Result<Response, Problem> {
    let bundle = source.state().bundle.clone();
    let mut samples = Samples::default();
    let mut file = Pprof::new(Bounded::default(), asked.filter_now(source)).map_err(too_large)?;
    samples.read(&bundle, asked.read_ns(source), &mut file);
    let bytes = file.finish(samples.tables()).map_err(too_large)?.0;
    let response = Response::new(
        200,
        "application/octet-stream",
        Payload::Shared(bytes.into()),
    );
    let name = file_name(source);
    let disposition = format!("attachment; filename=\"sexton-{name}.pb.gz\"");
    Ok(response.with("content-disposition", disposition))
}

/// Only a file that is too large fails to be written into memory.
fn too_large(_: io::Error) -> Problem {
    let most = MAX_BYTES >> 20;
    Problem::new(
        413,
        format!("these samples take more than {most} MiB: choose a shorter window"),
    )
}

/// Takes bytes up to a bound.
#[derive(Default)]
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_no_more_than_its_bound() {
        let mut bounded = Bounded(vec![0; MAX_BYTES - 1]);
        assert!(bounded.write_all(b"x").is_ok());
        assert!(bounded.write_all(b"x").is_err());
    }
}
