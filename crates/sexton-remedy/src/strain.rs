//! How much the node suffers while we work: the kernel's own measure of pressure.

use std::thread;
use std::time::{Duration, Instant};

use sexton_host::{Host, clock};
use sexton_model::moment::Moment;

/// More of the time than this some task waited: we go slower.
///
/// Chosen: a busy node without trouble stays below (PSI documentation calls 10 % over ten
/// seconds a sensible alarm for one workload); we share a node that is already sick.
const SLOW_DOWN: f64 = 0.3;

/// All tasks waited more of the time than this: we stop.
const STOP: f64 = 0.3;

/// How long a pause is.
const PAUSE: Duration = Duration::from_millis(500);

/// The shortest time between two looks; the counters are only renewed so often.
const BETWEEN: Duration = Duration::from_millis(250);

/// How the node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ease {
    /// Well, or it cannot be told.
    Well,
    /// It suffers; we paused.
    Paused,
    /// It suffers too much.
    TooMuch,
}

/// Watches memory and disk pressure since the look before.
#[derive(Debug)]
pub struct Strain {
    before: Option<(Moment, Pressure)>,
    looked: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Pressure {
    some_us: u64,
    full_us: u64,
}

impl Strain {
    /// Begins to watch.
    pub fn begin(host: &Host) -> Self {
        Self {
            before: read(host).map(|now| (clock::now(), now)),
            looked: Instant::now(),
        }
    }

    /// Looks, and pauses when the node suffers. Cheap: most calls return at once.
    pub(crate) fn ease(&mut self, host: &Host) -> Ease {
        if self.looked.elapsed() < BETWEEN {
            return Ease::Well;
        }
        self.looked = Instant::now();
        let (Some(now), Some((then, before))) = (read(host), self.before) else {
            return Ease::Well;
        };
        let at = clock::now();
        self.before = Some((at, now));
        match judge(before, now, at.since(then)) {
            Ease::Paused => {
                thread::sleep(PAUSE);
                Ease::Paused
            }
            ease => ease,
        }
    }
}

fn judge(before: Pressure, now: Pressure, time: Duration) -> Ease {
    let part = |before: u64, now: u64| {
        now.saturating_sub(before) as f64 / (time.as_micros() as f64).max(1.0)
    };
    if part(before.full_us, now.full_us) > STOP {
        Ease::TooMuch
    } else if part(before.some_us, now.some_us) > SLOW_DOWN {
        Ease::Paused
    } else {
        Ease::Well
    }
}

/// The worse of memory and disk; `None` where the kernel does not tell.
fn read(host: &Host) -> Option<Pressure> {
    let of = |what: &str| {
        let path = host.proc(&format!("pressure/{what}")).ok()?;
        parse(&host.read_text(path).ok()?)
    };
    let (memory, io) = (of("memory")?, of("io")?);
    Some(Pressure {
        some_us: memory.some_us + io.some_us,
        // Writing back is what we ask for, so a busy disk alone does not stop us.
        full_us: memory.full_us,
    })
}

fn parse(text: &str) -> Option<Pressure> {
    let total = |kind: &str| {
        let line = text.lines().find(|line| line.starts_with(kind))?;
        line.split("total=").nth(1)?.trim().parse().ok()
    };
    Some(Pressure {
        some_us: total("some")?,
        full_us: total("full").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(some_us: u64, full_us: u64) -> Pressure {
        Pressure { some_us, full_us }
    }

    #[test]
    fn a_node_that_suffers_is_given_time() {
        assert_eq!(judge(at(0, 0), at(100_000, 0), SECOND), Ease::Well);
        assert_eq!(judge(at(0, 0), at(400_000, 0), SECOND), Ease::Paused);
        assert_eq!(judge(at(0, 0), at(900_000, 500_000), SECOND), Ease::TooMuch);
        assert_eq!(judge(at(9, 9), at(0, 0), Duration::ZERO), Ease::Well);
    }

    #[test]
    fn a_pressure_file() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=17\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        assert_eq!(parse(text), Some(at(17, 5)));
        assert_eq!(parse("nonsense"), None);
    }
}
