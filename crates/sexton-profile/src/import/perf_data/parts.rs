//! Puts several streams of records together: `perf record --threads` writes one for each of its
//! threads, and each is in order only in itself.
//!
//! Each stream is read on a thread of its own, which waits once a batch is ahead. So what is
//! kept is a few batches of each, however long they are.

use std::io::Read;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use super::feed::Feed;
use super::order::Due;
use super::sorter::Batch;
use crate::import::{Position, Stopped};

/// One stream, as far as it was taken.
struct Stream {
    batches: Receiver<Batch>,
    due: Due,
    n_taken: usize,
}

impl Stream {
    /// The time of its next record, once records without a time were handed on.
    fn next_time(&mut self, at_once: &mut dyn FnMut(&[u8])) -> Option<u64> {
        loop {
            if let Some(time) = self.due.time_at(self.n_taken) {
                return Some(time);
            }
            let batch = self.batches.recv().ok()?;
            at_once(&batch.at_once);
            (self.due, self.n_taken) = (batch.due, 0);
        }
    }
}

/// Hands all records of these streams on: those without a time as they come, others in order.
/// Says why one of them ended early, if one did.
pub(super) fn run<R: Read + Send>(
    feeds: Vec<Feed<R>>,
    at_once: &mut dyn FnMut(&[u8]),
    due: &mut dyn FnMut(u64, &[u8]),
) -> Option<Stopped> {
    thread::scope(|scope| {
        let (mut streams, mut readers) = (Vec::new(), Vec::new());
        let mut stopped = None;
        for mut feed in feeds {
            let (give, batches) = sync_channel(1);
            let read = move || {
                feed.read(&mut |batch| {
                    give.send(batch).ok()?;
                    Some(Batch::default())
                })
            };
            let named = thread::Builder::new().name("read".into());
            match named.spawn_scoped(scope, read) {
                Ok(reader) => readers.push(reader),
                Err(error) => {
                    stopped = Some(Stopped {
                        at: Position::Byte(0),
                        why: format!("cannot start a thread to read a part of it: {error}"),
                    });
                }
            }
            streams.push(Stream {
                batches,
                due: Due::default(),
                n_taken: 0,
            });
        }
        merge(&mut streams, at_once, due);
        drop(streams);
        for reader in readers {
            let ended = reader.join().unwrap_or_else(|panic| resume_unwind(panic));
            stopped = stopped.or(ended);
        }
        stopped
    })
}

fn merge(streams: &mut [Stream], at_once: &mut dyn FnMut(&[u8]), due: &mut dyn FnMut(u64, &[u8])) {
    let mut times: Vec<Option<u64>> = Vec::new();
    for stream in &mut *streams {
        times.push(stream.next_time(at_once));
    }
    // Equal times: that of the first stream, which tells of processes and their memory.
    while let Some((time, at)) = times
        .iter()
        .enumerate()
        .filter_map(|(at, time)| Some(((*time)?, at)))
        .min()
    {
        let stream = &mut streams[at];
        if let Some(record) = stream.due.record_at(stream.n_taken) {
            due(time, record);
        }
        stream.n_taken += 1;
        times[at] = stream.next_time(at_once);
    }
}
