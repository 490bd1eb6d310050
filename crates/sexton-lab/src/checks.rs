//! Holds what sexton said and did against the truth of a scenario.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use sexton_model::glob::matches;

use crate::outcome::{Outcome, ids};
use crate::scenario::{Expect, Fix, Scenario};

/// From the start of `sexton diagnose`, cold, to its answer.
pub const MAX_SECONDS: f64 = 60.0;

/// Findings that accuse nobody: what a core or the kernel went through. An emulator on a
/// busy machine goes through such things by itself.
pub(crate) const SYMPTOMS: [&str; 3] = ["CPU001:", "NET001:", "KRN001:"];

/// Findings that can be what all began with.
pub const CAUSES: [&str; 5] = ["UNIT001:", "UNIT002:", "UNIT004:", "CTR001:", "CPU002:"];

/// One question, and why the answer is not the true one, if so.
#[derive(Debug)]
pub struct Check {
    /// What was asked.
    pub what: &'static str,
    /// What is wrong.
    pub why: Option<String>,
}

/// The machine that a scenario was played on.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// Page cache holds dying cgroups there.
    pub cache_holds: bool,
    /// The kernel refuses BPF to sexton.
    pub refuses_bpf: bool,
    /// Its kernel has other users: what they do is seen and told, and is not the scenario's.
    pub is_shared: bool,
    /// Its cores are those of an emulator, which loses one for seconds while programs start.
    pub is_emulated: bool,
}

impl Machine {
    /// Whether a finding is about others: a device that is not of the lab, or cgroups
    /// outside the one that its systemd has.
    pub(crate) fn is_of_others(self, id: &str) -> bool {
        let is_device = ["NIC001:", "HW001:"].iter().any(|code| {
            let device = id.strip_prefix(code);
            device.is_some_and(|device| !device.starts_with("lab"))
        });
        let is_cgroup = ["MCG00", "TASK003:/", "CPU003:/"]
            .iter()
            .any(|start| id.starts_with(start));
        let is_cgroup = is_cgroup && !id.contains("/sexton-test-");
        self.is_shared && (is_device || is_cgroup)
    }

    /// Whether a finding is of lines in the kernel log, which on a shared kernel holds those of
    /// earlier runs: what they tell of is a note then.
    fn is_in_old_lines(self, id: &str) -> bool {
        self.is_shared
            && ["NIC001:", "HW001:"]
                .iter()
                .any(|code| id.starts_with(code))
    }

    /// What a finding may be called there. Without BPF nothing names dying cgroups: a pile is that
    /// of a directory, or of the node.
    fn pattern(self, wanted: &str) -> &str {
        match self.refuses_bpf && wanted.starts_with("MCG001:") {
            true => "MCG001:*",
            false => wanted,
        }
    }

    /// The gravest chain. What an emulator does to its cores, and what others do to a kernel
    /// that they share, comes first only because it is grave.
    fn gravest(self, outcome: &Outcome) -> Vec<&str> {
        let is_known = |id: &&str| {
            let is_symptom = SYMPTOMS.iter().any(|code| id.starts_with(code));
            (self.is_emulated && is_symptom) || self.is_of_others(id)
        };
        let mut chains = outcome.chains().into_iter();
        let chain = chains.find(|chain| !chain.iter().all(&is_known));
        chain.unwrap_or_default()
    }

    /// The state that follows from that chain: it is a cause that it begins with, or not.
    fn state(self, outcome: &Outcome) -> &str {
        let gravest = self.gravest(outcome);
        let is_cause = |id: &&str| CAUSES.iter().any(|code| id.starts_with(code));
        match (outcome.state(), gravest.first()) {
            ("symptoms-only", Some(first)) if is_cause(first) => "cause-found",
            (state, _) => state,
        }
    }
}

/// All questions about one run.
pub fn checks(scenario: &Scenario, machine: Machine, outcome: &Outcome) -> Vec<Check> {
    let expect = scenario.expected(machine.cache_holds);
    let mut checks = vec![
        check("the trouble happened", succeeded(outcome, "happened")),
        check("state", state(expect, machine, outcome)),
        check("exit code", exit(outcome)),
        check("root", root(expect, machine, outcome)),
        check("chain", chain(expect, machine, outcome)),
        check("nobody else is accused", others(expect, machine, outcome)),
        check("within a minute", in_time(outcome)),
        check("its recording says the same", succeeded(outcome, "replay")),
    ];
    checks.extend(of_fix(&scenario.fix, expect, machine, outcome));
    checks
}

