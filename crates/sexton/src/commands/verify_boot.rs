//! `sexton verify-boot`: is what was open before the reboot gone? The agent watches and proves;
//! this asks it.

use std::io::{self, Write};

use anyhow::Result;
use sexton_agent::{BootProof, Status};

use super::status::of_agent;
use crate::cli::Format;
use crate::cli::kubernetes::VerifyBootArgs;
use crate::exit::Exit;

/// Asks the agent and writes what it says.
pub fn run(args: &VerifyBootArgs) -> Result<Exit> {
    let status = of_agent(&args.agent.socket)?;
    let mut out = io::stdout().lock();
    match args.format.format() {
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, &status.boot_proofs)?;
            writeln!(out)?;
        }
        Format::Text => text(&mut out, &status)?,
    }
    Ok(exit(&status))
}

fn exit(status: &Status) -> Exit {
    let proofs = &status.boot_proofs;
    match status.state {
        None => Exit::Blind,
        Some(_) if proofs.iter().all(|proof| proof.is_proved) => Exit::NothingFound,
        Some(_) => Exit::Found,
    }
}

fn text(out: &mut dyn Write, status: &Status) -> io::Result<()> {
    if status.state.is_none() {
        return writeln!(out, "the agent has not judged this boot yet");
    }
    if status.boot_proofs.is_empty() {
        return writeln!(out, "nothing was open before this boot");
    }
    for BootProof {
        id,
        is_proved,
        text,
        ..
    } in &status.boot_proofs
    {
        let word = if *is_proved { "gone" } else { "NOT PROVED" };
        writeln!(out, "{word:10}  {id}: {text}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(is_judged: bool, proved: &[bool], expected: Exit, said: &str) {
        let proofs = proved.iter().map(|is_proved| BootProof {
            id: "UNIT001:ecs.service".into(),
            code: "UNIT001".into(),
            is_proved: *is_proved,
            text: "ecs.service is masked".into(),
        });
        let status = Status {
            state: is_judged.then(|| "healthy".to_owned()),
            boot_proofs: proofs.collect(),
            ..Status::default()
        };
        assert_eq!(exit(&status), expected);
        let mut out = Vec::new();
        text(&mut out, &status).expect("it is written");
        let out = String::from_utf8(out).expect("text");
        assert!(out.contains(said), "{out}");
    }

    #[test]
    fn only_proof_is_success() {
        check(false, &[], Exit::Blind, "not judged");
        check(true, &[], Exit::NothingFound, "nothing was open");
        check(
            true,
            &[true],
            Exit::NothingFound,
            "gone        UNIT001:ecs.service",
        );
        check(true, &[true, false], Exit::Found, "NOT PROVED  UNIT001");
    }
}
