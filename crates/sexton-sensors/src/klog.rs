//! Reads the kernel's log and records lines as they are; what they mean is judged later.
//!
//! Source: `/dev/kmsg`, from the oldest line that is left. Recorded are lines of level warning
//! or worse, and lesser ones that have a piece of a wording in `signatures/klog/` (`keep.rs`).
//! A line written by a program is told from the kernel's own.
//! Where the device cannot be opened and syslog(2) can be called, as in a container with
//! CAP_SYSLOG, the log is read by that every ten seconds (`by_syslog.rs`).
//! Blind to: lines that were overwritten before they were read (a gap says how many, or, with
//! syslog(2), that there were some), lesser lines that nothing asks for (they are counted), and
//! what drivers do not say.
//! Overhead: `docs/overhead.md#klog`.

mod by_syslog;
mod event;
pub(crate) mod fuzzing;
mod keep;
mod line;
mod sequence;
mod times;

use std::cell::OnceCell;
use std::time::Duration;

use sexton_host::{Host, HostError, Piece, Stream, clock};
use sexton_model::fact::klog as fact;
use sexton_model::fact::sexton::SEXTON_STEP_DOWN;
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::Subject;

use crate::{Sensor, SensorSpec, bpf};
use by_syslog::BySyslog;
use event::Interfaces;
use keep::Keeper;
use line::Line;
use sequence::{Lost, Sequence};
use times::Clocks;

const NAME: &str = "klog";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "the kernel's log: resets and timeouts of network devices, stalls, kills",
    emits: &[
        &fact::KLOG_EVENT.fact,
        &fact::KLOG_LINES,
        &fact::KLOG_LINES_LEFT_OUT,
        &SEXTON_STEP_DOWN.fact,
    ],
    every: Duration::from_secs(1),
    deadline: Duration::from_secs(2),
    examine,
    open,
};

const LOG: &str = "/dev/kmsg";

/// Room for one record. The kernel gives none that is longer than 8 kB.
const RECORD_BYTES: usize = 16 * 1024;

/// Lines read in one poll. The rest is read in the next one, so that a flood costs
/// lines, which a gap tells, and not the node.
///
/// Chosen: more than a ring of 1 MB holds, and a tenth of the deadline.
const LINES_PER_POLL: u64 = 20_000;

struct Klog {
    source: Source,
    keeper: Keeper,
    /// When there was last nothing more to read.
    since: Option<Moment>,
    n_lines: u64,
    n_left_out: u64,
}

/// Where lines come from.
enum Source {
    Device(Box<Device>),
    /// The device cannot be opened; why not, until that is told.
    Syslog(Box<BySyslog>, Option<Gap>),
}

/// `/dev/kmsg`, and where we are in it.
struct Device {
    stream: Stream,
    buffer: Vec<u8>,
    sequence: Sequence,
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    let source = match Device::open(host) {
        Ok(device) => Source::Device(Box::new(device)),
        Err(error) => syslog_instead(host, &error).ok_or_else(|| read_gap(&error))?,
    };
    Ok(Box::new(Klog {
        source,
        keeper: Keeper::default(),
        since: None,
        n_lines: 0,
        n_left_out: 0,
    }))
}

/// The other way, if the device is forbidden and the call is not. A device that is not there
/// may be another matter: a system in namespaces has none so that it does not see this log.
fn syslog_instead(host: &Host, error: &HostError) -> Option<Source> {
    if error.why() != Why::Denied {
        return None;
    }
    let log = host.kernel_log().ok()?;
    let gap = Gap::new(NAME, Why::Denied, error.chain())
        .with_remedy("allow the container the device /dev/kmsg, or run outside of one");
    Some(Source::Syslog(Box::new(BySyslog::new(log)), Some(gap)))
}

impl Sensor for Klog {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        let read = match &mut self.source {
            Source::Device(device) => Some(device.read_lines(out)),
            Source::Syslog(log, instead) => {
                if let Some(gap) = instead.take() {
                    bpf::tell_step_down("the kernel log", "syslog(2), every 10 s", &gap, out);
                }
                log.read_lines(out)
            }
        };
        let Some((lines, until)) = read else {
            return;
        };
        let clocks = Clocks {
            now: clock::now(),
            awake_ns: clock::awake_ns(),
            since: self.since,
        };
        let is_first = self.n_lines == 0;
        let interfaces = OnceCell::new();
        let interfaces = || interfaces.get_or_init(|| Interfaces::read(host));
        for line in &lines {
            self.tell(line, &clocks, interfaces, out);
        }
        if until.is_some() {
            self.since = until;
        }
        if is_first || !lines.is_empty() {
            let node = Subject::node();
            out.sample(&node, &fact::KLOG_LINES, self.n_lines as f64);
            out.sample(&node, &fact::KLOG_LINES_LEFT_OUT, self.n_left_out as f64);
        }
    }
}

