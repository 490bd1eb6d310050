//! tar, plain or compressed, and the layers of container images, which are tars too.

use std::io::{self, Read};
use std::sync::Arc;

use super::tar_header::{self, Header, Sort as EntrySort, Stream};
use super::{Format, Opened, Sniff, magic, oci};
use crate::bytes::{Cursor, Shared};
use crate::error::ImageError;
use crate::gaps::Gaps;
use crate::spool::Spool;
use crate::tree::{Contents, Node, Through, Tree, TreeRoot};
use crate::xz::Xz;

pub(super) static FORMAT: Format = Format {
    name: "tar",
    sniff: |head| match head.len() {
        0..512 => Sniff::More(512),
        _ if tar_header::is_header(head) => Sniff::Yes,
        _ => Sniff::No,
    },
    open,
};
pub(super) static GZIP: Format = Format {
    name: "tar (gzip)",
    sniff: |head| magic(head, 0, b"\x1f\x8b"),
    open,
};
pub(super) static ZSTD: Format = Format {
    name: "tar (zstd)",
    sniff: |head| magic(head, 0, b"\x28\xb5\x2f\xfd"),
    open,
};
pub(super) static XZ: Format = Format {
    name: "tar (xz)",
    sniff: |head| magic(head, 0, b"\xfd7zXZ\0"),
    open,
};

/// A stream that goes on for longer than this is a bomb.
///
/// Chosen: several times the largest disk of an image that is shipped as a tar.
const STREAM_BYTES_MAX: u64 = 64 << 30;

/// Memory that a decoder may take for its window. zstd's own default is 128 MiB; no
/// registry makes layers with more than 8 MiB.
const WINDOW_LOG_MAX: u32 = 25;
const XZ_MEMORY_KIB: u32 = 128 << 10;

/// What entries of a tar mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// All of a tree.
    Whole,
    /// A change to the tree below: whiteouts take things away.
    Layer,
}

fn open(bytes: &Shared, gaps: &mut Gaps, _depth: usize) -> Result<Opened, ImageError> {
    let mut layers = Layers::default();
    layers
        .add(bytes, Sort::Whole, gaps)
        .map_err(|error| ImageError::damaged("tar", error))?;
    let n_entries = layers.n_entries;
    let root = layers
        .finish()
        .map_err(|error| ImageError::damaged("tar", error))?;
    if n_entries == 0 {
        return Err(ImageError::damaged(
            "tar",
            "it holds no file (a compressed disk image must be decompressed first)",
        ));
    }
    if oci::is_image(&root) {
        return oci::open(Arc::new(root), gaps);
    }
    Ok((Box::new(root), "tar".into()))
}

/// Where the content of a file is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    source: usize,
    offset: u64,
    /// How much of it is there; less than its size where it was too much to keep.
    kept: u64,
}

/// A place whose content is not there at all.
const NOWHERE: usize = usize::MAX;

/// Tars, one over the other.
pub(super) struct Layers {
    tree: Tree<Place>,
    sources: Vec<Option<Shared>>,
    spool: Option<Spool>,
    n_entries: u64,
}

impl Default for Layers {
    fn default() -> Self {
        Self {
            tree: Tree::new(),
            // The first is for what is spooled.
            sources: vec![None],
            spool: None,
            n_entries: 0,
        }
    }
}

/// zstd says what it is by its words alone.
fn window_too_large(error: io::Error) -> io::Error {
    if !error.to_string().contains("too much memory") {
        return error;
    }
    let mib = (1 << WINDOW_LOG_MAX) >> 20;
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        format!(
            "it needs a window of over {mib} MiB (zstd --long): compress it again without --long"
        ),
    )
}

