//! Bounds how much is worked out at once, however many ask.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::http::{Problem, blocking};

/// Answers that are worked out at once.
const PLACES: usize = 2;

/// How long one waits for a place.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where answers are worked out.
#[derive(Debug)]
pub(crate) struct Workshop(Arc<Semaphore>);

impl Default for Workshop {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(PLACES)))
    }
}

impl Workshop {
    /// Waits for a place, and works there on a thread of its own. The place is taken until the
    /// work is done, even if its client has gone.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let place = timeout(PATIENCE, Arc::clone(&self.0).acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            let detail = "others have asked for too much: try again";
            return Err(Problem::new(503, detail));
        };
        blocking(move || {
            let _place = place;
            work()
        })
        .await
    }
}
