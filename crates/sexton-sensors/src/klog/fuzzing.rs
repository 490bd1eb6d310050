//! For the fuzz targets.

use sexton_model::fact::klog::KernelLine;
use sexton_model::moment::Moment;
use sexton_model::subject::Subject;

use super::by_syslog;
use super::event::{self, Interfaces};
use super::keep::Keeper;
use super::line::Line;
use super::sequence::Sequence;
use super::times::Clocks;

/// The event that a record of `/dev/kmsg`, or a line of syslog(2), becomes, if it is recorded.
pub fn kernel_log_record(record: &[u8]) -> Option<(Subject, KernelLine)> {
    let line = Line::parse(record).or_else(|| by_syslog::parse(record))?;
    let mut sequence = Sequence::default();
    sequence.advance(line.seq.unwrap_or(0));
    sequence.advance(line.us);
    let clocks = Clocks {
        now: Moment::from_ns(1 << 50),
        awake_ns: 1 << 49,
        since: (line.level > 3).then(|| Moment::from_ns(1 << 48)),
    };
    let (_, error_ns) = clocks.place(line.us);
    Keeper::default().keep(&line)?;
    Some(event::describe(&line, error_ns, &Interfaces::default()))
}
