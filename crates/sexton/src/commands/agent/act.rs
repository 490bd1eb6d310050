//! `sexton agent act`: the privileged helper of the agent. systemd starts it for one connection
//! of its socket. It takes the name of a finding, looks for that finding itself, and does what
//! the configuration allows for it.

use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::net::sockopt::socket_peercred;
use sexton_host::{Host, clock, machine};
use sexton_model::census::Census;
use sexton_model::fix::{Act, FixReport, Plan, StepOutcome, StepReport};
use sexton_model::text::unescape;
use sexton_remedy::journal::Journal;
use sexton_remedy::ledger::{self, Ledger, Now};
use sexton_remedy::lock::{self, Lock};
use sexton_remedy::orders::Allowed;
use sexton_remedy::request::{self, Answer, Outcome, Request};
use sexton_remedy::{Aim, Allowance, Consent, Eyes as _, Fix, How, Source, Unit};

use super::config::{Config, USUAL};
use crate::commands::diagnose::Watch;
use crate::commands::fix::{LiveEyes, keep_outcome};
use crate::exit::Exit;
use crate::{policy, signals, signatures};

/// How long another act may take once it has watched; the agent waits longer for the answer.
const OTHER_ACT: Duration = Duration::from_secs(120);

/// Serves the one request of the socket that is standard input.
pub fn run(config: Option<&Path>, user: &str) -> Result<Exit> {
    let stream = io::stdin().as_fd().try_clone_to_owned();
    let stream = UnixStream::from(stream.context("cannot use standard input")?);
    check_peer(&stream, user)?;
    let request = request::take(&stream).context("cannot read the request")?;
    let answer = act(config.unwrap_or(Path::new(USUAL)), &request)
        .unwrap_or_else(|error| Answer::without_act(Outcome::Failed, format!("{error:#}")));
    eprintln!(
        "{} {}:{}: {}",
        answer.outcome.name(),
        request.code.escape_debug(),
        request.origin.escape_debug(),
        answer.text
    );
    request::answer(&stream, &answer).context("cannot answer")?;
    Ok(Exit::NothingFound)
}

/// Only root and the agent's user may ask. The mode of the socket says so too; this holds when
/// that was changed.
fn check_peer(stream: &UnixStream, user: &str) -> Result<()> {
    let peer = socket_peercred(stream).context(
        "standard input is no connected unix socket; sexton-remedy.socket starts this command",
    )?;
    let uid = peer.uid.as_raw();
    let users = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
    let is_allowed = uid == 0 || uid_of(&users, user) == Some(uid);
    ensure!(is_allowed, "user {uid} asked; only root and {user} may ask");
    Ok(())
}

fn uid_of(users: &str, name: &str) -> Option<u32> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    })
}

/// What it says is done as root, so that no other user may have written it.
fn trusted(path: &Path) -> Result<()> {
    let meta = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    let own = rustix::process::geteuid().as_raw();
    if meta.uid() != own && meta.uid() != 0 {
        bail!(
            "{} belongs to user {}; it must belong to root",
            path.display(),
            meta.uid()
        );
    }
    ensure!(
        meta.mode() & 0o022 == 0,
        "{} can be written by others; chmod go-w",
        path.display()
    );
    Ok(())
}

fn act(file: &Path, request: &Request) -> Result<Answer> {
    trusted(file)?;
    let config = Config::read(Some(file))?;
    let orders = &config.remedy.orders;
    let Some(allowed) = orders.of(&request.code, &request.origin) else {
        let text = match orders.enabled {
            true => format!("{} does not allow it", file.display()),
            false => format!("[remedy] is off in {}", file.display()),
        };
        return Ok(Answer::without_act(Outcome::Refused, text));
    };
    // Before the bounds are read: two requests at once would both find room. Another request
    // holds it while it watches, a fix by hand for as long as that takes.
    let _lock = Lock::take_within(Path::new(lock::PATH), config.remedy.watch + OTHER_ACT)?;
    let mut ledger = Ledger::open(Path::new(ledger::FOLDER))?;
    let host = Host::live()?;
    if let Some(why) = ledger.refusal(orders, &allowed, &now(&host)?) {
        return Ok(Answer::without_act(Outcome::Refused, why));
    }
    if let Some(policy) = &config.policy {
        trusted(policy)?;
    }
    for file in signatures::files(&config.signatures)? {
        trusted(&file)?;
        file.parent().map_or(Ok(()), trusted)?;
    }
    // From here on a signal ends nothing in the middle.
    let stop = signals::asked_to_stop()?;
    let unconfirmed = unconfirmed(&config, &allowed, &stop)?;
    if let Some(answer) = stopped(&stop) {
        return Ok(answer);
    }
    if let Some(why) = unconfirmed {
        return Ok(Answer::without_act(Outcome::Unconfirmed, why));
    }
    let mut eyes = LiveEyes { host: &host };
    let census = eyes.census().ok();
    let mut fix = Fix {
        host: &host,
        sources: sources(&allowed)?,
        aim: aim(&allowed, census.as_ref()),
        allowance: Allowance::default(),
        advice: Vec::new(),
        eyes: &mut eyes,
    };
    let plan = fix.plan().map_err(|gap| anyhow::anyhow!("{}", gap.text))?;
    let acts: Vec<String> = allowed.acts().iter().map(|it| it.name().into()).collect();
    if orders.dry_run || plan.is_empty() {
        return Ok(Answer {
            outcome: Outcome::Planned,
            acts,
            text: planned(&plan),
            undo_file: None,
        });
    }
    if let Some(answer) = stopped(&stop) {
        return Ok(answer);
    }
    ledger.note(&allowed, &now(&host)?)?;
    carry_out(&mut fix, &allowed, acts, &stop)
}

