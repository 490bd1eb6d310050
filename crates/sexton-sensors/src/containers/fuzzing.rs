//! For the fuzz targets.

use sexton_model::moment::Moment;
use sexton_model::record::{Record, Sink};
use sexton_runtimes::fuzzing::{docker_events, docker_list};

use super::NAME;
use super::tracker::{Now, Tracker};

/// What is told of the body of an answer of the Docker API that comes in pieces of this
/// length, taken both as a list and as events.
pub fn container_api(body: &[u8], piece_bytes: usize) -> Vec<Record> {
    let now = Now {
        at: Moment::from_ns(1 << 50),
        wall_ns: 1 << 60,
    };
    let mut out = Sink::new(NAME, now.at);
    let mut tracker = Tracker::new("docker", 1 << 59);
    for happening in docker_events(body, piece_bytes) {
        tracker.take(happening, now, &mut out);
    }
    tracker.list(docker_list(body), now, &mut out);
    tracker.settle(now, &mut out);
    out.into_records()
}
