//! Bounds how much is worked out at once, whoever asks.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::http::Problem;

/// Answers that are worked out at once.
const PLACES: usize = 2;

/// How long one waits for a place.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where answers are worked out.
#[derive(Debug, Default)]
pub(crate) struct Workshop {
    taken: Mutex<usize>,
    freed: Condvar,
}

/// A place in it; free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place<'a>(&'a Workshop);

impl Workshop {
    /// Waits for a place.
    pub(crate) fn enter(&self) -> Result<Place<'_>, Problem> {
        let began = Instant::now();
        let mut taken = self.lock();
        while *taken >= PLACES {
            let Some(left) = PATIENCE.checked_sub(began.elapsed()) else {
                let detail = "others have asked for too much: try again";
                return Err(Problem::new(503, detail));
            };
            let waited = self.freed.wait_timeout(taken, left);
            taken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *taken += 1;
        Ok(Place(self))
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.freed.notify_one();
    }
}