fn check(what: &'static str, done: Result<()>) -> Check {
    Check {
        what,
        why: done.err().map(|error| format!("{error:#}")),
    }
}

fn of_fix(fix: &Fix, expect: &Expect, machine: Machine, outcome: &Outcome) -> Vec<Check> {
    let mut checks = vec![
        check("fix frees what was left", freed(fix, machine, outcome)),
        check("fix touches nobody else", touched(fix, outcome)),
        check("fix leaves the node so", succeeded(outcome, "fixed")),
    ];
    if fix.verify {
        checks.push(check("judged again, it is over", verified(expect, outcome)));
    }
    if !fix.undone.is_empty() {
        checks.push(check("undo succeeds", succeeded(outcome, "undo.code")));
        checks.push(check("undo restores", succeeded(outcome, "undone")));
    }
    checks
}

/// Whether the shell that wrote this code did.
fn succeeded(outcome: &Outcome, name: &str) -> Result<()> {
    let code = outcome.number(name)?;
    let said = outcome.text(&format!("{}.txt", name.trim_end_matches(".code")));
    let said = said.unwrap_or_default();
    ensure!(code == 0, "{name}: exit code {code}; {}", said.trim());
    Ok(())
}

fn state(expect: &Expect, machine: Machine, outcome: &Outcome) -> Result<()> {
    let state = machine.state(outcome);
    ensure!(
        expect.state.iter().any(|wanted| wanted == state),
        "{state:?} instead of {}; found {}",
        expect.state.join(" or "),
        outcome.findings().join(", ")
    );
    Ok(())
}

/// The exit code is what the state says.
fn exit(outcome: &Outcome) -> Result<()> {
    let wanted = match outcome.state() {
        "healthy" => 0,
        "cause-found" | "symptoms-only" => 1,
        "blind" => 3,
        other => bail!("{other:?} is no state"),
    };
    let code = outcome.number("code")?;
    ensure!(
        code == wanted,
        "{code} instead of {wanted}, of {}",
        outcome.state()
    );
    Ok(())
}

fn root(expect: &Expect, machine: Machine, outcome: &Outcome) -> Result<()> {
    let chain = machine.gravest(outcome);
    let root = chain.first().copied().unwrap_or_default();
    let is_cause = machine.state(outcome) == "cause-found";
    match expect.root.as_str() {
        "" => ensure!(!is_cause, "{root} is blamed, and nobody is at fault"),
        wanted => ensure!(
            is_cause && matches(wanted, root),
            "{root:?} instead of {wanted}"
        ),
    }
    Ok(())
}

fn chain(expect: &Expect, machine: Machine, outcome: &Outcome) -> Result<()> {
    let chain = machine.gravest(outcome);
    let mut rest = chain.iter();
    for wanted in &expect.chain {
        let found = rest.any(|id| matches(machine.pattern(wanted), id));
        ensure!(found, "no {wanted} in its place in {}", chain.join(" -> "));
    }
    let roots = outcome.roots();
    for wanted in &expect.roots {
        let found = roots.iter().any(|root| matches(wanted, root));
        ensure!(found, "no chain begins with {wanted}: {}", roots.join(", "));
    }
    Ok(())
}

fn others(expect: &Expect, machine: Machine, outcome: &Outcome) -> Result<()> {
    let known = |id: &&str| {
        let mut patterns = expect.chain.iter().chain(&expect.roots).chain(&expect.also);
        SYMPTOMS.iter().any(|code| id.starts_with(code))
            || machine.is_of_others(id)
            || (machine.is_in_old_lines(id) && outcome.is_note(id))
            || matches(&expect.root, id)
            || patterns.any(|pattern| matches(machine.pattern(pattern), id))
    };
    let findings = outcome.findings();
    let others: Vec<&str> = findings.into_iter().filter(|id| !known(id)).collect();
    ensure!(others.is_empty(), "{}", others.join(", "));
    Ok(())
}

fn in_time(outcome: &Outcome) -> Result<()> {
    let seconds = outcome.seconds_to_verdict()?;
    ensure!(seconds <= MAX_SECONDS, "it took {seconds:.0} s");
    Ok(())
}

