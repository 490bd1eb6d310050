//! `sexton serve`: a recording, or this node while it is recorded, in the browser.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use sexton_agent::{Member, Recorder};
use sexton_analysis::Policy;
use sexton_host::Host;
use sexton_sensors::SENSORS;
use sexton_store::Limits;
use sexton_web::{Imported, Options, ServeError, Server};

use super::{incidents, profile};
use crate::cli::ServeArgs;
use crate::exit::Exit;
use crate::{judge, policy, signals};

/// How often signals are looked for; a recording takes what came meanwhile.
const BEAT: Duration = Duration::from_millis(250);

/// What is older goes from a recording that is only looked at.
const MAX_AGE: Duration = Duration::from_secs(7 * 86_400);

/// Serves until a signal comes.
pub fn run(args: &ServeArgs) -> Result<Exit> {
    let token = token(args)?;
    let mut policy = policy::read(args.policy.as_deref())?.rules;
    policy.judge_with(args.signatures.read()?);
    let stop = signals::asked_to_stop_or_made_to()?;
    match &args.bundle {
        Some(bundle) => {
            let bundle = &incidents::path_of(bundle);
            let name = bundle.file_name().unwrap_or(bundle.as_os_str());
            let name = sexton_model::text::escape(name.as_encoded_bytes());
            let server = start(options(args, token, policy), bundle, &name)?;
            serve(server, || {
                while !stop.load(Ordering::Relaxed) {
                    thread::sleep(BEAT);
                }
                Ok(())
            })?;
        }
        None => record_and_serve(args, options(args, token, policy), &stop)?,
    }
    Ok(Exit::NothingFound)
}

/// Records this node into a folder that is gone afterwards, and shows it meanwhile.
fn record_and_serve(args: &ServeArgs, options: Options, stop: &AtomicBool) -> Result<()> {
    let temporary = tempfile::Builder::new()
        .prefix("sexton-live-")
        .tempdir()
        .context("cannot make a temporary folder")?;
    let folder = temporary.path().join("node.bundle");
    let host = Arc::new(Host::live()?);
    let members: Vec<Member> = SENSORS.iter().map(|spec| Member::new(spec)).collect();
    let limits = Limits::ring(args.max_size, MAX_AGE);
    let mut recorder = Recorder::start(&host, &members, &folder, limits)?;
    let server = start(options, &folder, "this node")?;
    serve(server, || {
        while !stop.load(Ordering::Relaxed) {
            recorder.step(BEAT)?;
        }
        recorder.finish()?;
        Ok(())
    })
}

fn start(options: Options, bundle: &Path, name: &str) -> Result<Server> {
    let listen = options.listen;
    Server::start(options, bundle, name).map_err(|error| match error {
        ServeError::Listen(_, why) => anyhow!(
            "cannot listen on {listen}: {why}; choose another address with --listen, port 0 for \
             any that is free"
        ),
        error => error.into(),
    })
}

/// Answers on a thread of its own until `until` returns.
fn serve(server: Server, until: impl FnOnce() -> Result<()>) -> Result<()> {
    let missing = sexton_web::page_is_missing();
    let missing = missing.map_or(String::new(), |remedy| {
        format!("There is no page: {remedy}.\n")
    });
    let told = format!("Open {}\n{missing}Ctrl-C ends it.\n", server.url());
    // At once, and whether or not anybody reads it to the end: whoever started this may
    // have wanted the address only.
    let mut out = io::stdout().lock();
    let _ = out.write_all(told.as_bytes()).and_then(|()| out.flush());
    drop(out);
    let stopper = server.stopper();
    let answers = thread::Builder::new()
        .name("listens".into())
        .spawn(move || server.run())
        .context("cannot start a thread that listens")?;
    let done = until();
    stopper.stop();
    let _ = answers.join();
    done
}

fn options(args: &ServeArgs, token: Option<String>, policy: Policy) -> Options {
    Options {
        listen: args.listen,
        token,
        max_upload_bytes: args.max_upload,
        version: env!("SEXTON_VERSION"),
        judge: Box::new(move |bundle| {
            judge::bundle(bundle, &policy).map_err(|error| format!("{error:#}"))
        }),
        import: Box::new(import),
        is_lazy: false,
        agent: None,
        more: None,
        open: &[],
    }
}

pub(super) fn import(file: &Path, bundle: &Path) -> Result<Imported, String> {
    let imported = profile::import(file, bundle).map_err(|error| format!("{error:#}"))?;
    Ok(Imported {
        has_times: imported.has_times,
        notes: imported.notes,
    })
}

/// The token that was given, or a new one where one is needed.
fn token(args: &ServeArgs) -> Result<Option<String>> {
    let given = args.token.clone();
    let given = given.or_else(|| std::env::var("SEXTON_TOKEN").ok());
    match given.filter(|token| !token.is_empty()) {
        Some(token) if sexton_web::is_good_token(&token) => Ok(Some(token)),
        Some(_) => bail!("a token has 8 to 256 letters, digits or any of -._~"),
        None if args.listen.ip().is_loopback() => Ok(None),
        None => {
            let token = sexton_web::new_token().context("cannot make a token")?;
            Ok(Some(token))
        }
    }
}
