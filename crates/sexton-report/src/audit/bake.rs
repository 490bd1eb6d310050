//! The bake step: what keeps units off in the next image, in the words of what makes it.

use std::io::{self, Write};

/// What writes the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BakeFormat {
    /// A shell script, as Packer runs it.
    Shell,
    /// Lines for a Dockerfile.
    Dockerfile,
    /// Tasks for Ansible.
    Ansible,
    /// `bootcmd` of cloud-init.
    CloudInit,
    /// A preset file of systemd.
    Preset,
    /// A kickstart file.
    Kickstart,
}

/// What to do to a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BakeStep {
    /// Disable it, mask it, preset it as disabled.
    Mask {
        /// The unit.
        unit: String,
        /// Why.
        why: String,
    },
    /// Bound its restarts with a drop-in.
    Bound {
        /// The unit.
        unit: String,
        /// Why.
        why: String,
        /// The drop-in.
        drop_in: String,
    },
}

impl BakeStep {
    /// The unit.
    pub fn unit(&self) -> &str {
        match self {
            Self::Mask { unit, .. } | Self::Bound { unit, .. } => unit,
        }
    }

    /// Why.
    pub fn why(&self) -> &str {
        match self {
            Self::Mask { why, .. } | Self::Bound { why, .. } => why,
        }
    }
}

const PRESET: &str = "/etc/systemd/system-preset/00-sexton.preset";

/// Writes the step. Names of units come from outside: only such names are written as are
/// safe in a shell.
pub fn bake(out: &mut dyn Write, format: BakeFormat, steps: &[BakeStep]) -> io::Result<()> {
    let is_safe = |step: &&BakeStep| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"@._:-\\".contains(&b);
        step.unit().bytes().all(plain) && !step.unit().starts_with('-')
    };
    let steps: Vec<&BakeStep> = steps.iter().filter(is_safe).collect();
    match format {
        BakeFormat::Shell => shell(out, &steps),
        BakeFormat::Dockerfile => dockerfile(out, &steps),
        BakeFormat::Ansible => ansible(out, &steps),
        BakeFormat::CloudInit => cloud_init(out, &steps),
        BakeFormat::Preset => preset(out, &steps),
        BakeFormat::Kickstart => kickstart(out, &steps),
    }
}

fn masked<'a>(steps: &[&'a BakeStep]) -> Vec<&'a str> {
    let is_mask = |step: &&&BakeStep| matches!(step, BakeStep::Mask { .. });
    steps
        .iter()
        .filter(is_mask)
        .map(|step| step.unit())
        .collect()
}

fn bounded<'a>(steps: &[&'a BakeStep]) -> Vec<(&'a str, &'a str)> {
    let drop_in = |step: &&'a BakeStep| match step {
        BakeStep::Bound { unit, drop_in, .. } => Some((unit.as_str(), drop_in.as_str())),
        BakeStep::Mask { .. } => None,
    };
    steps.iter().filter_map(drop_in).collect()
}

/// The commands, one per line, with which any of the formats does it. They need no systemd
/// that runs: links and files only.
fn commands(steps: &[&BakeStep]) -> Vec<String> {
    let mut commands = Vec::new();
    let masked = masked(steps);
    if !masked.is_empty() {
        let quoted: Vec<String> = masked.iter().map(|unit| format!("'{unit}'")).collect();
        let lines: Vec<String> = masked
            .iter()
            .map(|unit| format!("'disable {unit}'"))
            .collect();
        commands.push(format!(
            "mkdir -p {}",
            PRESET.rsplit_once('/').map_or("", |(folder, _)| folder)
        ));
        commands.push(format!("printf '%s\\n' {} >> {PRESET}", lines.join(" ")));
        commands.push(format!(
            "systemctl --no-reload disable {} 2>/dev/null || true",
            quoted.join(" ")
        ));
        commands.push(format!("systemctl mask {}", quoted.join(" ")));
    }
    for (unit, drop_in) in bounded(steps) {
        let folder = format!("/etc/systemd/system/{unit}.d");
        let lines: Vec<String> = drop_in.lines().map(|line| format!("'{line}'")).collect();
        commands.push(format!("mkdir -p '{folder}'"));
        commands.push(format!(
            "printf '%s\\n' {} > '{folder}/50-sexton-bound.conf'",
            lines.join(" ")
        ));
    }
    commands
}

fn shell(out: &mut dyn Write, steps: &[&BakeStep]) -> io::Result<()> {
    writeln!(
        out,
        "#!/bin/sh\n# Written by sexton image fix. For a Packer shell provisioner, as root.\nset -eu"
    )?;
    for step in steps {
        writeln!(out, "# {}: {}", step.unit(), comment(step.why()))?;
    }
    commands(steps)
        .iter()
        .try_for_each(|command| writeln!(out, "{command}"))
}

