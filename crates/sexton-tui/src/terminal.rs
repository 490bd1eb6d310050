//! Puts a view on the real terminal, and gives the terminal back whatever happens.

use std::io::{self, IsTerminal as _, Write as _, stderr, stdin, stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use sexton_model::moment::Moment;
use sexton_model::record::Record;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::keys::action;
use crate::render::render;
use crate::view::{Flow, View};

/// How long to wait for records before keys are looked at: short enough that a key
/// feels answered.
const BEAT: Duration = Duration::from_millis(100);

/// How long to wait for a key when nothing else can happen but a signal.
const PATIENCE: Duration = Duration::from_millis(250);

/// Where records come from.
pub trait Source {
    /// What came in within this time. A recording gives all of it at once, the first
    /// time it is asked.
    fn wait(&mut self, time: Duration) -> Vec<Record>;

    /// Whether more will come.
    fn is_live(&self) -> bool;

    /// The moment it is now, by the clock of the records.
    fn now(&self) -> Moment;
}

/// Shows what a source gives until the user quits.
///
/// Fails when there is no terminal, or when it cannot be drawn on. The terminal is as it
/// was before, also after an error, a panic or a signal that ends us.
pub fn run(source: &mut dyn Source) -> io::Result<()> {
    if !source.is_live() {
        require_terminal()?;
        return look(View::of_records(&source.wait(Duration::ZERO)));
    }
    let mut screen = Screen::open()?;
    let mut view = View::live();
    while !screen.is_over() {
        view.advance(source.now());
        screen.draw(&view)?;
        view.take(&source.wait(BEAT));
        if obey(&mut view, Duration::ZERO)? == Some(Flow::Quit) {
            break;
        }
    }
    Ok(())
}

/// Shows a view that nothing more is added to, until the user quits. As for [`run`].
pub fn look(mut view: View) -> io::Result<()> {
    let mut screen = Screen::open()?;
    screen.draw(&view)?;
    while !screen.is_over() {
        match obey(&mut view, PATIENCE)? {
            Some(Flow::Quit) => break,
            Some(Flow::Stay) => screen.draw(&view)?,
            None => {}
        }
    }
    Ok(())
}

/// Waits for a key, then does what all keys ask for that have been pressed. `None` when
/// nothing happened.
fn obey(view: &mut View, patience: Duration) -> io::Result<Option<Flow>> {
    let mut patience = patience;
    let mut flow = None;
    while poll(patience)? {
        patience = Duration::ZERO;
        flow = Some(Flow::Stay);
        // A change of size needs no answer: the next drawing finds it.
        let Event::Key(key) = event::read()? else {
            continue;
        };
        if let Some(action) = action(key)
            && view.act(action) == Flow::Quit
        {
            return Ok(Some(Flow::Quit));
        }
    }
    Ok(flow)
}

/// A signal that comes meanwhile is no error: whoever calls looks for it.
fn poll(patience: Duration) -> io::Result<bool> {
    match event::poll(patience) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        polled => polled,
    }
}

fn require_terminal() -> io::Result<()> {
    let ends = [
        (stdout().is_terminal(), "standard output"),
        (stdin().is_terminal(), "standard input"),
    ];
    match ends.iter().find(|(is_terminal, _)| !is_terminal) {
        Some((_, end)) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the view needs a terminal, and {end} is not one"),
        )),
        None => Ok(()),
    }
}

/// The terminal while it is ours; dropping it gives it back.
struct Screen {
    terminal: Terminal<CrosstermBackend<io::Stdout>>,
    /// Set by a signal that asks us to end.
    is_over: Arc<AtomicBool>,
    _quiet: Quiet,
}

impl Screen {
    fn open() -> io::Result<Self> {
        require_terminal()?;
        // From here on what has been changed is undone when `quiet` is dropped.
        let quiet = Quiet::begin();
        let is_over = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGHUP, SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&is_over))?;
        }
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen)?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(Self {
            terminal,
            is_over,
            _quiet: quiet,
        })
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn draw(&mut self, view: &View) -> io::Result<()> {
        self.terminal.draw(|frame| render(view, frame)).map(drop)
    }
}

/// Gives the terminal back, once: a second time would move the cursor over what has been
/// written since. Nothing can be done where it fails: the terminal is gone.
fn restore(is_ours: &AtomicBool) {
    if !is_ours.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
}

type Hook = dyn Fn(&panic::PanicHookInfo<'_>) + Send + Sync;

/// Keeps panics from writing over the screen. One of the thread that draws gives the
/// terminal back before it is reported. One of another thread, such as that of a
/// sensor, which the others survive, is reported when the view has ended.
struct Quiet {
    before: Arc<Hook>,
    is_ours: Arc<AtomicBool>,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Quiet {
    fn begin() -> Self {
        let before: Arc<Hook> = panic::take_hook().into();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let drawer = thread::current().id();
        let is_ours = Arc::new(AtomicBool::new(true));
        let (report, others) = (Arc::clone(&before), Arc::clone(&heard));
        let screen = Arc::clone(&is_ours);
        panic::set_hook(Box::new(move |panic| {
            if thread::current().id() == drawer {
                restore(&screen);
                report(panic);
            } else {
                let mut others = others.lock().unwrap_or_else(PoisonError::into_inner);
                others.push(panic.to_string());
            }
        }));
        Self {
            before,
            is_ours,
            heard,
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        restore(&self.is_ours);
        // A thread that panics may not change hooks, and the process is ending then.
        if !thread::panicking() {
            let before = Arc::clone(&self.before);
            panic::set_hook(Box::new(move |panic| before(panic)));
        }
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        for text in heard.iter() {
            let _ = writeln!(stderr(), "{text}");
        }
    }
}