/// What was watched until a signal came is no ground to act on.
fn stopped(stop: &AtomicBool) -> Option<Answer> {
    let text = "a signal asked the helper to stop; nothing was changed";
    stop.load(Ordering::Relaxed)
        .then(|| Answer::without_act(Outcome::Refused, text))
}

fn now(host: &Host) -> Result<Now> {
    Ok(Now {
        wall_ns: clock::wall_ns(),
        boot: clock::now(),
        boot_id: machine::boot_id(host)?,
    })
}

/// Does it, and keeps what it came to for `sexton reboot-needed`.
fn carry_out(
    fix: &mut Fix<'_>,
    allowed: &Allowed,
    acts: Vec<String>,
    stop: &AtomicBool,
) -> Result<Answer> {
    let consent = Consent::given_by_orders(allowed);
    let mut journal = Journal::new(&Path::new(ledger::FOLDER).join("undo"));
    let report = fix
        .carry_out(&consent, &mut journal, stop, &mut |_| ())
        .map_err(|gap| anyhow::anyhow!("{}", gap.text))?;
    let kept = keep_outcome(fix, &report, &consent);
    Ok(answer(report, acts, kept.err()))
}

fn answer(report: FixReport, acts: Vec<String>, unkept: Option<anyhow::Error>) -> Answer {
    let has_failed = |step: &StepReport| matches!(step.outcome, StepOutcome::Failed(_));
    let mut text = done(&report);
    if let Some(error) = unkept {
        text.push_str(&format!("; not kept for reboot-needed: {error:#}"));
    }
    Answer {
        outcome: match report.steps.iter().any(has_failed) {
            true => Outcome::Failed,
            false => Outcome::Done,
        },
        acts,
        text,
        undo_file: report.undo_file.map(Into::into),
    }
}

/// Watches the node, and says why the finding does not hold.
fn unconfirmed(
    config: &Config,
    allowed: &Allowed,
    stop: &Arc<AtomicBool>,
) -> Result<Option<String>> {
    let watch = Watch {
        time: config.remedy.watch,
        is_quiet: true,
        stop: Some(Arc::clone(stop)),
        ..Watch::default()
    };
    let policy = policy::rules(config.policy.as_deref(), &config.signatures)?;
    let judged = watch.judge(&policy)?;
    let diagnosis = &judged.diagnosis;
    let holds = diagnosis.findings.iter().any(|finding| {
        finding.code == allowed.code() && &*finding.subject.name == allowed.origin()
    });
    if holds {
        return Ok(None);
    }
    let seconds = config.remedy.watch.as_secs();
    let mut blind = diagnosis.not_judged.iter();
    Ok(Some(match blind.find(|it| it.code == allowed.code()) {
        Some(it) => format!("the helper cannot assess {}: {}", it.code, it.because),
        None => format!(
            "the helper watched for {seconds} s and did not find it; a slow loop needs a longer \
             [remedy] watch"
        ),
    }))
}

/// What is to be stopped.
fn sources(allowed: &Allowed) -> Result<Vec<Source>> {
    let Some(how) = allowed.acts().iter().find_map(|act| How::of(*act)) else {
        return Ok(Vec::new());
    };
    let name = allowed.origin();
    let unit = Unit::look(name)?.with_context(|| format!("there is no unit {name}"))?;
    Ok(vec![Source::Unit(unit, how)])
}

