//! The one thread that talks to container runtimes.

use std::io;
use std::sync::mpsc;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// How much the thread stands back for others. The work of a node comes first, and so do
/// sexton's own sensors.
const NICE: i32 = 10;

/// A thread on which all connections to runtimes are served. It starts with the first that is
/// needed: a node without containers does without it. It ends, and closes every connection,
/// when this is dropped.
#[derive(Debug, Default)]
pub struct Reactor {
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    handle: Handle,
    /// Dropped, it ends the thread.
    _stop: oneshot::Sender<()>,
}

impl Reactor {
    /// Where work is handed to the thread.
    pub(crate) fn handle(&mut self) -> io::Result<&Handle> {
        let running = match self.running.take() {
            Some(running) => running,
            None => start()?,
        };
        Ok(&self.running.insert(running).handle)
    }

    /// Has the thread do this, and waits until it is done.
    pub(crate) fn run<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> io::Result<T> {
        let (send, done) = mpsc::sync_channel(1);
        self.handle()?.spawn(async move {
            // The receiver waits for it below.
            let _ = send.send(work.await);
        });
        done.recv()
            .map_err(|_| io::Error::other("the thread that talks to runtimes broke"))
    }
}

fn start() -> io::Result<Running> {
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let handle = runtime.handle().clone();
    let (stop, stopped) = oneshot::channel();
    thread::Builder::new()
        .name("runtimes".into())
        .spawn(move || {
            // Where it may not be lowered, it is as it was.
            let _ = rustix::process::setpriority_process(None, NICE);
            // An error is the end of the sender, which is what is waited for.
            let _ = runtime.block_on(stopped);
        })?;
    Ok(Running {
        handle,
        _stop: stop,
    })
}
