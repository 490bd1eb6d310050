//! One function has one name, live and recorded, with and without a debug package.

use std::os::unix::fs::MetadataExt;

use sexton_host::Host;
use sexton_host::code::Mapping;
use sexton_host::perf::Spaces;
use sexton_model::moment::Moment;
use sexton_symbols::live::{Programs, Ran};
use sexton_symbols::recorded::{Recorded, Recording};

use crate::made::{Made, Running, by_inode};

/// The name that a running process's address has.
fn live(pid: u32, address: u64) -> Option<String> {
    let host = Host::live().unwrap();
    let mut programs = Programs::default();
    let now = Moment::from_ns(1);
    let ran = Ran {
        pid,
        mm: 1,
        at_ns: now.as_ns(),
    };
    let spaces = Spaces::default();
    let places = programs.places(&host, (ran, &spaces), &[address], now);
    assert_eq!(places.len(), 1);
    places[0].symbol.as_ref().map(ToString::to_string)
}

/// The name that the same place has in a recording.
fn recorded(pid: u32, address: u64) -> Option<String> {
    let host = Host::live().unwrap();
    let mappings = Mapping::read_executable(&host, pid).unwrap();
    let holds = |map: &&Mapping| (map.start..map.end).contains(&address);
    let mapping = mappings.iter().find(holds).unwrap();
    let path = std::str::from_utf8(&mapping.path).unwrap();
    let mut files = Recorded::new(None, None);
    let offset = address - mapping.start + mapping.offset;
    let named = files.function(by_inode(path, mapping.inode), offset);
    assert_eq!(files.take_refused(), []);
    named.map(|named| named.name.to_string())
}

#[test]
fn live_and_recorded_names_are_the_same() {
    let made = Made::new(&[]);
    let running = Running::start(&made.path("program"));
    assert_eq!(running.functions.len(), 3);
    for (address, name) in &running.functions {
        let pid = running.child.id();
        assert_eq!(live(pid, address + 1).as_ref(), Some(name));
        assert_eq!(recorded(pid, address + 1).as_ref(), Some(name));
    }
}

/// libc is stripped everywhere. With or without its debug package, what it exports has its
/// name; this machine may have either.
#[test]
fn libc_has_names_live_and_recorded() {
    let made = Made::new(&[]);
    let running = Running::start(&made.path("program"));
    let pid = running.child.id();
    let host = Host::live().unwrap();
    let mappings = Mapping::read_executable(&host, pid).unwrap();
    let is_libc = |map: &&Mapping| map.path.ends_with(b"/libc.so.6");
    let libc = mappings.iter().find(is_libc).unwrap();
    let path = std::str::from_utf8(&libc.path).unwrap();
    let exported = made.tool("nm", &["-D", "--defined-only", path]);
    let line = exported.lines().find(|line| line.contains(" malloc@"));
    let value = u64::from_str_radix(line.unwrap().split(' ').next().unwrap(), 16).unwrap();
    // libc is linked at zero, and its code is where its offset says.
    let address = libc.start - libc.offset + value;
    for name in [live(pid, address), recorded(pid, address)] {
        let name = name.expect("it is exported");
        assert!(
            ["malloc", "__libc_malloc"].contains(&name.as_str()),
            "{name}"
        );
    }
}

/// Names that a stripped program has by its debug file, found in one of the usual places.
#[track_caller]
fn check_stripped(made: &Made, hidden_is: Option<&str>) {
    let mut files = Recorded::new(Some(made.root().to_owned()), None);
    let id = made.build_id();
    let file = Recording {
        path: "/program",
        build_id: Some(&id),
        is_id_of_mapping: true,
        inode: None,
    };
    let mut name = |symbol: &str| {
        let named = files.function(file, made.offset(symbol) + 2)?;
        assert_eq!(named.start, made.offset(symbol));
        Some(named.name.to_string())
    };
    assert_eq!(name("_ZL6hiddeni").as_deref(), hidden_is);
    // It is exported, so it has a name in any case.
    assert_eq!(
        name("_ZN5outer7visibleEi").as_deref(),
        Some("outer::visible")
    );
}

