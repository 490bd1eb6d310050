//! What is shown on a terminal while a node is watched.

use std::io::{self, IsTerminal, StderrLock, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use rustix::termios::tcgetwinsize;
use sexton_agent::{Member, Progress};
use sexton_analysis::Policy;
use sexton_model::diagnosis::State;
use sexton_report::text::WIDTH;
use sexton_report::watching::{self, WatchingView};

use crate::judge;

/// When the first preliminary verdict is worked out, and how far two are apart at least.
const JUDGE_EVERY: Duration = Duration::from_secs(5);

/// Judging takes at most this part of the time of a core.
const ONE_PART_IN: u32 = 10;

/// Of the thread that judges.
const NICE: i32 = 10;

/// When sensors have said what they are not allowed to see.
const SAID_BY: Duration = Duration::from_millis(800);

/// The block of lines that is drawn again and again.
pub(super) struct Display<'a> {
    out: StderrLock<'static>,
    members: &'a [Member],
    time: Duration,
    began: Instant,
    /// Lines that are on the screen.
    n_drawn: usize,
    /// Whether a user without privileges was told what that costs.
    has_told: bool,
    preview: Option<Preview>,
}

impl<'a> Display<'a> {
    /// One for a watch that begins now and records into this folder.
    pub(super) fn new(
        members: &'a [Member],
        time: Duration,
        folder: &Path,
        policy: &Policy,
        is_quiet: bool,
    ) -> Self {
        let out = io::stderr().lock();
        let is_shown = out.is_terminal() && !is_quiet;
        Self {
            out,
            members,
            time,
            began: Instant::now(),
            n_drawn: 0,
            has_told: geteuid().is_root(),
            preview: is_shown.then(|| Preview::new(folder, policy)),
        }
    }

    /// Shows how far it is.
    pub(super) fn show(&mut self, progress: &Progress) -> io::Result<()> {
        let elapsed = self.began.elapsed();
        if !self.has_told && elapsed >= SAID_BY {
            self.has_told = true;
            self.clear()?;
            let denied: Vec<&str> = progress.denied.iter().map(String::as_str).collect();
            if !denied.is_empty() {
                write!(self.out, "{}", watching::without_root(&denied))?;
            }
        }
        let Some(preview) = &mut self.preview else {
            return Ok(());
        };
        let so_far = preview.headline(elapsed);
        let mut view = WatchingView {
            elapsed,
            time: self.time,
            n_records: progress.n_records,
            so_far: so_far.as_deref(),
            ..WatchingView::default()
        };
        for name in self.members.iter().map(|member| member.spec.name) {
            match () {
                () if progress.blind.contains_key(name) => view.blind.push(name),
                () if progress.heard.contains(name) => view.n_at_work += 1,
                () => view.starting.push(name),
            }
        }
        let lines = watching::lines(&view, width(&self.out));
        self.clear()?;
        self.n_drawn = lines.len();
        write!(self.out, "{}", lines.join("\n"))?;
        self.out.flush()
    }

    /// Takes all lines off the screen.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        if self.n_drawn == 0 {
            return Ok(());
        }
        write!(self.out, "\r\x1b[K")?;
        for _ in 1..self.n_drawn {
            write!(self.out, "\x1b[A\x1b[K")?;
        }
        self.n_drawn = 0;
        self.out.flush()
    }
}

/// Columns of the terminal, if it says so.
fn width(out: &StderrLock<'_>) -> usize {
    let columns = tcgetwinsize(out).ok().map(|size| usize::from(size.ws_col));
    columns.filter(|n| *n > 0).map_or(WIDTH, |n| n.min(WIDTH))
}

/// Judges what was recorded so far, on a thread of its own.
struct Preview {
    folder: PathBuf,
    policy: Policy,
    headline: Arc<Mutex<Option<String>>>,
    running: Option<JoinHandle<Duration>>,
    next: Duration,
}

impl Preview {
    fn new(folder: &Path, policy: &Policy) -> Self {
        Self {
            folder: folder.to_owned(),
            policy: policy.clone(),
            headline: Arc::default(),
            running: None,
            next: JUDGE_EVERY,
        }
    }

    /// The newest headline. Begins to work out the next one when that is due.
    fn headline(&mut self, elapsed: Duration) -> Option<String> {
        if self.running.as_ref().is_some_and(JoinHandle::is_finished) {
            let took = self.running.take().and_then(|thread| thread.join().ok());
            let took = took.unwrap_or_default() * ONE_PART_IN;
            self.next = elapsed + took.max(JUDGE_EVERY);
        }
        if self.running.is_none() && elapsed >= self.next {
            self.begin();
        }
        self.headline.lock().ok()?.clone()
    }

    /// A verdict that cannot be had now is tried again later, and in the end by the real one.
    fn begin(&mut self) {
        let (folder, policy) = (self.folder.clone(), self.policy.clone());
        let headline = Arc::clone(&self.headline);
        let thread = thread::Builder::new().name("preview".into());
        let judging = move || {
            // Those who record come first.
            let _ = rustix::process::setpriority_process(None, NICE);
            let began = Instant::now();
            if let Ok(judged) = judge::bundle(&folder, &policy)
                && let Ok(mut headline) = headline.lock()
            {
                let diagnosis = judged.diagnosis;
                *headline = match diagnosis.state {
                    State::CauseFound | State::SymptomsOnly => Some(diagnosis.headline),
                    State::Healthy => Some("nothing abnormal".to_owned()),
                    State::Blind => None,
                };
            }
            began.elapsed()
        };
        self.running = thread.spawn(judging).ok();
    }
}