fn freed(fix: &Fix, machine: Machine, outcome: &Outcome) -> Result<()> {
    let code = outcome.number("fix.code")?;
    ensure!(
        (0..=1).contains(&code),
        "exit code {code}: {}",
        outcome.text("fix.txt").unwrap_or_default().trim()
    );
    let report = outcome.json("fix.json")?;
    // A plan with nothing in it is not carried out: what was there is what is left.
    let key = match report["applied"].as_bool() {
        Some(true) => "after",
        _ => "before",
    };
    let after = report[key].as_u64();
    // Without BPF there is one count for the node, with what its own boot left.
    let held_by_others = match (machine.is_shared, machine.refuses_bpf) {
        (_, true) => dying_before(outcome)?,
        (true, false) => held_by_others(&report),
        (false, false) => 0,
    };
    let may_stay = fix.left_without_bpf.filter(|_| machine.refuses_bpf);
    let may_stay = may_stay.unwrap_or(fix.left);
    match after {
        Some(after) if after.saturating_sub(held_by_others) <= may_stay => Ok(()),
        Some(after) => bail!("{after} are left, at most {may_stay} may"),
        None => bail!("the report does not say how many are left"),
    }
}

/// Every setting that is another one after the fix is that of a unit it was meant for.
fn touched(fix: &Fix, outcome: &Outcome) -> Result<()> {
    let touched = outcome.text("touched")?;
    let is_meant = |line: &&str| {
        let names = line.split(['/', ' ']);
        let mut units = names.map(|name| name.strip_suffix(".d").unwrap_or(name));
        units.any(|unit| fix.touches.iter().any(|meant| matches(meant, unit)))
    };
    let others: Vec<&str> = touched.lines().filter(|line| !is_meant(line)).collect();
    ensure!(others.is_empty(), "{}", others.join(", "));
    Ok(())
}

/// How many are left because of what a machine in namespaces has from the one around it: a
/// filesystem that others write to all the time, and files of the tree that it cannot reach.
fn held_by_others(report: &Value) -> u64 {
    const WHY: [&str; 2] = ["metadata of the filesystem", "that is not mounted here"];
    let left = report["left"].as_array().into_iter().flatten();
    let is_theirs = |one: &&Value| {
        let why = one["why"].as_str().unwrap_or_default();
        WHY.iter().any(|words| why.contains(words))
    };
    left.filter(is_theirs)
        .filter_map(|one| one["dying"].as_u64())
        .sum()
}

/// How many there were before the trouble began. Without BPF the kernel's count is of all who use it.
fn dying_before(outcome: &Outcome) -> Result<u64> {
    let census = outcome.json("zombies.json")?;
    census["dying"]
        .as_u64()
        .context("nothing was counted before the trouble")
}

