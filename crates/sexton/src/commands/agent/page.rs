//! What the agent serves over HTTP: page and interface of the ring, `/metrics`, `/healthz` and
//! `/readyz`.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

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

fn more(path: &str, accept: Option<&str>, shared: &Shared, scrape: &Scrape) -> Option<Plain> {
    let plain = |status: u16, text: String| Plain {
        status,
        kind: "text/plain; charset=utf-8",
        text,
    };
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
            let status = shared.get();
            Some(match trouble(&status, clock::wall_ns()) {
                None => plain(200, "ok\n".into()),
                Some(why) => plain(503, format!("{why}\n")),
            })
        }
        "/readyz" => Some(match shared.get().state {
            Some(_) => plain(200, "ok\n".into()),
            None => plain(503, "not judged yet\n".into()),
        }),
        _ => None,
    }
}

/// What keeps the agent from its job.
fn trouble(status: &Status, now_ns: u64) -> Option<String> {
    if let Some(why) = &status.disk_trouble {
        return Some(format!("cannot record: {why}"));
    }
    let since = status.judged_wall_ns.unwrap_or(status.started_wall_ns);
    (now_ns.saturating_sub(since) > FRESH_NS).then(|| "the node is not judged any more".into())
}
