//! `sexton generate`: man pages, completions, pages, rules and dashboards, made from the
//! definitions.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context, Result};
use clap::{CommandFactory, ValueEnum};
use clap_complete::Shell;
use sexton_analysis::rules::{RULES, TOO_MANY};
use sexton_export::dashboards;
use sexton_export::rules::{self, Code, Limits};
use sexton_kubernetes::conditions::kind;
use sexton_model::family::Family;
use sexton_report::explain::markdown;

use crate::cli::{Cli, GenerateArgs, Generated};
use crate::exit::Exit;

/// Writes what was asked for into a folder.
pub fn run(args: &GenerateArgs) -> Result<Exit> {
    let folder = &args.folder;
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let written = match args.what {
        Generated::Man => man(folder),
        Generated::Completions => completions(folder),
        Generated::Codes => codes(folder),
        Generated::Facts => facts(folder),
        Generated::Prometheus => prometheus(folder),
        Generated::Grafana => grafana(folder),
        Generated::Kubernetes => kubernetes(folder),
    };
    written.with_context(|| format!("cannot write to {}", folder.display()))?;
    Ok(Exit::NothingFound)
}

/// Prints the completions of one shell.
pub fn completions_of(shell: Shell) -> Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sexton", &mut text);
    io::stdout().write_all(&text)?;
    Ok(Exit::NothingFound)
}

fn man(folder: &Path) -> Result<()> {
    clap_mangen::generate_to(Cli::command(), folder)?;
    Ok(())
}

fn codes(folder: &Path) -> Result<()> {
    for page in super::explain::pages() {
        let mut text = Vec::new();
        markdown(&mut text, &page)?;
        fs::write(folder.join(format!("{}.md", page.code)), text)?;
    }
    Ok(())
}

fn facts(folder: &Path) -> Result<()> {
    let mut page = Vec::new();
    sexton_report::facts::markdown(&mut page)?;
    Ok(fs::write(folder.join("facts.md"), page)?)
}

fn prometheus(folder: &Path) -> Result<()> {
    let codes = RULES.iter().map(|rule| Code {
        code: rule.code,
        title: rule.title,
    });
    let codes: Vec<Code<'_>> = codes.collect();
    let limit = |name: &str| {
        let found = TOO_MANY.thresholds.iter().find(|it| it.name == name);
        let found = found.with_context(|| format!("{} has no threshold {name}", TOO_MANY.code))?;
        anyhow::Ok(found.default)
    };
    let limits = Limits {
        cgroups: limit("most")?,
        per_live: limit("most_per_live")?,
    };
    fs::write(folder.join(rules::RULES_FILE), rules::rules(&codes, limits))?;
    fs::write(folder.join(rules::TESTS_FILE), rules::tests(&codes, limits))?;
    Ok(())
}

/// The conditions, each with the rules of its family.
fn kubernetes(folder: &Path) -> Result<()> {
    let mut page = String::from(
        "<!-- Printed from the definitions of rules by `cargo xtask docs`; change those instead. -->

# Conditions

What the agent tells Kubernetes of its node ([kubernetes.md](kubernetes.md)). True is a problem.

| condition | True means | by rules |
| --- | --- | --- |
",
    );
    for family in Family::ALL {
        let of_family = RULES.iter().filter(|rule| rule.family == *family);
        let codes: Vec<String> = of_family
            .map(|rule| format!("[{0}](codes/{0}.md)", rule.code))
            .collect();
        let (kind, about) = (kind(*family), family.about());
        page.push_str(&format!("| `{kind}` | {about} | {} |\n", codes.join(", ")));
    }
    Ok(fs::write(folder.join("conditions.md"), page)?)
}

fn grafana(folder: &Path) -> Result<()> {
    for (name, dashboard) in dashboards::all() {
        let text = serde_json::to_string_pretty(&dashboard)?;
        fs::write(folder.join(name), text + "\n")?;
    }
    Ok(())
}

fn completions(folder: &Path) -> Result<()> {
    for shell in Shell::value_variants() {
        clap_complete::generate_to(*shell, &mut Cli::command(), "sexton", folder)?;
    }
    Ok(())
}
