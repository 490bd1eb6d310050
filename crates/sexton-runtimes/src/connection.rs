//! A connection to the Unix socket of a daemon, and the tasks that serve it.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{sleep, timeout};

use crate::trouble::Trouble;

/// How long to wait before a busy daemon is asked again.
const AGAIN: Duration = Duration::from_millis(20);

/// Connects, and waits for as long as the queue of the daemon is full.
pub(crate) async fn connect(socket: &Path) -> Result<UnixStream, Trouble> {
    loop {
        match UnixStream::connect(socket).await {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(AGAIN).await,
            Err(error) => return Err(Trouble::Connect(error)),
        }
    }
}

/// Does something that the daemon may be too stuck for.
pub(crate) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, Trouble>>,
) -> Result<T, Trouble> {
    let done = timeout(limit, work).await;
    done.unwrap_or(Err(Trouble::Silent(limit)))
}

/// The tasks that serve one connection. All end, and the connection with them, when this is
/// dropped: none is left to a daemon that does not answer.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Spawner);

/// Adds tasks to those of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spawner(Arc<Mutex<Vec<AbortHandle>>>);

impl Tasks {
    pub(crate) fn spawner(&self) -> Spawner {
        self.0.clone()
    }

    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.0.spawn(work)
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        let tasks = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        for task in &*tasks {
            task.abort();
        }
    }
}

impl Spawner {
    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let task = tokio::spawn(work);
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.push(task.abort_handle());
        task
    }
}

/// What hyper serves a connection of HTTP/2 with.
impl<F> hyper::rt::Executor<F> for Spawner
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, work: F) {
        self.spawn(work);
    }
}
