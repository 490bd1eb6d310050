//! What the agent serves over HTTP: page and interface of the ring, `/metrics`, `/healthz` and
//! `/readyz`.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sexton_agent::{Shared, Status};
use sexton_analysis::Policy;
use sexton_host::clock;
use sexton_web::{Options, Plain, Rester, Server, Stopper, Tls};

use super::config::Config;
use super::ring;
use super::scrape::Scrape;
use crate::commands::{history, serve};

/// The ring is closed after this time without a question: its index takes memory.
const IDLE: Duration = Duration::from_secs(120);

/// The largest file that may be dropped on the page.
const MAX_UPLOAD: u64 = 64 << 20;

/// A judgement that is older than this is no sign of health: three steps.
const FRESH_NS: u64 = 90_000_000_000;

/// An agent whose loop has not come round for this long is stuck. Nothing that it waits for by
/// itself takes as long, and a sick disk may hold it up for a minute.
const STUCK: Duration = Duration::from_secs(300);

/// Probes of kubelets and load balancers send no token. They are answered in fixed words, which
/// name no path and no finding; `sexton status` has the rest.
const PROBES: &[&str] = &["/healthz", "/readyz"];

/// The server, if there is one.
pub struct Page(Option<Serving>);

struct Serving {
    stopper: Stopper,
    rester: Rester,
    tls: Option<Tls>,
}

impl Page {
    /// Listens where the configuration says, and answers on threads of its own.
    pub fn start(
        config: &Config,
        policy: Policy,
        bundle: &Path,
        shared: &Shared,
        scrape: Scrape,
    ) -> Result<Self> {
        let Some(listen) = config.http else {
            return Ok(Self(None));
        };
        let status = shared.clone();
        let options = Options {
            listen,
            token: token(config)?,
            // Without a token any user of the node could fill the agent's memory.
            max_upload_bytes: config.token_file.as_ref().map_or(0, |_| MAX_UPLOAD),
            version: env!("SEXTON_VERSION"),
            judge: Box::new(move |bundle| {
                history::judge_end(bundle, &policy).map_err(|error| format!("{error:#}"))
            }),
            import: Box::new(serve::import),
            is_lazy: true,
            agent: Some(ring::agent(&config.ring, shared)),
            more: Some(Box::new(move |path, accept| {
                more(path, accept, &status, &scrape)
            })),
            open: PROBES,
        };
        let tls = config.tls.as_ref();
        let tls = tls
            .map(|files| Tls::read(&files.cert, &files.key))
            .transpose()?;
        let mut server = Server::start(options, bundle, "this node")?;
        let scheme = if tls.is_some() { "https://" } else { "" };
        let address = format!("{scheme}{}", server.address());
        shared.change(|status| status.http = Some(address));
        tls.iter().for_each(|tls| server.set_tls(tls.clone()));
        let (stopper, rester) = (server.stopper(), server.rester());
        let ring = config.ring.clone();
        thread::Builder::new()
            .name("listens".into())
            .spawn(move || {
                confine(&ring);
                server.run();
            })
            .context("cannot start a thread that listens")?;
        Ok(Self(Some(Serving {
            stopper,
            rester,
            tls,
        })))
    }

    /// Closes the ring while it is not used.
    pub fn rest(&self) {
        if let Some(serving) = &self.0 {
            serving.rester.rest(IDLE);
        }
    }

    /// Reads certificate and key again; what holds now holds on if that fails.
    pub fn reload(&self) -> Result<()> {
        if let Some(tls) = self.0.as_ref().and_then(|it| it.tls.as_ref()) {
            tls.reload()?;
        }
        Ok(())
    }

    /// Takes no further connection.
    pub fn stop(&self) {
        if let Some(serving) = &self.0 {
            serving.stopper.stop();
        }
    }
}

