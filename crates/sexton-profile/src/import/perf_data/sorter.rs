//! Unpacks records, finds their times, and hands them on in order.

use super::attr::{Attr, Attrs, has};
use super::compressed::Unpacker;
use super::features::header;
use super::fields::Fields;
use super::kind;
use super::order::{Due, Queue};

/// The size of a record's header.
pub(super) const HEADER: usize = 8;

/// Records are handed on when they are this many bytes: fewer are not worth waking anybody.
const BATCH_BYTES: usize = 256 << 10;

/// Records on their way from whoever reads them to whoever takes them in.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Those without a time, one behind the other. They come first.
    pub(super) at_once: Vec<u8>,
    pub(super) due: Due,
}

/// Takes a batch, and gives back one that was used, for its room; `None` when nobody wants
/// any more.
pub(super) type Take<'a> = dyn FnMut(Batch) -> Option<Batch> + 'a;

/// Why a record could not be used and reading cannot go on.
pub(super) struct Broken(pub(super) String);

/// Records of one recording.
pub(super) struct Sorter {
    attrs: Attrs,
    queue: Queue,
    pending: Batch,
    unpacker: Option<Unpacker>,
    /// Whether nobody takes what is read.
    pub(super) is_unwanted: bool,
}

impl Sorter {
    pub(super) fn new(attrs: Attrs) -> Self {
        Self {
            attrs,
            queue: Queue::default(),
            pending: Batch::default(),
            unpacker: None,
            is_unwanted: false,
        }
    }

    /// Hands on all that waits.
    pub(super) fn finish(&mut self, take: &mut Take<'_>) {
        let rest = self.queue.rest();
        self.add_due(rest, take);
        self.hand_on(take);
    }

    /// Whether the last packed record is not complete.
    pub(super) fn is_cut(&self) -> bool {
        let packed = self.unpacker.as_ref();
        packed.is_some_and(|packed| !packed.bytes().is_empty())
    }

    /// A record of the file itself.
    pub(super) fn top_level(
        &mut self,
        kind: u32,
        record: &[u8],
        take: &mut Take<'_>,
    ) -> Result<(), Broken> {
        let mut body = Fields(&record[HEADER..]);
        match kind {
            kind::COMPRESSED => self.unpack(body.0, take),
            kind::COMPRESSED2 => {
                let size = body.u64().and_then(|size| usize::try_from(size).ok());
                let packed = size.and_then(|size| body.bytes(size));
                let packed = packed.ok_or_else(|| Broken("a packed record is cut short".into()))?;
                self.unpack(packed, take)
            }
            _ => {
                self.record(kind, record, take);
                Ok(())
            }
        }
    }

    fn unpack(&mut self, mut packed: &[u8], take: &mut Take<'_>) -> Result<(), Broken> {
        let broken = |error| Broken(format!("a packed record cannot be unpacked: {error}"));
        let mut unpacker = match self.unpacker.take() {
            Some(unpacker) => unpacker,
            None => Unpacker::new().map_err(broken)?,
        };
        loop {
            let (rest, has_more) = unpacker.step(packed).map_err(broken)?;
            let is_stuck = rest.len() == packed.len() && !has_more;
            packed = rest;
            let mut used = 0;
            while let Some(record) = whole_record(&unpacker.bytes()[used..]) {
                let Some((kind, _, size)) = header(&mut Fields(record)).filter(|h| h.2 >= HEADER)
                else {
                    return Err(Broken("a record inside packed ones is damaged".into()));
                };
                self.record(kind, record, take);
                used += size;
            }
            unpacker.consume(used);
            if (packed.is_empty() && !has_more) || is_stuck {
                break;
            }
        }
        self.unpacker = Some(unpacker);
        Ok(())
    }

    /// Any record that is not packed: at once, or when its time comes.
    fn record(&mut self, kind: u32, record: &[u8], take: &mut Take<'_>) {
        let body = &record[HEADER..];
        match kind {
            kind::FINISHED_ROUND if body.is_empty() => {
                let due = self.queue.round();
                return self.add_due(due, take);
            }
            kind::HEADER_ATTR => {
                if let Some((attr, ids)) = attr_and_ids(body) {
                    self.attrs.add(attr, ids);
                }
            }
            _ => {}
        }
        let time = (kind < kind::FIRST_OF_PERF)
            .then(|| self.time_of(kind, body))
            .flatten();
        match time {
            Some(time) if time != 0 && time != u64::MAX => {
                if self.queue.push(time, record) {
                    let due = self.queue.cut();
                    self.add_due(due, take);
                }
            }
            _ => self.add_at_once(record, take),
        }
    }

    fn add_at_once(&mut self, record: &[u8], take: &mut Take<'_>) {
        if !self.pending.due.is_empty() {
            self.hand_on(take);
        }
        self.pending.at_once.extend_from_slice(record);
        if self.pending.at_once.len() >= BATCH_BYTES {
            self.hand_on(take);
        }
    }

    fn add_due(&mut self, due: Due, take: &mut Take<'_>) {
        let unused = self.pending.due.append(due);
        self.queue.take_back(unused);
        if self.pending.due.n_bytes() >= BATCH_BYTES {
            self.hand_on(take);
        }
    }

    fn hand_on(&mut self, take: &mut Take<'_>) {
        let batch = std::mem::take(&mut self.pending);
        if batch.at_once.is_empty() && batch.due.is_empty() {
            return;
        }
        match take(batch) {
            Some(mut used) => {
                used.at_once.clear();
                used.due.clear();
                self.pending = used;
            }
            None => self.is_unwanted = true,
        }
    }

    /// When a record was written.
    fn time_of(&self, kind: u32, body: &[u8]) -> Option<u64> {
        let attr = self.attrs.list.get(self.attrs.of_record(kind, body))?;
        let shape = attr.sample_type;
        if shape & has::TIME == 0 {
            return None;
        }
        let n_words = body.len() / 8;
        let word = if kind == kind::SAMPLE {
            (shape & (has::IDENTIFIER | has::IP | has::TID)).count_ones() as usize
        } else if attr.has_id_in_all {
            let after = has::ID | has::STREAM_ID | has::CPU | has::IDENTIFIER;
            n_words.checked_sub(1 + (shape & after).count_ones() as usize)?
        } else {
            return None;
        };
        Fields(body.get(word * 8..)?).u64()
    }
}

/// What a record says that tells of one more event.
pub(super) fn attr_and_ids(body: &[u8]) -> Option<(Attr, &[u8])> {
    let size = body.get(4..).and_then(|rest| Fields(rest).u32())?;
    let (attr, ids) = body.split_at_checked(size as usize)?;
    Some((Attr::parse(attr)?, ids))
}

/// The first record of `bytes`, if all of it is there. One whose size cannot be is returned
/// as its header.
pub(super) fn whole_record(bytes: &[u8]) -> Option<&[u8]> {
    let (_, _, size) = header(&mut Fields(bytes))?;
    bytes.get(..size.max(HEADER))
}