impl Layers {
    /// Reads one more. A tar that breaks off is kept as far as it goes.
    pub(super) fn add(&mut self, bytes: &Shared, sort: Sort, gaps: &mut Gaps) -> io::Result<()> {
        self.tree.begin_layer();
        let mut head = [0; 6];
        let n = bytes.read_at(0, &mut head)?;
        let input = io::BufReader::with_capacity(256 << 10, Cursor::new(Arc::clone(bytes)));
        let head = &head[..n];
        let is = |format: &Format| (format.sniff)(head) == Sniff::Yes;
        let result = if is(&GZIP) {
            self.read(
                &mut Packed::new(flate2::bufread::MultiGzDecoder::new(input)),
                0,
                sort,
                gaps,
            )
        } else if is(&ZSTD) {
            let mut decoder = zstd::stream::Decoder::with_buffer(input)?;
            decoder.window_log_max(WINDOW_LOG_MAX)?;
            let read = self.read(&mut Packed::new(decoder), 0, sort, gaps);
            read.map_err(window_too_large)
        } else if is(&XZ) {
            self.read(
                &mut Packed::new(Xz::new(input, XZ_MEMORY_KIB)),
                0,
                sort,
                gaps,
            )
        } else {
            self.sources.push(Some(Arc::clone(bytes)));
            let source = self.sources.len() - 1;
            self.read(&mut Plain(Arc::clone(bytes), 0), source, sort, gaps)
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(error),
            Err(error) => {
                gaps.add(format!(
                    "the tar is damaged after {} entries: {error}",
                    self.n_entries
                ));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn read(
        &mut self,
        stream: &mut dyn Stream,
        source: usize,
        sort: Sort,
        gaps: &mut Gaps,
    ) -> io::Result<()> {
        while let Some(header) = tar_header::next(stream)? {
            if stream.position() > STREAM_BYTES_MAX {
                return Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    "over 64 GiB when decompressed",
                ));
            }
            self.n_entries += 1;
            let place = self.place(stream, source, &header)?;
            let result = match sort {
                Sort::Whole => self.put(&header, place, Through::Links),
                Sort::Layer => self.put_layer(&header, place),
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => return Err(error),
                Err(error) => gaps.of(&header.path, error),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Goes past the content of an entry, keeping it if it would be lost.
    fn place(
        &mut self,
        stream: &mut dyn Stream,
        source: usize,
        header: &Header,
    ) -> io::Result<Place> {
        let size_bytes = header.size_bytes;
        let mut place = Place {
            source,
            offset: stream.position(),
            kept: size_bytes,
        };
        let mut left = size_bytes;
        if header.sort != EntrySort::File {
            place.source = NOWHERE;
        } else if source == 0 {
            if self.spool.is_none() {
                self.spool = Some(Spool::new()?);
            }
            let spool = self.spool.as_mut().expect("made above");
            let whole = oci::is_blob_name(&header.path);
            (place.offset, place.kept) = spool.keep(&mut *stream, size_bytes, whole)?;
            left -= place.kept;
        }
        stream.skip(left.saturating_add(tar_header::padding(size_bytes)))?;
        Ok(place)
    }

    fn put(&mut self, header: &Header, place: Place, through: Through) -> io::Result<()> {
        let node = match header.sort {
            EntrySort::HardLink => return self.tree.link(&header.path, &header.target, through),
            EntrySort::File | EntrySort::Sparse => Node::File {
                content: place,
                size_bytes: header.size_bytes,
                permissions: header.permissions,
            },
            EntrySort::Link => Node::Link(header.target.as_slice().into()),
            EntrySort::Dir => Node::Dir(Default::default()),
            EntrySort::Other => Node::Other,
        };
        self.tree.put(&header.path, node, through)
    }

    /// `.wh.NAME` takes NAME away, `.wh..wh..opq` all that the layers below put there.
    fn put_layer(&mut self, header: &Header, place: Place) -> io::Result<()> {
        let path: &[u8] = &header.path;
        let path = path.strip_prefix(b"./").unwrap_or(path);
        let (folder, name) = match path.iter().rposition(|&b| b == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&[][..], path),
        };
        match name.strip_prefix(b".wh.") {
            Some(b".wh..opq") => {
                self.tree.empty(folder);
                Ok(())
            }
            Some(hidden) => self.tree.remove(&[folder, b"/", hidden].concat()),
            None => self.put(header, place, Through::Nothing),
        }
    }

    /// The tree that all of them make.
    pub(super) fn finish(mut self) -> io::Result<TreeRoot<Place, Sources>> {
        if let Some(spool) = self.spool.take() {
            self.sources[0] = Some(spool.finish()?);
        }
        Ok(TreeRoot {
            tree: self.tree,
            contents: Sources(self.sources),
        })
    }
}

/// What places point into.
pub(super) struct Sources(Vec<Option<Shared>>);

impl Contents<Place> for Sources {
    fn read(&self, place: &Place, size_bytes: u64, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let source = self.0.get(place.source).and_then(Option::as_ref);
        let wanted = offset.saturating_add(len as u64).min(size_bytes);
        let Some(source) = source.filter(|_| wanted <= place.kept) else {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "too large, or with holes: its content was not kept",
            ));
        };
        // Grows as it is read: a header may claim more than the image holds.
        let mut content = Vec::new();
        let part = crate::bytes::Part::new(
            Arc::clone(source),
            place.offset.saturating_add(offset),
            len as u64,
        );
        Cursor::new(Arc::new(part)).read_to_end(&mut content)?;
        if content.len() < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(content)
    }
}

/// A tar that lies in a file as it is: content is skipped, not read.
struct Plain(Shared, u64);

impl Read for Plain {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read_at(self.1, buffer)?;
        self.1 += n as u64;
        Ok(n)
    }
}

impl Stream for Plain {
    fn skip(&mut self, n: u64) -> io::Result<()> {
        let end = self.1.saturating_add(n);
        if end > self.0.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.1 = end;
        Ok(())
    }

    fn position(&self) -> u64 {
        self.1
    }
}

/// A tar that comes out of a decoder.
struct Packed<R> {
    decoder: io::BufReader<R>,
    at: u64,
}

impl<R: Read> Packed<R> {
    fn new(decoder: R) -> Self {
        Self {
            decoder: io::BufReader::with_capacity(64 << 10, decoder),
            at: 0,
        }
    }
}

impl<R: Read> Read for Packed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.decoder.read(buffer)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl<R: Read> Stream for Packed<R> {
    fn skip(&mut self, n: u64) -> io::Result<()> {
        if self.at.saturating_add(n) > STREAM_BYTES_MAX {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "over 64 GiB when decompressed",
            ));
        }
        let skipped = io::copy(&mut Read::take(&mut *self, n), &mut io::sink())?;
        if skipped < n {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    fn position(&self) -> u64 {
        self.at
    }
}
