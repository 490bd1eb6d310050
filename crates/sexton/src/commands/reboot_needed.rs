//! `sexton reboot-needed`: the sentinel command of kured. Yes only when a fix was carried out in
//! this boot, could not end it, and its source is stopped: else the next boot is like this one.

use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context, Result};
use sexton_host::{Host, machine};
use sexton_remedy::outcome::{self, Outcome};
use sexton_sensors::memcg::{CensusOptions, census};

use crate::exit::Exit;

/// Says whether a reboot is needed. 0 is yes, as kured has it.
pub fn run() -> Result<Exit> {
    let host = Host::live()?;
    let boot_id = machine::boot_id(&host).context("cannot tell which boot this is")?;
    let last = Outcome::read(Path::new(outcome::FILE))?;
    let answer = match of_this_boot(last.as_ref(), &boot_id) {
        Err(why) => Answer::No(why),
        // Counted only when it matters: kured asks every minute.
        Ok(last) => match census(&host, CensusOptions::default()) {
            Ok(now) => still(last, now.counts.dying),
            Err(gap) => Answer::CannotTell(gap.text),
        },
    };
    let (exit, text) = match answer {
        Answer::Yes(why) => (Exit::NothingFound, format!("reboot needed: {why}")),
        Answer::No(why) => (Exit::Found, format!("no reboot needed: {why}")),
        Answer::CannotTell(why) => (Exit::Failed, format!("cannot tell: {why}")),
    };
    writeln!(io::stdout().lock(), "{text}")?;
    Ok(exit)
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Yes(String),
    No(String),
    CannotTell(String),
}

/// The fix of this boot that could not end it, or why there is none.
fn of_this_boot<'a>(last: Option<&'a Outcome>, boot_id: &str) -> Result<&'a Outcome, String> {
    let last = last.filter(|last| last.boot_id == boot_id);
    let last = last.ok_or("no fix was carried out in this boot; `sexton fix` plans one")?;
    if let Some(leaking) = &last.still_leaking {
        return Err(format!("stop the source first: {leaking}"));
    }
    match last.reboot_advised {
        true => Ok(last),
        false => Err("the last fix freed enough".to_owned()),
    }
}

/// Whether what that fix left is still there, and no more came.
fn still(last: &Outcome, now: Option<u64>) -> Answer {
    let (Some(left), Some(now)) = (last.dying, now) else {
        return Answer::CannotTell("dying memory cgroups cannot be counted".to_owned());
    };
    // What comes and goes on any node.
    let churn = 64.max(left / 10);
    if now > left + churn {
        return Answer::No(format!(
            "the source is not stopped: {left} dying memory cgroups after the last fix, {now} now"
        ));
    }
    match now < left / 2 {
        true => Answer::No(format!(
            "the kernel released them: {now} of {left} are left"
        )),
        false => Answer::Yes(format!(
            "{now} dying memory cgroups that no purge could free; their source is stopped"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(dying: u64) -> Outcome {
        Outcome {
            boot_id: "this".into(),
            dying: Some(dying),
            reboot_advised: true,
            ..Outcome::default()
        }
    }

    #[track_caller]
    fn check_no(answer: Answer, said: &str) {
        assert!(
            matches!(&answer, Answer::No(why) if why.contains(said)),
            "{answer:?}"
        );
    }

    #[test]
    fn only_a_fix_of_this_boot_that_failed_counts() {
        let why = |last: Option<&Outcome>| of_this_boot(last, "this").err().unwrap_or_default();
        assert!(why(None).contains("no fix was carried out"));
        let earlier = Outcome {
            boot_id: "other".into(),
            ..left(9)
        };
        assert!(why(Some(&earlier)).contains("no fix was carried out"));
        let leaks = Outcome {
            still_leaking: Some("4 more came".into()),
            ..left(9)
        };
        assert!(why(Some(&leaks)).contains("stop the source first"));
        let freed = Outcome {
            reboot_advised: false,
            ..left(9)
        };
        assert!(why(Some(&freed)).contains("freed enough"));
        assert_eq!(of_this_boot(Some(&left(9)), "this"), Ok(&left(9)));
    }

    #[test]
    fn yes_only_while_they_are_there_and_none_come() {
        let yes = still(&left(60_000), Some(60_023));
        assert!(
            matches!(&yes, Answer::Yes(why) if why.contains("60023")),
            "{yes:?}"
        );
        check_no(still(&left(60_000), Some(67_000)), "not stopped");
        check_no(still(&left(60_000), Some(29_999)), "released");
        let blind = still(&left(60_000), None);
        assert!(matches!(blind, Answer::CannotTell(_)), "{blind:?}");
    }
}
