//! Any target of sexton-fuzz, chosen by `SEXTON_FUZZ_TARGET`. One program for all of them,
//! because building one with sanitizers takes minutes.
#![no_main]

use std::panic::{catch_unwind, resume_unwind, set_hook};
use std::sync::{LazyLock, Mutex};

use libfuzzer_sys::fuzz_target;
use sexton_fuzz::{TARGETS, Target};

/// What the last panic said.
static SAID: Mutex<String> = Mutex::new(String::new());

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    // libFuzzer would end the process in every panic, also in those that are caught because
    // a library is not proof against every input. Those that nobody catches still end it.
    set_hook(Box::new(|panic| {
        if let Ok(mut said) = SAID.lock() {
            *said = panic.to_string();
        }
    }));
    let name = std::env::var("SEXTON_FUZZ_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|target| target.name == name);
    found.unwrap_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!(
            "SEXTON_FUZZ_TARGET is {name:?}, not one of {}",
            names.join(", ")
        );
        std::process::exit(2)
    })
});

fuzz_target!(|bytes: &[u8]| {
    if let Err(panic) = catch_unwind(|| (TARGET.run)(bytes)) {
        eprintln!(
            "{}",
            SAID.lock()
                .map_or_else(|_| String::new(), |said| said.clone())
        );
        resume_unwind(panic);
    }
});
