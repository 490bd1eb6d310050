//! Plays one scenario on one machine, brings back what it left, and judges it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, ensure};
use sexton_lab::checks::checks;
use sexton_lab::outcome::Outcome;
use sexton_lab::scenario::Scenario;
use sexton_lab::script::{OUT, script};
use sexton_lab::systemd::Systemd;

use super::card::Card;
use super::guest::Guests;
use super::kubernetes;
use super::place::{On, Place};
use crate::{command, rootfs, workspace};

/// Nothing takes longer here; a hang is no reason to wait.
const LIMIT: Duration = Duration::from_secs(900);

/// What every run needs: the binary and the tree it is played in.
pub(super) struct Stage {
    sexton: PathBuf,
    sexton_key: u64,
    rootfs: PathBuf,
    guests: Guests,
}

impl Stage {
    pub(super) fn open() -> Result<Stage> {
        ensure!(
            command::is_root(),
            "only root can boot a systemd in namespaces and make its disk: use sudo"
        );
        let sexton = sexton()?;
        let bytes =
            fs::read(&sexton).with_context(|| format!("cannot read {}", sexton.display()))?;
        let rootfs = rootfs::make()?;
        Ok(Stage {
            sexton_key: fingerprint(&bytes),
            sexton,
            guests: Guests::new(&rootfs),
            rootfs,
        })
    }

    /// For somebody who plays beside us.
    pub(super) fn another(&self) -> Stage {
        Stage {
            sexton: self.sexton.clone(),
            sexton_key: self.sexton_key,
            rootfs: self.rootfs.clone(),
            guests: self.guests.another(),
        }
    }

    /// Has all that a machine is made of, and all that is played with there.
    pub(super) fn prepare(&self, scenario: &Scenario, place: &Place) -> Result<()> {
        self.programs(scenario)?;
        match place.on {
            On::Here => Ok(()),
            On::Guest(cell) => self.guests.prepare(cell),
        }
    }

    /// What a run of this depends on.
    pub(super) fn key(&self, scenario: &Scenario, place: &Place) -> String {
        let tree = self.rootfs.file_name().unwrap_or_default();
        let job = script(scenario, place.pace(scenario));
        let text = [job.as_bytes(), tree.as_encoded_bytes()].concat();
        format!("{:016x}{:016x}", self.sexton_key, fingerprint(&text))
    }

    /// Where what comes of it lies.
    pub(super) fn folder(scenario: &Scenario, place: &Place) -> PathBuf {
        super::folder().join(format!("{}-{}", scenario.name, place.name()))
    }

    /// Plays it. That a check fails is no error; that nothing could be played is.
    pub(super) fn play(&self, scenario: &Scenario, place: &Place) -> Result<Card> {
        let programs = self.programs(scenario)?;
        let folder = Stage::folder(scenario, place);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let (title, start) = (
            format!("lab {} {}", scenario.name, place.name()),
            Instant::now(),
        );
        let mut tell = |line: &str| {
            println!("{title} [{:4.0} s] {line}", start.elapsed().as_secs_f64());
        };
        tell("booting");
        let job = script(scenario, place.pace(scenario));
        let done = match place.on {
            On::Here => self.play_here(&programs, &job, &folder, &mut tell),
            On::Guest(cell) => self.guests.play(cell, &programs, &job, &folder, &mut tell),
        };
        tell("judged");
        let mut card = self.card(scenario, place, done);
        judge(&mut card, scenario, place);
        card.write(&folder)?;
        Ok(card)
    }

    /// What lies with the job.
    fn programs(&self, scenario: &Scenario) -> Result<Vec<PathBuf>> {
        let mut programs = vec![self.sexton.clone()];
        if scenario.kubernetes {
            programs.extend(kubernetes::programs()?);
        }
        Ok(programs)
    }

    /// Plays the script of a night here.
    pub(super) fn play_night(&self, job: &str, folder: &Path) -> Result<()> {
        let programs = [self.sexton.clone()];
        self.play_here(&programs, job, folder, &mut |_| ())
    }

    fn play_here(
        &self,
        programs: &[PathBuf],
        job: &str,
        folder: &Path,
        tell: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let (systemd, done) = Systemd::play(&self.rootfs, programs, job, LIMIT, tell)?;
        for part in [OUT, "console", "progress"] {
            let part = systemd.folder().join(part);
            if part.exists() {
                command::output(Command::new("cp").arg("-a").arg(&part).arg(folder))?;
            }
        }
        done
    }

    fn card(&self, scenario: &Scenario, place: &Place, done: Result<()>) -> Card {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Card {
            scenario: scenario.name.clone(),
            place: place.name(),
            key: self.key(scenario, place),
            release: String::new(),
            at: now.map_or(0, |now| now.as_secs()),
            seconds: None,
            failed: done.err().map(|error| format!("{error:#}")),
            checks: Vec::new(),
        }
    }
}

/// The binary that is played with: one that is there already, a released one for instance, which
/// must be static; else it is built.
pub(super) fn sexton() -> Result<PathBuf> {
    if let Some(sexton) = std::env::var_os("SEXTON") {
        return Ok(PathBuf::from(sexton));
    }
    command::run(&mut workspace::build_static_sexton())?;
    Ok(workspace::static_sexton())
}

/// Holds what a run left against what its scenario says now.
pub(super) fn judge(card: &mut Card, scenario: &Scenario, place: &Place) {
    let played = ("played to its end".to_owned(), card.failed.clone());
    card.checks = vec![played];
    match Outcome::read(&Stage::folder(scenario, place).join(OUT)) {
        Ok(outcome) => {
            let release = &outcome.verdict["node"]["kernel"];
            card.release = release.as_str().unwrap_or_default().to_owned();
            card.seconds = outcome.seconds_to_verdict().ok();
            card.add(checks(scenario, place.machine(), &outcome));
        }
        Err(error) => card
            .checks
            .push(("a judgement".to_owned(), Some(format!("{error:#}")))),
    }
}

/// FNV-1a: enough to see that something changed.
pub(super) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn a_fingerprint_is_that_of_fnv() {
        assert_eq!(fingerprint(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
