//! Signals that end a command, as a flag that it looks at.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};
use signal_hook::low_level::unregister;

use crate::exit::Exit;

const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// What has a second signal end us.
static MADE_TO_STOP: Mutex<Vec<SigId>> = Mutex::new(Vec::new());

/// A flag that is set when a signal asks us to end. Nothing else happens from here on, however often
/// it comes, also where [`asked_to_stop_or_made_to`] was used before: what was begun is brought to
/// its end.
pub(crate) fn asked_to_stop() -> Result<Arc<AtomicBool>> {
    let mut made_to_stop = MADE_TO_STOP.lock().unwrap_or_else(PoisonError::into_inner);
    for id in made_to_stop.drain(..) {
        unregister(id);
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in ENDING {
        register(signal, Arc::clone(&stop)).context("cannot listen for signals")?;
    }
    Ok(stop)
}

/// The same for work that may hang and leaves nothing half done: a second signal ends it at once.
pub(crate) fn asked_to_stop_or_made_to() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut made_to_stop = MADE_TO_STOP.lock().unwrap_or_else(PoisonError::into_inner);
    for signal in ENDING {
        let made_to = register_conditional_shutdown(signal, Exit::Failed as i32, Arc::clone(&stop));
        made_to_stop.push(made_to.context("cannot listen for signals")?);
        register(signal, Arc::clone(&stop)).context("cannot listen for signals")?;
    }
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use signal_hook::low_level::raise;

    use super::*;

    #[test]
    fn what_was_begun_is_not_ended_by_a_second_signal() {
        let watching = asked_to_stop_or_made_to().expect("it listens");
        let acting = asked_to_stop().expect("it listens");
        // The second one would end the tests.
        for _ in 0..2 {
            raise(SIGHUP).expect("it is sent");
        }
        assert!(watching.load(Ordering::Relaxed) && acting.load(Ordering::Relaxed));
    }
}
