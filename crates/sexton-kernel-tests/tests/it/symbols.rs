//! Names of functions in recordings of perf, from the program as users run it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
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

/// Loads a BPF program of a known name, and has the kernel run it for two seconds.
const BPF_SOURCE: &str = r#"
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define OP(op, reg, to, n) {(__u8)(op), reg, 0, to, n}
int main(void) {
    struct bpf_insn code[] = {
        OP(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0), OP(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 20000),
        OP(BPF_ALU64 | BPF_SUB | BPF_K, 1, 0, 1), OP(BPF_JMP | BPF_JNE | BPF_K, 1, -2, 0),
        OP(BPF_JMP | BPF_EXIT, 0, 0, 0),
    };
    union bpf_attr load, run;
    memset(&load, 0, sizeof load);
    load.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
    load.insns = (unsigned long)code;
    load.insn_cnt = sizeof code / sizeof *code;
    load.license = (unsigned long)"GPL";
    strcpy(load.prog_name, "spins_here");
    int program = syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof load);
    if (program < 0) return 1;
    char packet[64] = {0};
    for (time_t end = time(0) + 2; time(0) < end;) {
        memset(&run, 0, sizeof run);
        run.test.prog_fd = program;
        run.test.data_in = (unsigned long)packet;
        run.test.data_size_in = sizeof packet;
        run.test.repeat = 1000;
        if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &run, sizeof run)) return 2;
    }
    return 0;
}
"#;

/// The program, in a folder of its own that goes with it; killed at the end.
struct Burning {
    folder: tempfile::TempDir,
    child: Child,
}

/// Builds a program in a folder.
fn build(folder: &Path, name: &str, source: &str) {
    let file = format!("{name}.cc");
    fs::write(folder.join(&file), source).expect("its source");
    let built = Command::new("g++")
        .args([
            "-O1",
            "-fno-omit-frame-pointer",
            "-fno-optimize-sibling-calls",
        ])
        .args(["-fno-builtin", "-o", name, &file])
        .current_dir(folder)
        .status();
    assert!(built.expect("g++ is there").success(), "it does not build");
}

impl Burning {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        build(folder.path(), "burn", SOURCE);
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
        exported(&data)
    }
}

/// What `sexton profile export` says of a recording.
fn exported(data: &Path) -> Output {
    let program = sexton::binary().expect("it was asked for");
    let output = Command::new(program)
        .args(["profile", "export", "--format", "folded"])
        .arg(data)
        .output();
    output.expect("it runs")
}

/// The functions of one module and how many samples were in them, as `sexton profile top` says.
fn functions_of(recording: &Path, module: &str) -> BTreeMap<String, u64> {
    let program = sexton::binary().expect("it was asked for");
    let output = Command::new(program)
        .args(["profile", "top", "--json", "-n", "10000"])
        .arg(recording)
        .output();
    let output = output.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let top: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let all = top["functions"].as_array().expect("a list").iter();
    let of_module = all.filter(|f| f["module"].as_str().is_some_and(|m| m.contains(module)));
    let counted = of_module.map(|f| {
        let name = f["function"].as_str().expect("a name").to_owned();
        (name, f["self_samples"].as_u64().expect("a number"))
    });
    counted.collect()
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

/// The names of live frames in a module, an empty one where there is none.
fn live_names(watching: &Watching, pid: u32, part: &str) -> Vec<String> {
    let mut names = Vec::new();
    for batch in watching.stacks() {
        for sample in batch.samples.iter().filter(|sample| sample.pid == pid) {
            let frames = batch.tables.frames_of(sample.stack);
            for frame in frames.filter_map(|frame| batch.tables.frame(frame)) {
                let module = frame.module.map_or("", |name| batch.tables.name(name));
                if module.contains(part) {
                    let symbol = frame.symbol.map_or("", |name| batch.tables.name(name));
                    names.push(symbol.to_owned());
                }
            }
        }
    }
    names
}

/// Functions of libc have names, with its debug package too: that one adds names, and once took
/// all of them. So have those of the vdso, which is no file.
fn check_libraries(watching: &Watching, pid: u32) {
    assert!(
        has_debug_file(),
        "install libc6-dbg, or run cargo xtask test kernel"
    );
    for (module, function) in [("libc.so", ""), ("[vdso]", "clock_gettime")] {
        let names = live_names(watching, pid, module);
        let is_right = |name: &String| !name.is_empty() && name.contains(function);
        assert!(
            names.len() >= 10 && names.iter().all(is_right),
            "{module}: {names:?}"
        );
    }
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
    check_libraries(&watching, pid);
    let imported = String::from_utf8(burning.folded().stdout).expect("text");
    let of_vdso = functions_of(&burning.folder.path().join("perf.data"), "[vdso]");
    let n_clock = of_vdso.get("__vdso_clock_gettime").copied().unwrap_or(0);
    assert!(
        n_clock >= 5 && of_vdso.keys().all(|name| name.contains("clock_gettime")),
        "{of_vdso:?}"
    );
    let imported: Vec<&str> = imported.split([';', ' ', '\n']).collect();
    for name in ["outer::burn", "outer::spin<long>", "main", "malloc"] {
        // The innermost function of libc is not the one that was called, where its debug package
        // is there.
        let is_it = |found: &str| match name {
            "malloc" => found.contains("malloc") || found.contains("free"),
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

/// A program with other functions at the same places. Names alone do not change a build-id.
fn swapped() -> String {
    SOURCE.replace("outer", "other").replace("100000", "100003")
}

/// Waits for a process of a program, and some samples of it.
fn wait_until_it_runs(program: &Path) {
    let is_it = |entry: fs::DirEntry| {
        fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program)
    };
    let runs = || fs::read_dir("/proc").expect("procfs").flatten().any(is_it);
    let begun = Instant::now();
    while !runs() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it never ran");
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_millis(300));
}

/// What perf recorded of a program that was replaced while it ran.
fn replaced_meanwhile(args: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    build(folder.path(), "new", &swapped());
    build(folder.path(), "burn", SOURCE);
    let (data, program) = (at("perf.data"), at("burn"));
    let mut recording = Command::new("perf")
        .args(["record", "-q", "-g", "-F", "499", "-e", "cpu-clock", "-o"])
        .arg(&data)
        .args(args)
        .args(["--", "timeout", "2"])
        .arg(&program)
        .stderr(Stdio::null())
        .spawn()
        .expect("perf is there");
    wait_until_it_runs(&program);
    fs::rename(at("new"), &program).expect("it takes its place");
    // timeout ends with 124.
    recording.wait().expect("our own child");
    let output = exported(&data);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("burn"), "{stdout}");
    output
}

/// perf reads build-ids when a recording ends: that of the new file is then written of the old
/// one, whose functions would have the names of the new one's.
#[test]
#[ignore = "needs root and perf: run cargo xtask test kernel"]
fn a_program_that_is_replaced_while_it_is_recorded_has_no_wrong_names() {
    needs();
    for (args, why) in [
        (
            &[][..],
            "perf read its build-id only when the recording ended",
        ),
        (
            &["--buildid-mmap"],
            "another build-id than the recorded one",
        ),
        (&["-B"], "another inode"),
    ] {
        let output = replaced_meanwhile(args);
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stdout.contains("other::"), "{args:?}: {stdout}");
        // perf may have a copy from another test, which a build-id that was read in time finds.
        let has_right_names = args == ["--buildid-mmap"] && stdout.contains("outer::");
        assert!(
            has_right_names || !stdout.contains("outer::"),
            "{args:?}: {stdout}"
        );
        assert!(
            has_right_names || stderr.contains(why),
            "{args:?}: {stderr}"
        );
    }
}

