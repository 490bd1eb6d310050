//! For the fuzz targets.

use sexton_model::moment::Moment;
use sexton_model::record::{Record, Sink};

use super::NAME;
use super::api::{self, Lines};
use super::http::{Body, head};
use super::tracker::{Now, Tracker};

/// What is told of an answer of a container daemon that comes in pieces of this length,
/// taken both as a list and as events.
pub fn container_api(answer: &[u8], piece_bytes: usize) -> Vec<Record> {
    let Ok(Some((head, length))) = head(answer) else {
        return Vec::new();
    };
    let now = Now {
        at: Moment::from_ns(1 << 50),
        wall_ns: 1 << 60,
    };
    let mut out = Sink::new(NAME, now.at);
    let mut tracker = Tracker::new("docker", 1 << 59);
    let (mut body, mut lines) = (Body::new(head.framing), Lines::default());
    let mut whole = Vec::new();
    for piece in answer[length..].chunks(piece_bytes.max(1)) {
        let mut bytes = Vec::new();
        let fed = body.feed(piece, &mut bytes);
        lines.feed(&bytes, |line| {
            if let Some(Ok(Some(happening))) = line.map(api::event) {
                tracker.take(happening, now, &mut out);
            }
        });
        whole.extend_from_slice(&bytes);
        if fed.is_err() {
            break;
        }
    }
    if let Ok(list) = api::list(&whole) {
        tracker.list(list, now, &mut out);
    }
    tracker.settle(now, &mut out);
    out.into_records()
}
