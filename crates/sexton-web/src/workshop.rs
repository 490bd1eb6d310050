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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use tokio::runtime::Builder;
    use tokio::task::yield_now;
    use tokio::time::advance;

    use super::*;
    use crate::http::Response;

    #[test]
    fn a_third_waits_and_is_refused_after_a_while() {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        runtime.expect("a runtime").block_on(async {
            let workshop = Arc::new(Workshop::default());
            // Works until the other end of the channel is gone.
            let begin = |gate: Receiver<()>| {
                let workshop = Arc::clone(&workshop);
                let work = move || {
                    let _ = gate.recv();
                    Ok(())
                };
                tokio::spawn(async move { workshop.work(work).await })
            };
            let (first_gate, second_gate) = (channel(), channel());
            let long = [begin(first_gate.1), begin(second_gate.1)];
            yield_now().await;
            let third = begin(channel().1);
            yield_now().await;
            advance(PATIENCE - Duration::from_secs(1)).await;
            yield_now().await;
            assert!(!third.is_finished());
            advance(Duration::from_secs(2)).await;
            let refused = third.await.expect("no panic").expect_err("no place");
            assert_eq!(Response::from(refused).status, 503);
            drop((first_gate.0, second_gate.0));
            for long in long {
                long.await.expect("no panic").expect("it had a place");
            }
            let later = begin(channel().1);
            let later = later.await.expect("no panic");
            assert!(later.is_ok(), "there is a place again");
        });
    }
}
