//! The clients against daemons that are threads of the test. What these say is made up.

mod grpc;
mod http;
mod sessions;

use std::time::{Duration, Instant};

use crate::Trouble;

/// Patient with daemons that are well: the machine of the test may be busy.
const PATIENT: Duration = Duration::from_secs(10);

/// For daemons that are never to answer.
const HASTY: Duration = Duration::from_millis(200);

/// The answer, or the sort of gap it leaves and its text.
fn told<T: ToString>(answer: Result<T, Trouble>) -> String {
    match answer {
        Ok(answer) => answer.to_string(),
        Err(trouble) => format!("{}: {}", trouble.why(), trouble.chain()),
    }
}

/// Waits until it is so.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < until, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
