//! `fleet serve`: the fleet in the browser.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use sexton_web::{Asked, Site, SiteOptions, Tls};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

use super::{LakeArgs, TimeArgs};
use crate::page::{Links, Page};

/// How often signals are looked for.
const BEAT: Duration = Duration::from_millis(250);

/// The exit code where it is made to end.
const FAILED: i32 = 2;

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8643")]
    listen: SocketAddr,
    /// Access token for clients; off loopback one is made if none is given
    #[arg(long, env = "SEXTON_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Certificate chain (PEM): speak TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Address of the page that a node's agent serves, for links: http://{node}:8642/
    #[arg(long, value_name = "FORM", value_parser = Links::parse)]
    node_page: Option<Links>,
    /// Minutes after which the bucket is read again; 0 reads it once
    #[arg(long, value_name = "MINUTES", default_value_t = 5)]
    every: u64,
    #[command(flatten)]
    lake: LakeArgs,
    #[command(flatten)]
    time: TimeArgs,
}

pub(super) fn run(args: &ServeArgs, out: &mut dyn Write) -> Result<u8> {
    let token = token(args)?;
    let bucket = args.lake.bucket()?;
    let page = Page::open(
        bucket,
        args.time.since,
        args.time.now_us(),
        args.node_page.clone(),
    )?;
    let page = Arc::new(page);
    let answers = Arc::clone(&page);
    let mut site = Site::start(SiteOptions {
        listen: args.listen,
        token,
        folder: "/fleet",
        answer: Box::new(move |asked: &Asked<'_>| answers.answer(asked)),
    })?;
    if let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) {
        site.set_tls(Tls::read(cert, key)?);
    }
    let url = match args.tls_cert {
        Some(_) => site.url().replacen("http://", "https://", 1),
        None => site.url(),
    };
    let missing = sexton_web::page_is_missing();
    let missing = missing.map_or(String::new(), |remedy| {
        format!("There is no page: {remedy}.\n")
    });
    // At once: a program that starts this may wait for the address alone.
    write!(out, "Open {url}\n{missing}Ctrl-C ends it.\n")?;
    out.flush()?;
    let (stop, stopped) = channel();
    let stopper = site.stopper();
    stop_on_signals(stop.clone())?;
    let answers = thread::Builder::new()
        .name("listens".into())
        .spawn(move || {
            site.run();
            // Also where the server ends by itself.
            let _ = stop.send(());
        })
        .context("cannot start a thread that listens")?;
    if args.every > 0 {
        read_again(&page, args);
    }
    let _ = stopped.recv();
    stopper.stop();
    let _ = answers.join();
    Ok(0)
}

/// Reads the bucket from time to time, on a thread that nothing waits for: a bucket may be slow.
fn read_again(page: &Arc<Page>, args: &ServeArgs) {
    let (page, time) = (Arc::clone(page), args.time.clone());
    let every = Duration::from_secs(args.every.saturating_mul(60));
    thread::spawn(move || {
        loop {
            thread::sleep(every);
            page.read_again(time.now_us());
        }
    });
}

/// Sends once the process is asked to end; asked again, it ends at once.
fn stop_on_signals(stop: Sender<()>) -> Result<()> {
    let is_asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        register_conditional_shutdown(signal, FAILED, Arc::clone(&is_asked))
            .and_then(|_| register(signal, Arc::clone(&is_asked)))
            .context("cannot listen for signals")?;
    }
    thread::spawn(move || {
        while !is_asked.load(Ordering::Relaxed) {
            thread::sleep(BEAT);
        }
        let _ = stop.send(());
    });
    Ok(())
}

/// The token that was given, or a new one where one is needed.
fn token(args: &ServeArgs) -> Result<Option<String>> {
    match args.token.clone().filter(|token| !token.is_empty()) {
        Some(token) if sexton_web::is_good_token(&token) => Ok(Some(token)),
        Some(_) => bail!("a token has 8 to 256 letters, digits or any of -._~"),
        None if args.listen.ip().is_loopback() => Ok(None),
        None => Ok(Some(
            sexton_web::new_token().context("cannot make a token")?,
        )),
    }
}
