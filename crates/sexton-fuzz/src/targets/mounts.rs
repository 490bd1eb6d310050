//! The table of mounts, and where a file is by it.

use sexton_host::mounts::MountTable;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "mounts",
    run,
};

fn run(table: &[u8]) {
    let Ok(table) = MountTable::parse(table) else {
        return;
    };
    for fs_type in ["proc", "cgroup2"] {
        table.of_type(fs_type);
    }
    for mount in table.iter() {
        mount.has_option("memory");
        let place = table.locate(mount.device, mount.root.as_os_str().as_encoded_bytes());
        assert!(place.is_some(), "a root that its own mount does not show");
    }
}