fn dockerfile(out: &mut dyn Write, steps: &[&BakeStep]) -> io::Result<()> {
    for step in steps {
        writeln!(out, "# {}: {}", step.unit(), comment(step.why()))?;
    }
    let commands = commands(steps);
    if commands.is_empty() {
        return Ok(());
    }
    writeln!(out, "RUN {}", commands.join(" \\\n && "))
}

fn ansible(out: &mut dyn Write, steps: &[&BakeStep]) -> io::Result<()> {
    writeln!(out, "# Written by sexton image fix.")?;
    let masked = masked(steps);
    if !masked.is_empty() {
        writeln!(
            out,
            "- name: Preset units of no use as disabled\n  ansible.builtin.copy:\n    dest: {PRESET}\n    mode: \"0644\"\n    content: |"
        )?;
        masked
            .iter()
            .try_for_each(|unit| writeln!(out, "      disable {unit}"))?;
        writeln!(
            out,
            "- name: Mask units of no use\n  ansible.builtin.systemd:\n    name: \"{{{{ item }}}}\"\n    enabled: false\n    masked: true\n  loop:"
        )?;
        masked
            .iter()
            .try_for_each(|unit| writeln!(out, "    - '{unit}'"))?;
    }
    for (unit, drop_in) in bounded(steps) {
        writeln!(
            out,
            "- name: Make the folder of drop-ins of {unit}\n  ansible.builtin.file:\n    path: '/etc/systemd/system/{unit}.d'\n    state: directory\n    mode: \"0755\""
        )?;
        writeln!(
            out,
            "- name: Bound the restarts of {unit}\n  ansible.builtin.copy:\n    dest: '/etc/systemd/system/{unit}.d/50-sexton-bound.conf'\n    mode: \"0644\"\n    content: |"
        )?;
        drop_in
            .lines()
            .try_for_each(|line| writeln!(out, "      {line}"))?;
    }
    Ok(())
}

fn cloud_init(out: &mut dyn Write, steps: &[&BakeStep]) -> io::Result<()> {
    let commands = commands(steps);
    // A key without a value is no list, and cloud-init refuses the file.
    let none = if commands.is_empty() { " []" } else { "" };
    writeln!(
        out,
        "#cloud-config\n# Written by sexton image fix.\nbootcmd:{none}"
    )?;
    for command in commands {
        // A single-quoted scalar of YAML; a quote in it is written twice.
        writeln!(out, "  - '{}'", command.replace('\'', "''"))?;
    }
    Ok(())
}

fn preset(out: &mut dyn Write, steps: &[&BakeStep]) -> io::Result<()> {
    writeln!(out, "# Written by sexton image fix, for {PRESET}.")?;
    masked(steps)
        .iter()
        .try_for_each(|unit| writeln!(out, "disable {unit}"))
}

fn kickstart(out: &mut dyn Write, steps: &[&BakeStep]) -> io::Result<()> {
    writeln!(out, "# Written by sexton image fix.")?;
    let masked = masked(steps);
    let services: Vec<&str> = masked
        .iter()
        .filter_map(|unit| unit.strip_suffix(".service"))
        .collect();
    if !services.is_empty() {
        writeln!(out, "services --disabled={}", services.join(","))?;
    }
    writeln!(out, "%post")?;
    commands(steps)
        .iter()
        .try_for_each(|command| writeln!(out, "{command}"))?;
    writeln!(out, "%end")
}

/// In one line, so that it stays a comment.
fn comment(text: &str) -> String {
    sexton_model::text::escape(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: BakeFormat) -> String {
        let steps = [
            BakeStep::Mask {
                unit: "ecs.service".into(),
                why: "no\ncluster".into(),
            },
            BakeStep::Mask {
                unit: "x; rm -rf.service".into(),
                why: String::new(),
            },
            BakeStep::Bound {
                unit: "a@.service".into(),
                why: "x".into(),
                drop_in: "[Unit]\nStartLimitBurst=10\n".into(),
            },
        ];
        let mut out = Vec::new();
        bake(&mut out, format, &steps).expect("a vector takes all");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_name_that_is_no_name_is_left_out() {
        for format in [
            BakeFormat::Shell,
            BakeFormat::Dockerfile,
            BakeFormat::Ansible,
            BakeFormat::CloudInit,
            BakeFormat::Preset,
            BakeFormat::Kickstart,
        ] {
            let text = written(format);
            assert!(
                text.contains("ecs.service") || text.contains("--disabled=ecs"),
                "{text}"
            );
            assert!(!text.contains("rm -rf"), "{text}");
            assert!(!text.contains("\ncluster"), "{text}");
        }
    }

    #[test]
    fn the_shell_takes_it() {
        let text = written(BakeFormat::Shell);
        assert!(text.contains("systemctl mask 'ecs.service'\n"), "{text}");
        assert!(text.contains("printf '%s\\n' '[Unit]' 'StartLimitBurst=10' > '/etc/systemd/system/a@.service.d/50-sexton-bound.conf'"), "{text}");
    }
}