impl Device {
    fn open(host: &Host) -> Result<Self, HostError> {
        let mut stream = host.open_stream(LOG)?;
        stream.rewind()?;
        Ok(Self {
            stream,
            buffer: vec![0; RECORD_BYTES],
            sequence: Sequence::default(),
        })
    }

    /// The lines there are, and from when on there may be more; `None` when there are
    /// more already.
    fn read_lines(&mut self, out: &mut Sink) -> (Vec<Line>, Option<Moment>) {
        let mut lines = Vec::new();
        let mut n_malformed = 0;
        let mut until = None;
        for _ in 0..LINES_PER_POLL {
            let before = clock::now();
            match self.stream.read(&mut self.buffer) {
                Ok(Piece::Bytes(n)) => match Line::parse(&self.buffer[..n]) {
                    Some(line) => {
                        self.note_lost(&line, out);
                        lines.push(line);
                    }
                    None => n_malformed += 1,
                },
                // The number of the next line says how many were lost.
                Ok(Piece::Overwritten) => (),
                Ok(Piece::Nothing) => {
                    until = Some(before);
                    break;
                }
                Err(error) => {
                    out.gap(&Subject::node(), read_gap(&error));
                    break;
                }
            }
        }
        if n_malformed > 0 {
            let text = format!("{n_malformed} records of {LOG} make no sense");
            out.gap(&Subject::node(), Gap::new(NAME, Why::Malformed, text));
        }
        (lines, until)
    }

    fn note_lost(&mut self, line: &Line, out: &mut Sink) {
        let (n, when) = match line.seq.and_then(|seq| self.sequence.advance(seq)) {
            Some(Lost::BeforeFirst(n)) => (n, "before sexton looked"),
            Some(Lost::Between(n)) => (n, "before they were read"),
            None => return,
        };
        let text = format!("{n} lines of the kernel's log were overwritten {when}");
        let gap = Gap::new(NAME, Why::Lost(n), text)
            .with_remedy("give the log more room: boot with log_buf_len=4M");
        out.gap(&Subject::node(), gap);
    }
}

impl Klog {
    fn tell<'i>(
        &mut self,
        line: &Line,
        clocks: &Clocks,
        interfaces: impl FnOnce() -> &'i Interfaces,
        out: &mut Sink,
    ) {
        // The first line that is left tells how far back the log reaches, whatever it says.
        let is_first = self.n_lines == 0;
        self.n_lines += 1;
        let kept = self.keeper.keep(line);
        let Some(repeated) = kept.or(is_first.then_some(0)) else {
            self.n_left_out += 1;
            return;
        };
        let (at, error_ns) = clocks.place(line.us);
        let (subject, mut says) = event::describe(line, error_ns, interfaces());
        says.repeated = (repeated > 0).then_some(repeated);
        out.event(at, &subject, &fact::KLOG_EVENT, says);
    }
}

fn read_gap(error: &HostError) -> Gap {
    let gap = Gap::new(NAME, error.why(), error.chain());
    match error.why() {
        Why::Denied => gap.with_remedy("run as root, or with CAP_SYSLOG"),
        Why::Vanished => gap.with_remedy("give the container the node's /dev/kmsg"),
        _ => gap,
    }
}

fn examine(host: &Host) -> Vec<Sight> {
    vec![examine_log(host)]
}

fn examine_log(host: &Host) -> Sight {
    const WHAT: &str = "kernel log";
    let mut buffer = vec![0; RECORD_BYTES];
    let first = host
        .open_stream(LOG)
        .and_then(|mut stream| stream.read(&mut buffer));
    let oldest = match &first {
        Ok(Piece::Bytes(n)) => Line::parse(&buffer[..*n]).and_then(|line| line.seq),
        _ => None,
    };
    match (first, oldest) {
        (Err(error), _) if syslog_instead(host, &error).is_some() => Sight::sees(
            WHAT,
            "syslog(2), read every 10 s: lines that are overwritten in between are lost",
        ),
        (Err(error), _) => {
            let gap = read_gap(&error);
            let sight = Sight::blind(WHAT, gap.text);
            match gap.remedy {
                Some(remedy) => sight.with_remedy(remedy),
                None => sight,
            }
        }
        (Ok(_), Some(0)) => Sight::sees(WHAT, format!("{LOG}, complete since boot")),
        (Ok(_), Some(seq)) => Sight::sees(
            WHAT,
            format!("{LOG}; the first {seq} lines since boot are overwritten"),
        ),
        (Ok(_), None) => Sight::sees(WHAT, LOG),
    }
}
