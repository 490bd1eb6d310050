//! Small files of procfs, sysfs and the like.

use std::path::Path;

use sexton_host::cgroup::{CgroupStat, Controller, MemoryHierarchy};
use sexton_host::process::{Place, Status, unit_place};
use sexton_host::tracepoint::Tracefs;
use sexton_host::{capabilities, machine};
use sexton_model::census::Device;
use sexton_sensors::fuzzing;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "proc_files",
    run,
};

fn run(bytes: &[u8]) {
    through_the_host(bytes);
    for part in fuzzing::pressure_file(bytes) {
        assert!((0.0..=1.0).contains(&part));
    }
    fuzzing::proc_stat(bytes);
    fuzzing::process_stat(bytes);
    fuzzing::limit_files(bytes);
    fuzzing::disk_files(bytes);
    fuzzing::memory_files(bytes);
    fuzzing::network_files(bytes);
    crate::shown::assert_plain(&fuzzing::task_stat(bytes));
    if let Some(name) = fuzzing::interrupt_files(bytes) {
        crate::shown::assert_plain(&name);
    }
    crate::shown::assert_plain(&fuzzing::waiting_files(bytes));
    let password = fuzzing::descriptions(bytes).unwrap_or_default();
    assert!(matches!(password.as_str(), "" | "<hidden>"), "{password}");
}

fn through_the_host(bytes: &[u8]) {
    let host = crate::node::saying(bytes);
    let _ = MemoryHierarchy::find(&host);
    let _ = Controller::memory(&host);
    if let Ok(stat) = CgroupStat::read(&host, Path::new("/sys/fs/cgroup")) {
        stat.dying();
    }
    let _ = Status::read(&host, 1);
    if let Ok(places) = Place::read_all(&host, 1) {
        unit_place(&places);
    }
    if let Ok(tracefs) = Tracefs::open(&host) {
        let _ = tracefs.tracepoint(&host, "cgroup/cgroup_mkdir");
    }
    let _ = machine::possible_cpus(&host);
    machine::possible_nodes(&host);
    machine::lockdown(&host);
    machine::block_device_name(&host, Device { major: 8, minor: 0 });
    let _ = capabilities::Capabilities::of_self(&host);
}
