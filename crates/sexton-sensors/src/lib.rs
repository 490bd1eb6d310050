//! What sexton watches on a node: one file per sensor.
//!
//! A sensor is a [`SensorSpec`] in [`SENSORS`]. `examine` says what it can and
//! cannot see here, `open` makes it ready, `poll` puts records into a sink. What a
//! sensor cannot see is a gap, never a default.

pub mod memcg;
pub mod numa_stat;
pub mod stacks;
pub mod unit_files;
pub mod units;

#[cfg(feature = "test-build")]
mod added;
mod bpf;
mod cgroups;
mod containers;
mod contention;
mod cores;
mod delays;
mod directories;
mod disks;
mod effort;
mod exits;
mod filesystems;
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod journal;
mod klog;
mod limits;
mod lineage;
mod memory;
mod napi;
mod network;
mod nics;
mod node_mounts;
mod prerequisites;
mod pressure;
mod processes;
mod runq;
mod symbols;
mod tasks;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sexton_host::{Host, HostError};
use sexton_model::fact::Fact;
use sexton_model::gap::Gap;
use sexton_model::record::Sink;
use sexton_model::sight::{Clarity, SensorSight, Sight};

pub use prerequisites::prerequisites;

/// Every sensor there is.
pub static SENSORS: &[&SensorSpec] = &[
    &memcg::SPEC,
    &cgroups::SPEC,
    &containers::SPEC,
    &contention::SPEC,
    &cores::SPEC,
    &disks::SPEC,
    &exits::SPEC,
    &filesystems::SPEC,
    &host::SPEC,
    &journal::SPEC,
    &klog::SPEC,
    &limits::SPEC,
    &memory::SPEC,
    &napi::SPEC,
    &network::SPEC,
    &nics::SPEC,
    &pressure::SPEC,
    &processes::SPEC,
    &runq::SPEC,
    &stacks::SPEC,
    &unit_files::SPEC,
    &units::SPEC,
    #[cfg(feature = "test-build")]
    &added::SPEC,
];

/// Sensors that are put to work only when somebody asks for them by name.
pub static ON_REQUEST: &[&SensorSpec] = &[&numa_stat::SPEC];

/// What a sensor is.
pub struct SensorSpec {
    /// Its name.
    pub name: &'static str,
    /// What it watches, in one line.
    pub watches: &'static str,
    /// The facts it tells.
    pub emits: &'static [&'static Fact],
    /// How often it is polled.
    pub every: Duration,
    /// A poll that takes longer is a gap; so is every one after it until it ends. To get
    /// ready has a limit of its own.
    pub deadline: Duration,
    /// Says what it can see here, without changing anything.
    pub examine: fn(&Host) -> Vec<Sight>,
    /// Makes it ready, or says why it cannot run here.
    pub open: fn(&Host) -> Result<Box<dyn Sensor>, Gap>,
}

/// Makes a sensor ready as `open` of its spec does, with what its user has set.
pub type Opener = Arc<dyn Fn(&Host) -> Result<Box<dyn Sensor>, Gap> + Send + Sync>;

/// A sensor that is ready.
pub trait Sensor: Send {
    /// Looks once. What it cannot see goes into the sink as a gap.
    fn poll(&mut self, host: &Host, out: &mut Sink);
}

/// Has BPF programs take the kernel's types from a file (BTF) that was made for it, where the
/// kernel does not describe them.
pub fn take_types_from(file: PathBuf) {
    sexton_bpf::types::take_from(file);
}

/// The file for the running kernel in a folder of such files: `RELEASE.btf`, as collections of
/// them name it, or `vmlinux-RELEASE`.
pub fn types_in_folder(host: &Host, folder: &Path) -> Result<PathBuf, HostError> {
    let release = host.read_text(host.proc("sys/kernel/osrelease")?)?;
    let release = release.trim();
    let names = [
        format!("{release}.btf"),
        format!("vmlinux-{release}"),
        format!("vmlinux-{release}.btf"),
    ];
    let paths = names.map(|name| folder.join(name));
    let is_there = |path: &&PathBuf| host.root().meta(path).is_ok();
    match paths.iter().find(is_there) {
        Some(path) => Ok(path.clone()),
        None => Err(HostError::Read {
            path: folder.join(format!("{release}.btf")),
            source: std::io::ErrorKind::NotFound.into(),
        }),
    }
}

/// What every sensor sees here.
pub fn examine(host: &Host) -> Vec<SensorSight> {
    SENSORS.iter().map(|spec| sight_of(spec, host)).collect()
}

fn sight_of(spec: &SensorSpec, host: &Host) -> SensorSight {
    let sights = (spec.examine)(host);
    let best = sights
        .iter()
        .map(|sight| sight.clarity)
        .max()
        .unwrap_or(Clarity::Blind);
    let worst = sights
        .iter()
        .map(|sight| sight.clarity)
        .min()
        .unwrap_or(Clarity::Blind);
    let clarity = if best == worst { best } else { Clarity::Partly };
    SensorSight {
        sensor: spec.name,
        watches: spec.watches,
        clarity,
        sights,
    }
}

#[cfg(test)]
mod tests {
    use sexton_host::FolderRoot;
    use sexton_testkit::TempTree;

    use super::*;

    #[test]
    fn the_types_of_this_kernel_are_found_in_a_folder() {
        let found = |files: &[&str]| {
            let node = TempTree::node("").file("/proc/sys/kernel/osrelease", "5.4.286-k54\n");
            let add = |node: TempTree, name: &&str| node.file(&format!("/types/{name}"), "");
            let node = files.iter().fold(node, add);
            let root = FolderRoot::open(node.path()).expect("it opens");
            let host = Host::new(Box::new(root)).expect("a mount table");
            types_in_folder(&host, Path::new("/types")).map_err(|error| error.chain())
        };
        let error = found(&["5.4.0-91-generic.btf"]).expect_err("none is of this kernel");
        assert!(error.contains("/types/5.4.286-k54.btf"), "{error}");
        let (old, new) = ("vmlinux-5.4.286-k54", "5.4.286-k54.btf");
        assert_eq!(found(&[old]), Ok(Path::new("/types").join(old)));
        assert_eq!(found(&[old, new]), Ok(Path::new("/types").join(new)));
    }
}
