//! Reads records, on a thread of its own where there is a second core: meanwhile those that
//! came before are taken in.

use std::io::Read;
use std::panic::resume_unwind;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use super::attr::Attrs;
use super::features::header;
use super::fields::Fields;
use super::kind;
use super::sorter::{Batch, Broken, HEADER, Sorter, Take};
use crate::import::bytes::Window;
use crate::import::{Position, Stopped};

/// One recording as it is read.
pub(super) struct Feed<R> {
    window: Window<R>,
    sorter: Sorter,
    /// Where the records end; `None` when only the stream's end says.
    end: Option<u64>,
}

impl<R: Read + Send> Feed<R> {
    pub(super) fn new(window: Window<R>, attrs: Attrs, end: Option<u64>) -> Self {
        Self {
            window,
            sorter: Sorter::new(attrs),
            end,
        }
    }

    /// Hands all records to `apply`, in order. Says where it stopped, if not at the end.
    pub(super) fn run(mut self, apply: &mut dyn FnMut(&Batch)) -> Option<Stopped> {
        let n_cores = thread::available_parallelism().map_or(1, usize::from);
        let beside = (n_cores > 1).then(|| self.run_beside(apply)).flatten();
        beside.unwrap_or_else(|| {
            self.read(&mut |batch| {
                apply(&batch);
                Some(batch)
            })
        })
    }

    /// Reads on another thread; `None` where none can be had.
    fn run_beside(&mut self, apply: &mut dyn FnMut(&Batch)) -> Option<Option<Stopped>> {
        let (give, taken) = sync_channel(1);
        let (give_back, given_back) = channel();
        let read = move || {
            self.read(&mut |batch| {
                give.send(batch).ok()?;
                Some(given_back.try_recv().unwrap_or_default())
            })
        };
        thread::scope(|scope| {
            let named = thread::Builder::new().name("read".into());
            let reader = named.spawn_scoped(scope, read).ok()?;
            for batch in taken {
                apply(&batch);
                // It has ended if it does not want it.
                let _ = give_back.send(batch);
            }
            Some(reader.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })
    }

    /// Hands all records to `take`, on this thread. Says where it stopped, if not at the end.
    pub(super) fn read(&mut self, take: &mut Take<'_>) -> Option<Stopped> {
        let mut stopped = None;
        while !self.sorter.is_unwanted {
            let at = self.window.position();
            match self.next_record(take) {
                Ok(true) => {}
                Ok(false) => break,
                Err(Broken(why)) => {
                    let at = Position::Byte(at);
                    stopped = Some(Stopped { at, why });
                    break;
                }
            }
        }
        self.sorter.finish(take);
        let cut = || Stopped {
            at: Position::Byte(self.window.position()),
            why: "the last packed record is not complete".into(),
        };
        stopped.or_else(|| self.sorter.is_cut().then(cut))
    }

    /// Reads one record; `false` at the end.
    fn next_record(&mut self, take: &mut Take<'_>) -> Result<bool, Broken> {
        let position = self.window.position();
        match self.end {
            Some(end) if position > end => {
                return Err(Broken(format!(
                    "the last record ends {} bytes behind where the header says that records end",
                    position - end
                )));
            }
            Some(end) if position == end => return Ok(false),
            _ => {}
        }
        let unused = self.window.up_to(HEADER).map_err(broken)?;
        if unused.is_empty() {
            return match self.end {
                Some(end) => Err(Broken(format!(
                    "the file ends here, {} bytes before its records do",
                    end - position
                ))),
                None => Ok(false),
            };
        }
        let (kind, _, size) = header(&mut Fields(unused))
            .ok_or_else(|| Broken("the file ends inside a record's header".into()))?;
        if size < HEADER {
            return Err(Broken(format!("a record of {size} bytes cannot be")));
        }
        let unused = self.window.up_to(size).map_err(broken)?;
        if unused.len() < size {
            return Err(Broken(format!(
                "the file ends inside a record: {} of {size} bytes are there",
                unused.len()
            )));
        }
        let record = &unused[..size];
        self.sorter.top_level(kind, record, take)?;
        let n_behind = bytes_behind(kind, &record[HEADER..]);
        self.window.consume(size);
        if self.window.skip(n_behind).map_err(broken)? {
            Ok(true)
        } else {
            Err(Broken("the file ends inside trace data".into()))
        }
    }
}

/// Two kinds of records have more behind them than their size says.
fn bytes_behind(kind: u32, body: &[u8]) -> u64 {
    let size = match kind {
        kind::AUXTRACE => Fields(body).u64(),
        kind::HEADER_TRACING_DATA => {
            let size = Fields(body).u32();
            size.map(|size| u64::from(size).next_multiple_of(8))
        }
        _ => None,
    };
    size.unwrap_or(0)
}

fn broken(error: std::io::Error) -> Broken {
    Broken(format!("cannot read on: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(recording: &[u8]) -> Feed<&[u8]> {
        let mut window = Window::new(recording);
        window.up_to(16).expect("it is in memory");
        window.consume(16);
        Feed::new(window, Attrs::default(), None)
    }

    /// Records in the order in which they are handed on, and why there are no more.
    fn check(recording: &[u8]) -> (usize, Option<Stopped>) {
        let (mut alone, mut beside) = (Vec::new(), Vec::new());
        let mut keep = |batch: &Batch| {
            alone.extend_from_slice(&batch.at_once);
            alone.extend(batch.due.iter().flat_map(|(_, record)| record.to_vec()));
        };
        let stopped = feed(recording).read(&mut |batch| {
            keep(&batch);
            Some(batch)
        });
        let stopped_beside = feed(recording).run_beside(&mut |batch| {
            beside.extend_from_slice(&batch.at_once);
            beside.extend(batch.due.iter().flat_map(|(_, record)| record.to_vec()));
        });
        assert_eq!(stopped_beside, Some(stopped.clone()));
        assert_eq!(alone, beside);
        (alone.len(), stopped)
    }

    #[test]
    fn a_second_thread_changes_nothing() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fixtures/6.18-debian12/perf/pipe.data"
        );
        let recording = std::fs::read(file).expect("it is a fixture");
        let (n_bytes, stopped) = check(&recording);
        assert!(n_bytes > recording.len() / 2 && stopped.is_none());
        let cut = &recording[..recording.len() * 2 / 3];
        let (n_bytes_of_cut, stopped) = check(cut);
        assert!(n_bytes_of_cut < n_bytes && stopped.is_some());
    }
}