#[test]
fn a_debug_package_adds_names_and_takes_none() {
    let made = Made::new(&["-rdynamic"]);
    made.strip();
    check_stripped(&made, None);
    made.install_debug_file();
    check_stripped(&made, Some("hidden"));
}

#[test]
fn a_debug_file_that_lacks_a_function_takes_no_name() {
    let made = Made::new(&["-rdynamic"]);
    made.strip();
    let lacking = "--strip-symbol=_ZN5outer7visibleEi";
    made.tool("objcopy", &[lacking, "program.whole", "program.less"]);
    std::fs::rename(made.path("program.whole"), made.path("program.all")).unwrap();
    std::fs::rename(made.path("program.less"), made.path("program.whole")).unwrap();
    made.install_debug_file();
    std::fs::rename(made.path("program.all"), made.path("program.whole")).unwrap();
    check_stripped(&made, Some("hidden"));
}

#[test]
fn a_debug_link_is_followed_if_the_checksum_is_right() {
    let made = Made::new(&["-rdynamic"]);
    made.strip();
    made.tool(
        "objcopy",
        &["--only-keep-debug", "program.whole", "program.debug"],
    );
    // Without build-ids only the checksum can tell.
    for name in ["program", "program.debug"] {
        made.tool("objcopy", &["--remove-section=.note.gnu.build-id", name]);
    }
    made.tool("objcopy", &["--add-gnu-debuglink=program.debug", "program"]);
    let inode = made.path("program").metadata().unwrap().ino();
    let hidden = || {
        let mut files = Recorded::new(Some(made.root().to_owned()), None);
        let named = files.function(by_inode("/program", inode), made.offset("_ZL6hiddeni"));
        named.map(|named| named.name.to_string())
    };
    assert_eq!(hidden().as_deref(), Some("hidden"));
    let debug = made.path("program.debug");
    let mut bytes = std::fs::read(&debug).unwrap();
    bytes.push(0);
    std::fs::write(&debug, bytes).unwrap();
    assert_eq!(hidden(), None);
}

/// The same, live: the file is found as the process would find it.
#[test]
fn a_debug_file_beside_a_running_program_adds_names() {
    let made = Made::new(&["-rdynamic"]);
    made.strip();
    let hidden = |running: &Running| live(running.child.id(), running.functions[0].0);
    let running = Running::start(&made.path("program"));
    assert_eq!(hidden(&running), None);
    drop(running);
    std::fs::create_dir(made.path(".debug")).unwrap();
    made.tool(
        "objcopy",
        &["--only-keep-debug", "program.whole", ".debug/program.debug"],
    );
    made.tool(
        "objcopy",
        &["--add-gnu-debuglink=.debug/program.debug", "program"],
    );
    let running = Running::start(&made.path("program"));
    for (address, name) in &running.functions {
        assert_eq!(live(running.child.id(), address + 1).as_ref(), Some(name));
    }
}

#[test]
fn stubs_are_named_by_what_they_call() {
    for flags in [
        &["-Wl,-z,lazy"][..],
        &["-Wl,-z,now"],
        &["-fcf-protection", "-Wl,-z,now"],
    ] {
        let made = Made::new(flags);
        made.strip();
        let id = made.build_id();
        let file = Recording {
            path: "/program",
            build_id: Some(&id),
            is_id_of_mapping: true,
            inode: None,
        };
        let mut files = Recorded::new(Some(made.root().to_owned()), None);
        let listed = made.tool("objdump", &["-d", "--no-show-raw-insn", "program.whole"]);
        let stubs = listed.lines().filter_map(|line| {
            let (address, name) = line.split_once(" <")?;
            let name = name.strip_suffix("@plt>:")?;
            Some((u64::from_str_radix(address, 16).ok()?, name.to_owned()))
        });
        let stubs: Vec<(u64, String)> = stubs.collect();
        assert!(stubs.iter().any(|(_, name)| name == "usleep"), "{listed}");
        for (address, name) in stubs {
            let named = files
                .function(file, address + 4)
                .expect("a stub has a name");
            assert_eq!(
                (&*named.name, named.start),
                (&*format!("{name}@plt"), address)
            );
        }
    }
}