fn verified(expect: &Expect, outcome: &Outcome) -> Result<()> {
    let again = outcome.json("verify.json")?;
    let still: Vec<&str> = ids(&again)
        .into_iter()
        .filter(|id| matches(&expect.root, id))
        .collect();
    ensure!(still.is_empty(), "it still says {}", still.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

    const GUEST: Machine = Machine {
        cache_holds: true,
        refuses_bpf: false,
        is_shared: false,
        is_emulated: true,
    };
    const HERE: Machine = Machine {
        cache_holds: true,
        refuses_bpf: false,
        is_shared: true,
        is_emulated: false,
    };

    fn scenario() -> Scenario {
        toml::from_str(
            "title = 'a'\ntruth = ['a']\nsetup = ''\nend = ''\n[expect]\n\
             state = ['cause-found']\nroot = 'UNIT001:a.service'\n\
             chain = ['UNIT001:a.service', 'MCG001:*/a.service']\n\
             [fix]\nargs = '--unit a.service'\ntouches = ['a.service']\n",
        )
        .expect("a scenario")
    }

    /// What is wrong with a run that said this, and whose fix did what it was meant to.
    fn wrong(machine: Machine, state: &str, code: i64, chains: &[&[&str]]) -> Vec<&'static str> {
        let mask = "/etc/systemd/system/a.service /dev/null\na.service\n";
        wrong_after(machine, state, code, chains, mask)
    }

    /// The same, with the settings that the fix changed.
    fn wrong_after(
        machine: Machine,
        state: &str,
        code: i64,
        chains: &[&[&str]],
        touched: &str,
    ) -> Vec<&'static str> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let n = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("sexton-checks-{}-{n}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let findings: Vec<Value> = chains
            .iter()
            .flat_map(|chain| chain.iter().map(|id| json!({ "id": id })))
            .collect();
        let verdict = json!({"verdict": {"state": state, "chains": chains}, "findings": findings});
        for (name, text) in [
            ("verdict.json", verdict.to_string()),
            ("code", code.to_string()),
            ("seconds", "100.0 121.5".to_owned()),
            ("happened", "0".to_owned()),
            ("replay", "0".to_owned()),
            ("fix.code", "0".to_owned()),
            ("fix.json", r#"{"applied": true, "after": 3}"#.to_owned()),
            ("fixed", "0".to_owned()),
            ("zombies.json", r#"{"dying": 2}"#.to_owned()),
            ("touched", touched.to_owned()),
        ] {
            fs::write(folder.join(name), text).expect("written");
        }
        let outcome = Outcome::read(&folder).expect("an outcome");
        let checks = checks(&scenario(), machine, &outcome);
        fs::remove_dir_all(&folder).expect("removed");
        let wrong = checks.into_iter().filter(|check| check.why.is_some());
        wrong.map(|check| check.what).collect()
    }

    #[test]
    fn without_bpf_a_pile_is_asked_for_by_any_name() {
        let blind = Machine {
            refuses_bpf: true,
            ..HERE
        };
        let chains: &[&[&str]] = &[&["UNIT001:a.service", "MCG001:/sexton-test-<n>/x"]];
        assert_eq!(
            wrong(HERE, "cause-found", 1, chains),
            ["chain", "nobody else is accused"]
        );
        assert!(wrong(blind, "cause-found", 1, chains).is_empty());
        let none: &[&[&str]] = &[&["UNIT001:a.service"]];
        assert_eq!(wrong(blind, "cause-found", 1, none), ["chain"]);
    }

    const GOOD: &[&str] = &["UNIT001:a.service", "MCG001:/x/a.service"];

    #[test]
    fn the_truth_passes() {
        assert!(wrong(GUEST, "cause-found", 1, &[GOOD]).is_empty());
    }

    #[test]
    fn every_lie_is_told() {
        let check = |state, code, chains: &[&[&str]], expected: &[&str]| {
            assert_eq!(wrong(GUEST, state, code, chains), expected);
        };
        check("cause-found", 0, &[GOOD], &["exit code"]);
        check("healthy", 0, &[], &["state", "root", "chain"]);
        let other = ["UNIT001:b.service", "MCG001:/x/a.service"];
        check(
            "cause-found",
            1,
            &[&other],
            &["root", "chain", "nobody else is accused"],
        );
        check(
            "cause-found",
            1,
            &[GOOD, &["UNIT002:cron.service"]],
            &["nobody else is accused"],
        );
    }

    #[test]
    fn whom_a_fix_may_not_touch_is_told() {
        let check = |touched: &str, expected: &[&str]| {
            let wrong = wrong_after(GUEST, "cause-found", 1, &[GOOD], touched);
            assert_eq!(wrong, expected, "{touched}");
        };
        check("", &[]);
        check("/etc/systemd/system/a.service.d/50-bound.conf \n", &[]);
        let other = &["fix touches nobody else"];
        check("/etc/systemd/system/b.service /dev/null\n", other);
        check("a.service\naa.service\n", other);
    }

    #[test]
    fn a_core_that_the_emulator_lost_hides_no_root() {
        let chains: &[&[&str]] = &[&["CPU001:1"], GOOD];
        assert!(wrong(GUEST, "symptoms-only", 1, chains).is_empty());
        assert_eq!(
            wrong(HERE, "symptoms-only", 1, chains),
            ["state", "root", "chain"]
        );
    }

    #[test]
    fn what_others_do_to_a_shared_kernel_accuses_nobody() {
        let good: &[&str] = &["UNIT001:a.service", "MCG001:/sexton-test-<n>/a.service"];
        let chains: &[&[&str]] = &[good, &["NIC001:eth7"], &["MCG001:/elsewhere/<n>"]];
        assert!(wrong(HERE, "cause-found", 1, chains).is_empty());
        let own: &[&[&str]] = &[good, &["NIC001:lab0"]];
        assert_eq!(
            wrong(HERE, "cause-found", 1, own),
            ["nobody else is accused"]
        );
        assert_eq!(
            wrong(GUEST, "cause-found", 1, chains),
            ["nobody else is accused"]
        );
    }
}
