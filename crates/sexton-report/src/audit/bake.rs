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
    /// A provisioner of Packer.
    Packer,
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
    /// Leave it on: another unit fails without it.
    Withhold {
        /// The unit.
        unit: String,
        /// Which one.
        why: String,
    },
}

impl BakeStep {
    /// The unit.
    pub fn unit(&self) -> &str {
        match self {
            Self::Mask { unit, .. } | Self::Bound { unit, .. } | Self::Withhold { unit, .. } => {
                unit
            }
        }
    }

    /// Why.
    pub fn why(&self) -> &str {
        match self {
            Self::Mask { why, .. } | Self::Bound { why, .. } | Self::Withhold { why, .. } => why,
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
        BakeFormat::Packer => packer(out, &steps),
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
        BakeStep::Mask { .. } | BakeStep::Withhold { .. } => None,
    };
    steps.iter().filter_map(drop_in).collect()
}

/// Masks a unit by its link, as often as it is run. `systemctl mask` refuses a unit whose file
/// is in `/etc/systemd/system`: that file is kept in `/etc/sexton/replaced`.
const MASK: &str = "mask() { \
    systemctl --no-reload disable \"$1\" >/dev/null 2>&1 || true; \
    [ \"$(readlink \"/etc/systemd/system/$1\")\" != /dev/null ] || return 0; \
    mkdir -p /etc/systemd/system; \
    if [ -e \"/etc/systemd/system/$1\" ] || [ -L \"/etc/systemd/system/$1\" ]; then \
    mkdir -p /etc/sexton/replaced; \
    mv -f \"/etc/systemd/system/$1\" /etc/sexton/replaced/; fi; \
    ln -s /dev/null \"/etc/systemd/system/$1\"; }";

/// The commands, one per line, with which any of the formats does it. They need no systemd
/// that runs, and may be run again: links and files only.
fn commands(steps: &[&BakeStep]) -> Vec<String> {
    let mut commands = Vec::new();
    let masked = masked(steps);
    if !masked.is_empty() {
        commands.push(MASK.to_owned());
        let folder = PRESET.rsplit_once('/').map_or("", |(folder, _)| folder);
        commands.push(format!("mkdir -p {folder}"));
    }
    for unit in masked {
        commands.push(format!(
            "grep -qsxF 'disable {unit}' {PRESET} || echo 'disable {unit}' >> {PRESET}"
        ));
        commands.push(format!("mask '{unit}'"));
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

/// Why, step by step, as comments.
fn reasons(out: &mut dyn Write, steps: &[&BakeStep]) -> io::Result<()> {
    for step in steps {
        let left = match step {
            BakeStep::Withhold { .. } => "left on, ",
            BakeStep::Mask { .. } | BakeStep::Bound { .. } => "",
        };
        writeln!(out, "# {}: {left}{}", step.unit(), comment(step.why()))?;
    }
    Ok(())
}

fn shell(out: &mut dyn Write, steps: &[&BakeStep]) -> io::Result<()> {
    writeln!(
        out,
        "#!/bin/sh\n# Written by sexton image fix. For a Packer shell provisioner, as root.\nset -eu"
    )?;
    reasons(out, steps)?;
    commands(steps)
        .iter()
        .try_for_each(|command| writeln!(out, "{command}"))
}

fn dockerfile(out: &mut dyn Write, steps: &[&BakeStep]) -> io::Result<()> {
    reasons(out, steps)?;
    let commands = commands(steps);
    if commands.is_empty() {
        return Ok(());
    }
    writeln!(out, "RUN set -eu; \\\n    {}", commands.join("; \\\n    "))
}

/// A provisioner to put into a `build` block.
fn packer(out: &mut dyn Write, steps: &[&BakeStep]) -> io::Result<()> {
    writeln!(out, "# Written by sexton image fix.")?;
    reasons(out, steps)?;
    writeln!(
        out,
        "provisioner \"shell\" {{\n  execute_command = \"sudo sh {{{{ .Path }}}}\"\n  inline = [\n    \"set -eu\","
    )?;
    for command in commands(steps) {
        let text = command.replace('\\', "\\\\").replace('"', "\\\"");
        // What begins with these would be a template.
        let text = text.replace("${", "$${").replace("%{", "%%{");
        writeln!(out, "    \"{text}\",")?;
    }
    writeln!(out, "  ]\n}}")
}

fn ansible(out: &mut dyn Write, steps: &[&BakeStep]) -> io::Result<()> {
    writeln!(out, "# Written by sexton image fix.")?;
    let masked = masked(steps);
    if !masked.is_empty() {
        ansible_mask(out, &masked)?;
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

/// The module that masks does it by `systemctl mask`, which refuses what has its file in `/etc`:
/// so the link is made as a link, and the file is kept.
fn ansible_mask(out: &mut dyn Write, masked: &[&str]) -> io::Result<()> {
    let folder = PRESET.rsplit_once('/').map_or("", |(folder, _)| folder);
    writeln!(
        out,
        "- name: Make the folder of presets\n  ansible.builtin.file:\n    path: {folder}\n    state: directory\n    mode: \"0755\""
    )?;
    let mut task = |name: &str, module: &str| -> io::Result<()> {
        writeln!(out, "- name: {name}\n{module}\n  loop:")?;
        masked
            .iter()
            .try_for_each(|unit| writeln!(out, "    - '{unit}'"))
    };
    task(
        "Preset units of no use as disabled",
        &format!(
            "  ansible.builtin.lineinfile:\n    path: {PRESET}\n    line: \"disable {{{{ item }}}}\"\n    create: true\n    mode: \"0644\""
        ),
    )?;
    task(
        "Disable units of no use",
        "  ansible.builtin.command: systemctl --no-reload disable {{ item | quote }}\n  changed_when: false\n  failed_when: false",
    )?;
    task(
        "Keep unit files that the mask replaces",
        "  ansible.builtin.shell: >-\n    if [ \"$(readlink /etc/systemd/system/{{ item | quote }})\" != /dev/null ]; then\n    mkdir -p /etc/sexton/replaced &&\n    mv -f /etc/systemd/system/{{ item | quote }} /etc/sexton/replaced/ &&\n    echo moved; fi\n  args:\n    removes: \"/etc/systemd/system/{{ item }}\"\n  register: kept\n  changed_when: \"'moved' in kept.stdout\"",
    )?;
    task(
        "Mask units of no use",
        "  ansible.builtin.file:\n    src: /dev/null\n    dest: \"/etc/systemd/system/{{ item }}\"\n    state: link\n    follow: false",
    )
}

fn cloud_init(out: &mut dyn Write, steps: &[&BakeStep]) -> io::Result<()> {
    let commands = commands(steps);
    writeln!(out, "#cloud-config\n# Written by sexton image fix.")?;
    if commands.is_empty() {
        // A key without a value is no list, and cloud-init refuses the file.
        return writeln!(out, "bootcmd: []");
    }
    writeln!(out, "bootcmd:\n  - |\n    set -eu")?;
    commands
        .iter()
        .try_for_each(|command| writeln!(out, "    {command}"))
}

fn preset(out: &mut dyn Write, steps: &[&BakeStep]) -> io::Result<()> {
    let masked = masked(steps);
    writeln!(out, "# Written by sexton image fix, for {PRESET}.")?;
    if !masked.is_empty() {
        writeln!(
            out,
            "# It holds from: systemctl preset {}",
            masked.join(" ")
        )?;
    }
    masked
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
    writeln!(out, "%post --erroronfail\nset -eu")?;
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
            BakeFormat::Packer,
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
        assert!(text.contains("\nmask 'ecs.service'\n"), "{text}");
        assert!(text.contains("printf '%s\\n' '[Unit]' 'StartLimitBurst=10' > '/etc/systemd/system/a@.service.d/50-sexton-bound.conf'"), "{text}");
    }
}
