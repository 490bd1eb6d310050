//! Names of cgroups are hostile text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use sexton_host::Host;
use sexton_kernel_tests::nursery::Nursery;
use sexton_kernel_tests::require::{Need, require};
use sexton_model::text::{escape, unescape};
use sexton_sensors::memcg::{CensusOptions, census};

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn any_name_comes_back_as_it_was() {
    require(Need::Root);
    require(Need::Bpf);
    let nursery = Nursery::new("hostile").expect("a cgroup of our own");
    let names: [&[u8]; 6] = [
        b"\x1b[31mred",
        b"not utf-8 \xff\xfe",
        b"back\\slash\\012",
        "right-to-left \u{202e}".as_bytes(),
        "späti 🧟".as_bytes(),
        &[b'n'; 255],
    ];
    for name in names {
        nursery
            .keep(OsStr::from_bytes(name))
            .expect("the kernel takes it");
    }
    let host = Host::live().expect("a mount table");
    let census = census(&host, CensusOptions::default()).expect("a memory controller");
    for name in names {
        let path = [nursery.path.as_bytes(), b"/", name].concat();
        let found = census
            .tree
            .iter()
            .any(|(ix, _)| census.tree.path(ix) == path);
        let shown = escape(&path);
        assert!(found, "{shown}");
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        assert_eq!(unescape(&shown), path);
    }
}
