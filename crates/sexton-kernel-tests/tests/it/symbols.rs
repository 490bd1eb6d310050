//! Names of functions in recordings of perf, from the program as users run it.

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton;
use sexton_kernel_tests::watching::Watching;

/// Calls a function with parameters, a template, the clock of the vdso and libc.
const SOURCE: &str = r#"
#include <ctime>
#include <cstdlib>
namespace outer {
template <typename T> __attribute__((noinline)) T spin(T n) {
    for (volatile long i = 0; i < 100000; i = i + 1) n += i;
    return n;
}
__attribute__((noinline)) long burn(long n) { long m = spin<long>(n); asm volatile("" : "+r"(m)); return m; }
}
int main() {
    long n = 0;
    for (;;) {
        n = outer::burn(n);
        timespec now;
        for (int i = 0; i < 5000; i++) clock_gettime(CLOCK_MONOTONIC, &now);
        for (int i = 0; i < 2000; i++) free(malloc(64));
    }
}
"#;

/// The program, in a folder of its own that goes with it; killed at the end.
struct Burning {
    folder: tempfile::TempDir,
    child: Child,
}

impl Burning {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("burn.cc"), SOURCE).expect("its source");
        let built = Command::new("g++")
            .args([
                "-O1",
                "-fno-omit-frame-pointer",
                "-fno-optimize-sibling-calls",
            ])
            .args(["-fno-builtin", "-o", "burn", "burn.cc"])
            .current_dir(folder.path())
            .status();
        assert!(built.expect("g++ is there").success(), "it does not build");
        let child = Command::new(folder.path().join("burn")).spawn();
        Self {
            child: child.expect("it starts"),
            folder,
        }
    }

    /// What `sexton profile export` says of a second of it, as perf recorded it.
    fn folded(&self) -> Output {
        let data = self.folder.path().join("perf.data");
        let recorded = Command::new("perf")
            .args(["record", "-g", "-F", "499", "-e", "cpu-clock", "-o"])
            .arg(&data)
            .args(["-p", &self.child.id().to_string(), "--", "sleep", "1"])
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .status();
        assert!(recorded.expect("perf is there").success());
        let program = sexton::binary().expect("it was asked for");
        let output = Command::new(program)
            .args(["profile", "export", "--format", "folded"])
            .arg(&data)
            .output();
        output.expect("it runs")
    }
}

impl Drop for Burning {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn needs() {
    require(Need::Root);
    require(Need::Program("perf"));
    require(Need::Program("g++"));
    require(Need::Sexton);
}

/// Whether a debug file of libc is there, in the folder that names it by build-id.
fn has_debug_file() -> bool {
    let read = |folder: std::path::PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files = read("/usr/lib/debug/.build-id".into()).flat_map(|part| read(part.path()));
    files.any(|file| file.file_name().to_string_lossy().ends_with(".debug"))
}

/// Functions of libc have names, with its debug package too: that one adds names, and once took
/// all of them.
fn check_libc(watching: &Watching, pid: u32) {
    assert!(
        has_debug_file(),
        "install libc6-dbg, or run cargo xtask test kernel"
    );
    let (mut n, mut n_named) = (0, 0);
    for batch in watching.stacks() {
        for sample in batch.samples.iter().filter(|sample| sample.pid == pid) {
            let frames = batch.tables.frames_of(sample.stack);
            for frame in frames.filter_map(|frame| batch.tables.frame(frame)) {
                let module = frame.module.map_or("", |name| batch.tables.name(name));
                if module.contains("libc.so") {
                    n += 1;
                    n_named += usize::from(frame.symbol.is_some());
                }
            }
        }
    }
    assert!(
        n >= 20 && n_named == n,
        "{n_named} of {n} frames of libc have names"
    );
}

#[test]
#[ignore = "needs root, bpf and perf: run cargo xtask test kernel"]
fn live_and_imported_samples_have_the_same_names() {
    needs();
    require(Need::Bpf);
    let burning = Burning::start();
    let mut watching = Watching::open("stacks");
    watching.poll_for(Duration::from_secs(3));
    let pid = burning.child.id();
    let mut live = Vec::new();
    for batch in watching.stacks() {
        for sample in batch.samples.iter().filter(|sample| sample.pid == pid) {
            let frames = batch.tables.frames_of(sample.stack);
            let symbols = frames.filter_map(|frame| batch.tables.frame(frame)?.symbol);
            live.extend(symbols.map(|name| batch.tables.name(name).to_owned()));
        }
    }
    check_libc(&watching, pid);
    let imported = String::from_utf8(burning.folded().stdout).expect("text");
    let imported: Vec<&str> = imported.split([';', ' ', '\n']).collect();
    for name in [
        "outer::burn",
        "outer::spin<long>",
        "main",
        "malloc",
        "__vdso_clock_gettime",
    ] {
        // The innermost function of the vdso is not exported on every kernel; nor is that of
        // libc the one that was called, where its debug package is there.
        let is_it = |found: &str| match name {
            "malloc" => found.contains("malloc") || found.contains("free"),
            "__vdso_clock_gettime" => found.contains("clock_gettime"),
            name => found == name,
        };
        assert!(
            live.iter().any(|found| is_it(found)),
            "{name} live: {live:?}"
        );
        assert!(
            imported.iter().any(|found| is_it(found)),
            "{name} imported: {imported:?}"
        );
    }
}

#[test]
#[ignore = "needs root and perf: run cargo xtask test kernel"]
fn a_program_that_was_replaced_names_nothing_and_that_is_said() {
    needs();
    let burning = Burning::start();
    thread::sleep(Duration::from_millis(200));
    // As a package manager does it: a new file under the old name.
    let program = burning.folder.path().join("burn");
    let new = burning.folder.path().join("burn.new");
    fs::copy("/bin/true", &new).expect("another program");
    fs::rename(&new, &program).expect("it takes its place");
    let output = burning.folded();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(stdout.contains("burn"), "{stdout}");
    assert!(!stdout.contains("outer::"), "{stdout}");
    assert!(stderr.contains("functions have no names"), "{stderr}");
}