/// Threads that answer clients read the ring, keep what is dropped on the page in a temporary
/// folder, and do nothing else.
fn confine(ring: &Path) {
    let trouble = match sexton_web::confine(&[ring], &[&std::env::temp_dir()]) {
        Ok(true) => return,
        Ok(false) => "this kernel has no landlock".to_owned(),
        Err(error) => format!("{:#}", anyhow::Error::new(error)),
    };
    let text = format!("threads that answer clients are not held to their files: {trouble}");
    super::log()(super::Level::Warning, &text);
}

fn token(config: &Config) -> Result<Option<String>> {
    let Some(file) = &config.token_file else {
        return Ok(None);
    };
    let token = fs::read_to_string(file);
    let token = token.with_context(|| format!("cannot read {}", file.display()))?;
    let token = token.trim();
    if !sexton_web::is_good_token(token) {
        bail!(
            "{}: a token has 8 to 256 letters, digits or any of -._~",
            file.display()
        );
    }
    Ok(Some(token.to_owned()))
}

/// The answer to a probe.
fn said(outcome: Result<(), &str>) -> Plain {
    let (status, word) = match outcome {
        Ok(()) => (200, "ok"),
        Err(why) => (503, why),
    };
    Plain {
        status,
        kind: "text/plain; charset=utf-8",
        text: format!("{word}\n"),
    }
}

fn more(path: &str, accept: Option<&str>, shared: &Shared, scrape: &Scrape) -> Option<Plain> {
    match path {
        "/metrics" => {
            let (kind, text) = scrape.answer(&shared.get(), accept);
            Some(Plain {
                status: 200,
                kind,
                text,
            })
        }
        "/healthz" => {
            let is_alive = is_alive(&shared.get(), Instant::now());
            Some(said(is_alive.then_some(()).ok_or("stuck")))
        }
        "/readyz" => Some(said(is_ready(&shared.get(), clock::wall_ns()))),
        _ => None,
    }
}

/// Whether the agent's loop comes round. A sick node is no reason to kill the agent: only what
/// a restart of the agent can mend is.
fn is_alive(status: &Status, now: Instant) -> bool {
    let stood = |stepped| now.saturating_duration_since(stepped) >= STUCK;
    !status.stepped.is_some_and(stood)
}

/// Whether the agent does its job: records, and has a verdict that is new. If not, why not, in
/// a few words.
fn is_ready(status: &Status, now_ns: u64) -> Result<(), &'static str> {
    if status.disk_trouble.is_some() {
        return Err("cannot record");
    }
    match status.judged_wall_ns {
        None => Err("not judged yet"),
        Some(judged) if now_ns.saturating_sub(judged) > FRESH_NS => Err("not judged any more"),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_NS: u64 = 1_000 * 1_000_000_000;

    /// A status whose loop came round this long ago, and what the probes say of it.
    fn check(stepped_s: u64, status: Status, is_well: bool, ready: Result<(), &str>) {
        let (began, stepped) = (Instant::now(), Duration::from_secs(stepped_s));
        let status = Status {
            stepped: Some(began),
            ..status
        };
        assert_eq!(is_alive(&status, began + stepped), is_well, "{status:?}");
        assert_eq!(is_ready(&status, NOW_NS), ready, "{status:?}");
    }

    fn judged(seconds_ago: u64) -> Status {
        Status {
            judged_wall_ns: Some(NOW_NS - seconds_ago * 1_000_000_000),
            ..Status::default()
        }
    }

    #[test]
    fn only_a_stuck_loop_is_dead() {
        check(1, judged(10), true, Ok(()));
        check(1, Status::default(), true, Err("not judged yet"));
        check(299, judged(90), true, Ok(()));
        check(1, judged(91), true, Err("not judged any more"));
        check(300, judged(10), false, Ok(()));
        assert!(is_alive(&Status::default(), Instant::now()));
    }

    #[test]
    fn a_sick_disk_is_said_in_fixed_words() {
        let sick = Status {
            disk_trouble: Some("cannot write /var/lib/sexton/boots/x: no space left".into()),
            ..judged(10)
        };
        check(1, sick, true, Err("cannot record"));
    }
}