/// What to release: a pattern of cgroups, or every origin that the census assigns to the unit.
fn aim(allowed: &Allowed, census: Option<&Census>) -> Aim {
    if !allowed.acts().contains(&Act::Purge) {
        return Aim::off();
    }
    if allowed.origin().starts_with('/') {
        return Aim::at([unescape(allowed.origin()).as_slice()]);
    }
    let origins = census.map_or(&[][..], |census| &census.origins).iter();
    let of_unit = origins.filter(|it| it.unit.as_deref() == Some(allowed.origin()));
    let patterns: Vec<&[u8]> = of_unit.map(|it| it.pattern.as_slice()).collect();
    match patterns.is_empty() {
        true => Aim::off(),
        false => Aim::at(patterns),
    }
}

fn planned(plan: &Plan) -> String {
    let steps = plan.steps.iter().filter(|step| step.withheld.is_none());
    let steps: Vec<&str> = steps.map(|step| step.title.as_str()).collect();
    match steps.is_empty() {
        true => "nothing is left to do".into(),
        false => format!("dry run, nothing was changed: would {}", steps.join(", ")),
    }
}

fn done(report: &FixReport) -> String {
    let steps = report.steps.iter().map(|step| {
        let why = step
            .outcome
            .why()
            .map_or(String::new(), |why| format!(" ({why})"));
        format!("{}: {}{why}", step.title, step.outcome.name())
    });
    let mut text = steps.collect::<Vec<_>>().join("; ");
    if let (Some(before), Some(after)) = (report.before, report.after)
        && before > 0
    {
        text.push_str(&format!("; dying memory cgroups {before} -> {after}"));
    }
    if let Some(leak) = &report.still_leaking {
        text.push_str(&format!("; {leak}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_user_is_found_among_the_others() {
        let users = "root:x:0:0::/root:/bin/sh\nsextons:x:7:7::/:\nsexton:x:994:994::/:\nbad\n";
        assert_eq!(uid_of(users, "sexton"), Some(994));
        assert_eq!(uid_of(users, "sext"), None);
        assert_eq!(uid_of(users, "bad"), None);
    }

    #[test]
    fn a_configuration_that_others_may_write_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("agent.toml");
        fs::write(&file, "[remedy]\n").expect("a file");
        let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode));
        mode(0o644).expect("chmod");
        trusted(&file).expect("it is ours");
        mode(0o664).expect("chmod");
        let error = trusted(&file).expect_err("refused").to_string();
        assert!(error.contains("chmod go-w"), "{error}");
        assert!(trusted(&folder.path().join("none")).is_err());
    }

    #[test]
    fn what_is_not_allowed_is_refused_without_a_look_at_the_node() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("agent.toml");
        let request = Request {
            code: "UNIT001".into(),
            origin: "other.service".into(),
        };
        for (enabled, expected) in [(false, "is off"), (true, "does not allow it")] {
            let text = format!(
                "[remedy]\nenabled = {enabled}\n[[remedy.allow]]\ncode = \"UNIT001\"\n\
                 origin = \"a.service\"\nact = \"stop\"\n"
            );
            fs::write(&file, text).expect("a file");
            let answer = act(&file, &request).expect("an answer");
            assert_eq!(answer.outcome, Outcome::Refused);
            assert!(answer.text.contains(expected), "{}", answer.text);
        }
    }

    #[test]
    fn a_signal_during_the_watch_keeps_the_helper_from_acting() {
        let stop = AtomicBool::new(false);
        assert_eq!(stopped(&stop), None);
        stop.store(true, Ordering::Relaxed);
        let answer = stopped(&stop).expect("an answer");
        assert_eq!(answer.outcome, Outcome::Refused);
    }

    #[test]
    fn an_act_that_failed_half_way_says_how_to_take_it_back() {
        let step = |title: &str, outcome| StepReport {
            title: title.into(),
            outcome,
            except: None,
            predicted: None,
            before: None,
            after: None,
            took: Duration::ZERO,
        };
        let report = FixReport {
            steps: vec![
                step("stop a.service", StepOutcome::Done),
                step("count", StepOutcome::Failed("the walk was ended".into())),
            ],
            undo_file: Some("/var/lib/x.undo.jsonl".into()),
            ..FixReport::default()
        };
        let unkept = anyhow::anyhow!("no space left on device");
        let answer = answer(report, vec!["mask".into(), "purge".into()], Some(unkept));
        assert_eq!(answer.outcome, Outcome::Failed);
        assert_eq!(answer.acts, ["mask", "purge"]);
        assert!(answer.undo_file.is_some());
        for part in [
            "stop a.service: done",
            "the walk was ended",
            "no space left",
        ] {
            assert!(answer.text.contains(part), "{}", answer.text);
        }
    }
}
