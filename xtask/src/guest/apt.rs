//! An apt of our own: its own sources, lists and cache, and no package installed. It can
//! fetch packages of any suite without the machine's apt knowing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};

use super::mirror::Mirror;
use crate::command;

/// Suites of the main archive, and those of the security archive.
const SUITES: &[&str] = &[
    "bullseye",
    "bookworm",
    "bookworm-updates",
    BACKPORTS,
    UNSTABLE,
];
const SECURITY_SUITES: &[&str] = &["bullseye-security", "bookworm-security"];

/// Preferred where it has a package: it carries the newer kernel and the newer emulator.
const BACKPORTS: &str = "bookworm-backports";

/// Used only for what no other suite has: the newest kernel.
const UNSTABLE: &str = "sid";

/// Lists younger than this are good enough.
const LISTS_KEEP: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) struct Apt {
    dir: PathBuf,
    /// Why the lists may be old or absent, for the error that follows from it.
    update_error: Option<String>,
}

/// A package that can be fetched.
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
}

impl Package {
    /// A directory name that holds no character with a meaning in search paths.
    pub(super) fn key(&self) -> String {
        format!("{}_{}", self.name, self.version.replace(':', "%3a"))
    }
}

impl Apt {
    pub(super) fn open(dir: &Path) -> Result<Apt> {
        for part in ["lists/partial", "cache/archives/partial"] {
            let part = dir.join(part);
            fs::create_dir_all(&part)
                .with_context(|| format!("cannot create {}", part.display()))?;
        }
        let write = |name: &str, text: &str| {
            fs::write(dir.join(name), text)
                .with_context(|| format!("cannot write {}", dir.join(name).display()))
        };
        write("status", "")?;
        let sources = sources(&Mirror::of_this_machine()?);
        write("sources.list", &sources)?;
        write("preferences", &preferences())?;
        write("apt.conf", &config(dir))?;
        let mut apt = Apt {
            dir: dir.to_owned(),
            update_error: None,
        };
        apt.update(&sources)?;
        Ok(apt)
    }

    /// A failing update is not yet an error: one suite may be gone, or all we want cached.
    fn update(&mut self, sources: &str) -> Result<()> {
        // The stamp holds the sources that the lists were read from.
        let stamp = self.dir.join("updated");
        let age = stamp
            .metadata()
            .and_then(|stamp| stamp.modified())
            .ok()
            .and_then(|at| at.elapsed().ok());
        let is_same = fs::read_to_string(&stamp).is_ok_and(|read| read == sources);
        if is_same && age.is_some_and(|age| age < LISTS_KEEP) {
            return Ok(());
        }
        eprintln!("guest: reading the package lists of {}", SUITES.join(", "));
        match command::output(self.apt("apt-get").args(["update", "--error-on=any"])) {
            Ok(_) => fs::write(&stamp, sources)
                .with_context(|| format!("cannot write {}", stamp.display()))?,
            Err(error) => self.update_error = Some(gist(&format!("{error:#}"))),
        }
        Ok(())
    }

