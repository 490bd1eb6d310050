//! Asks filesystems on threads of their own, because a disk that hangs keeps who asks.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use sexton_host::space::Space;

/// A filesystem that has not answered by then hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Threads that may hang at a time; then nothing more is asked.
const MAX_HANGING: usize = 4;

/// What is asked of a filesystem.
type Ask = fn(&Path) -> io::Result<Space>;

/// What became of a question.
#[derive(Debug)]
pub(super) enum Asked {
    Told(io::Result<Space>),
    Hangs,
}

/// One thread, which takes paths and gives answers.
struct Worker {
    questions: Sender<PathBuf>,
    answers: Receiver<io::Result<Space>>,
}

pub(super) struct Workers {
    ask: Ask,
    idle: Option<Worker>,
    /// Those that wait in the kernel, and for what.
    hanging: Vec<(PathBuf, Worker)>,
}

impl Workers {
    pub(super) fn new(ask: Ask) -> Self {
        Self {
            ask,
            idle: None,
            hanging: Vec::new(),
        }
    }

    /// Asks one filesystem, and waits for at most [`PATIENCE`].
    pub(super) fn ask(&mut self, point: &Path) -> Asked {
        // A thread that came back ends when its worker is dropped.
        self.hanging
            .retain(|(_, worker)| worker.answers.try_recv().is_err());
        let hangs = self.hanging.iter().any(|(known, _)| known == point);
        if hangs || self.hanging.len() >= MAX_HANGING {
            return Asked::Hangs;
        }
        let worker = match self.idle.take().map_or_else(|| start(self.ask), Ok) {
            Ok(worker) => worker,
            Err(error) => return Asked::Told(Err(error)),
        };
        if worker.questions.send(point.to_owned()).is_err() {
            return Asked::Told(Err(io::Error::other("the thread that asks has ended")));
        }
        match worker.answers.recv_timeout(PATIENCE) {
            Ok(answer) => {
                self.idle = Some(worker);
                Asked::Told(answer)
            }
            Err(RecvTimeoutError::Timeout) => {
                self.hanging.push((point.to_owned(), worker));
                Asked::Hangs
            }
            Err(RecvTimeoutError::Disconnected) => {
                Asked::Told(Err(io::Error::other("the thread that asks has ended")))
            }
        }
    }
}

fn start(ask: Ask) -> io::Result<Worker> {
    let (questions, paths) = channel::<PathBuf>();
    let (told, answers) = channel();
    let work = move || {
        for path in paths {
            if told.send(ask(&path)).is_err() {
                return;
            }
        }
    };
    let name = "filesystems".to_owned();
    thread::Builder::new().name(name).spawn(work)?;
    Ok(Worker { questions, answers })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers, or takes two seconds where the path says so.
    fn slow(path: &Path) -> io::Result<Space> {
        if path.ends_with("slow") {
            thread::sleep(2 * PATIENCE);
        }
        Space::of(Path::new("/"))
    }

    #[test]
    fn one_that_hangs_keeps_no_other_and_may_come_back() {
        let mut workers = Workers::new(slow);
        assert!(matches!(workers.ask(Path::new("/slow")), Asked::Hangs));
        // It is not asked again while it hangs.
        assert!(matches!(workers.ask(Path::new("/slow")), Asked::Hangs));
        assert_eq!(workers.hanging.len(), 1);
        assert!(matches!(workers.ask(Path::new("/")), Asked::Told(Ok(_))));
        thread::sleep(PATIENCE + PATIENCE / 2);
        assert!(matches!(workers.ask(Path::new("/")), Asked::Told(Ok(_))));
        assert!(workers.hanging.is_empty());
    }
}
