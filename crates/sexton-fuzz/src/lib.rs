//! Every parser of bytes from outside, one file each in `targets/`.
//!
//! `cargo xtask fuzz` runs a [`Target`] under libFuzzer (`fuzz/`), and a plain test replays
//! what it found (`fuzz/corpus/`). A target takes any bytes and returns; a panic, an endless
//! loop or too much memory is a fault. How to add one: `docs/adding-a-fuzz-target.md`.

mod file;
mod node;
mod profile;
mod shown;
mod targets {
    pub(crate) mod btrfs;
    pub(crate) mod bundle_json;
    pub(crate) mod cgroup_path;
    pub(crate) mod container_api;
    pub(crate) mod container_messages;
    pub(crate) mod dbus;
    pub(crate) mod elf;
    pub(crate) mod ethtool;
    pub(crate) mod folded;
    pub(crate) mod image;
    pub(crate) mod journal;
    pub(crate) mod klog;
    pub(crate) mod lvm;
    pub(crate) mod mounts;
    pub(crate) mod oci_manifest;
    pub(crate) mod otlp;
    pub(crate) mod packed;
    pub(crate) mod partition_table;
    pub(crate) mod perf_data;
    pub(crate) mod perf_script;
    pub(crate) mod pprof;
    pub(crate) mod preset;
    pub(crate) mod proc_files;
    pub(crate) mod runtime_state;
    pub(crate) mod segment;
    pub(crate) mod tar_layer;
    pub(crate) mod unit_file;
    pub(crate) mod virtual_disk;
    pub(crate) mod wal;
    pub(crate) mod xfs;
}

use targets::{
    btrfs, bundle_json, cgroup_path, container_api, container_messages, dbus, elf, ethtool, folded,
    image, journal, klog, lvm, mounts, oci_manifest, otlp, packed, partition_table, perf_data,
    perf_script, pprof, preset, proc_files, runtime_state, segment, tar_layer, unit_file,
    virtual_disk, wal, xfs,
};

/// One parser.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name; also that of its file and of its corpus.
    pub name: &'static str,
    /// Takes any bytes.
    pub run: fn(&[u8]),
}

/// Every target there is.
pub static TARGETS: &[Target] = &[
    btrfs::TARGET,
    bundle_json::TARGET,
    cgroup_path::TARGET,
    container_api::TARGET,
    container_messages::TARGET,
    dbus::TARGET,
    elf::TARGET,
    ethtool::TARGET,
    folded::TARGET,
    image::TARGET,
    journal::TARGET,
    klog::TARGET,
    lvm::TARGET,
    mounts::TARGET,
    oci_manifest::TARGET,
    otlp::TARGET,
    packed::TARGET,
    partition_table::TARGET,
    perf_data::TARGET,
    perf_script::TARGET,
    pprof::TARGET,
    preset::TARGET,
    proc_files::TARGET,
    runtime_state::TARGET,
    segment::TARGET,
    tar_layer::TARGET,
    unit_file::TARGET,
    virtual_disk::TARGET,
    wal::TARGET,
    xfs::TARGET,
];