    fn apt(&self, tool: &str) -> Command {
        let mut command = Command::new(tool);
        // With -c our settings are read after the machine's own, and so win.
        command
            .arg("-c")
            .arg(self.dir.join("apt.conf"))
            .env("LC_ALL", "C")
            .env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    /// All package names that start like this.
    pub(super) fn names(&self, start: &str) -> Result<Vec<String>> {
        let names = command::output(self.apt("apt-cache").args(["pkgnames", start]))?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// The package of that name that apt would install.
    pub(super) fn candidate(&self, name: &str) -> Result<Package> {
        let policy = command::output(self.apt("apt-cache").args(["policy", name]))?;
        let candidate = policy
            .lines()
            .find_map(|line| line.trim().strip_prefix("Candidate: "));
        match candidate.filter(|version| *version != "(none)") {
            Some(version) => Ok(Package {
                name: name.to_owned(),
                version: version.to_owned(),
            }),
            None => Err(self.explain(anyhow!("apt finds no package {name}"))),
        }
    }

    /// Adds why the lists are incomplete, if they are.
    pub(super) fn explain(&self, error: anyhow::Error) -> anyhow::Error {
        match &self.update_error {
            Some(why) => anyhow!("{error:#}; the package lists could not be updated: {why}"),
            None => error,
        }
    }

    /// Unpacks one package below `root`.
    pub(super) fn unpack(&self, package: &Package, root: &Path) -> Result<()> {
        self.fetch(package, root, &["download"])
    }

    /// Unpacks a package and all it depends on below `root`.
    pub(super) fn unpack_with_dependencies(&self, package: &Package, root: &Path) -> Result<()> {
        self.fetch(package, root, &["install", "--yes", "--download-only"])
    }

    fn fetch(&self, package: &Package, root: &Path, how: &[&str]) -> Result<()> {
        eprintln!("guest: fetching {} {}", package.name, package.version);
        let debs = self.dir.join("debs");
        recreate(&debs.join("partial"))?;
        let archives = format!("Dir::Cache::archives={}", debs.display());
        let wanted = format!("{}={}", package.name, package.version);
        let mut apt = self.apt("apt-get");
        command::output(
            apt.args(how)
                .args(["-o", &archives, &wanted])
                .current_dir(&debs),
        )
        .map_err(|error| self.explain(error))?;
        for entry in
            fs::read_dir(&debs).with_context(|| format!("cannot list {}", debs.display()))?
        {
            let deb = entry
                .with_context(|| format!("cannot list {}", debs.display()))?
                .path();
            if deb.extension().is_some_and(|extension| extension == "deb") {
                command::output(
                    Command::new("dpkg-deb")
                        .arg("--extract")
                        .arg(&deb)
                        .arg(root),
                )?;
            }
        }
        fs::remove_dir_all(&debs).with_context(|| format!("cannot remove {}", debs.display()))
    }
}

/// The first line of apt's own words; the rest repeats it for every suite.
fn gist(error: &str) -> String {
    let said = error
        .lines()
        .find_map(|line| line.split_once("E: ").map(|(_, said)| said.trim()));
    said.unwrap_or(error).to_owned()
}

/// Makes an empty directory, whatever was there.
pub(super) fn recreate(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))
}

fn sources(mirror: &Mirror) -> String {
    let main = SUITES.iter().map(|suite| mirror.main.line(suite));
    let security = SECURITY_SUITES
        .iter()
        .filter_map(|suite| Some(mirror.security.as_ref()?.line(suite)));
    main.chain(security).collect()
}

fn preferences() -> String {
    [(BACKPORTS, 990), (UNSTABLE, 100)]
        .map(|(suite, priority)| {
            format!("Package: *\nPin: release n={suite}\nPin-Priority: {priority}\n")
        })
        .join("\n")
}

/// The machine's proxy settings stay in force; its hooks, pins and sources do not.
fn config(dir: &Path) -> String {
    format!(
        r##"#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
#clear Acquire::IndexTargets::deb::DEP-11;
Dir::State "{dir}";
Dir::State::lists "{dir}/lists";
Dir::State::status "{dir}/status";
Dir::Cache "{dir}/cache";
Dir::Cache::archives "{dir}/cache/archives";
Dir::Etc::sourcelist "{dir}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "{dir}/preferences";
Dir::Etc::preferencesparts "/dev/null";
Dir::Log "{dir}";
APT::Architecture "amd64";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::http::Timeout "15";
Acquire::Retries "2";
"##,
        dir = dir.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gist_is_what_apt_said_first() {
        let error =
            "apt-get ended with exit status: 100: E: Failed to fetch a\nE: Failed to fetch b";
        assert_eq!(gist(error), "Failed to fetch a");
        assert_eq!(gist("cannot start apt-get"), "cannot start apt-get");
    }

    #[test]
    fn a_key_can_stand_in_a_search_path() {
        let package = Package {
            name: "qemu".into(),
            version: "1:10.0.2+ds-2".into(),
        };
        assert_eq!(package.key(), "qemu_1%3a10.0.2+ds-2");
    }
}