#[test]
#[ignore = "needs root, bpf and perf: run cargo xtask test kernel"]
fn a_bpf_program_that_is_loaded_while_it_is_recorded_has_its_own_name() {
    needs();
    require(Need::Bpf);
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    build(folder.path(), "loads", BPF_SOURCE);
    let imported = Command::new("perf")
        .args(["record", "-q", "-g", "-F", "499", "-e", "cpu-clock", "-o"])
        .args([&at("perf.data"), &at("loads")])
        .stderr(Stdio::null())
        .status();
    assert!(imported.expect("perf is there").success());
    let live = Command::new(sexton::binary().expect("it was asked for"))
        .args(["profile", "record", "-o"])
        .args([&at("live.bundle"), Path::new("--"), &at("loads")])
        .stderr(Stdio::null())
        .status();
    assert!(live.expect("it runs").success());
    for recording in ["perf.data", "live.bundle"] {
        let found = functions_of(&at(recording), "bpf");
        let n_of = |part: &str| -> u64 {
            let of = found.iter().filter(|(name, _)| name.contains(part));
            of.map(|(_, n)| *n).sum()
        };
        let (n_right, n_all) = (n_of("_spins_here"), n_of(""));
        assert!(n_right > 100, "{recording}: {found:?}");
        // Programs of others may run on the same core.
        assert!(n_right * 100 >= n_all * 98, "{recording}: {found:?}");
    }
}

/// A program that a compiler makes while it runs.
const SCRIPT: &str = "
function hotLoop(n) { let sum = 0; for (let i = 0; i < n; i++) sum += Math.sqrt(i); return sum; }
for (const end = Date.now() + 60000; Date.now() < end;) hotLoop(1e5);
";

#[test]
#[ignore = "needs root, perf and node: run cargo xtask test kernel"]
fn code_that_node_makes_has_names_live_and_imported() {
    needs();
    require(Need::Program("node"));
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("hot.js"), SCRIPT).expect("its source");
    let child = Command::new("node")
        .arg("--perf-basic-prof")
        .arg(at("hot.js"))
        .current_dir(folder.path())
        .spawn()
        .expect("node is there");
    let pid = child.id().to_string();
    let map = format!("/tmp/perf-{pid}.map");
    let node = Burning {
        folder: tempfile::tempdir().expect("a folder"),
        child,
    };
    thread::sleep(Duration::from_secs(1));
    let imported = Command::new("perf")
        .args(["record", "-q", "-g", "-F", "499", "-e", "cpu-clock", "-o"])
        .arg(at("perf.data"))
        .args(["-p", &pid, "--", "sleep", "1"])
        .stderr(Stdio::null())
        .status();
    assert!(imported.expect("perf is there").success());
    let live = Command::new(sexton::binary().expect("it was asked for"))
        .args(["profile", "record", "--for", "1s", "-o"])
        .arg(at("live.bundle"))
        .arg(&pid)
        .stderr(Stdio::null())
        .status();
    assert!(live.expect("it runs").success());
    for recording in ["perf.data", "live.bundle"] {
        let found = functions_of(&at(recording), "");
        let hot = found.iter().filter(|(name, _)| name.contains("hot.js"));
        let n_hot: u64 = hot.map(|(_, n)| *n).sum();
        assert!(n_hot > 50, "{recording}: {found:?}");
    }
    drop(node);
    fs::remove_file(map).expect("node wrote it");
}
