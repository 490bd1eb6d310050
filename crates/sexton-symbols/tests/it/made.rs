//! Programs made for a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use sexton_host::Host;
use sexton_host::code::CodeFile;
use sexton_model::census::Device;
use sexton_model::stack::Inode;
use sexton_symbols::recorded::Recording;
use tempfile::TempDir;

/// Says where each of its functions is, then calls a library in a loop until it is killed.
const SOURCE: &str = r#"
#include <cstdio>
#include <unistd.h>
namespace outer {
template <typename T> struct Box { T kept; };
__attribute__((noinline)) int visible(int n) { return n * 7 + 1; }
template <typename T> __attribute__((noinline)) T twice(Box<T> box) { return box.kept + box.kept; }
}
static __attribute__((noinline)) int hidden(int n) { return outer::visible(n) ^ 3; }
int main(int argc, char **) {
    printf("%p hidden\n%p outer::visible\n%p outer::twice<int>\n", (void *)hidden,
           (void *)static_cast<int (*)(int)>(outer::visible), (void *)outer::twice<int>);
    fflush(stdout);
    int n = argc;
    for (;;) {
        n = hidden(n) + outer::twice(outer::Box<int>{n});
        usleep(1000);
    }
}
"#;

/// A folder with a program in it.
pub struct Made {
    folder: TempDir,
}

pub fn run(program: &str, args: &[&str], folder: &Path) -> String {
    let output = Command::new(program)
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; these tests need g++ and binutils"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

impl Made {
    /// The program, with all its symbols.
    pub fn new(flags: &[&str]) -> Self {
        let made = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::write(made.path("program.cc"), SOURCE).unwrap();
        let args = ["-O1", "-g", "-o", "program", "program.cc", "-Wl,--build-id"];
        run("g++", &[&args, flags].concat(), made.folder.path());
        made
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn tool(&self, program: &str, args: &[&str]) -> String {
        run(program, args, self.folder.path())
    }

    /// Where the program says a function of this name is, as an offset of its file.
    pub fn offset(&self, symbol: &str) -> u64 {
        let table = self.tool("nm", &["program.whole"]);
        let line = table
            .lines()
            .find(|line| line.ends_with(&format!(" {symbol}")));
        let address = line.unwrap().split(' ').next().unwrap();
        let address = u64::from_str_radix(address, 16).unwrap();
        // Of a program that is linked to be loaded anywhere.
        let headers = self.tool("readelf", &["-lW", "program.whole"]);
        let load = |line: &&str| line.trim_start().starts_with("LOAD");
        for line in headers.lines().filter(load) {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let hex = |at: usize| u64::from_str_radix(&fields[at][2..], 16).unwrap();
            let (offset, start, size) = (hex(1), hex(2), hex(4));
            if (start..start + size).contains(&address) {
                return address - start + offset;
            }
        }
        panic!("{symbol} is in no segment");
    }

    /// Keeps the program as it is under another name, and strips it.
    pub fn strip(&self) {
        fs::copy(self.path("program"), self.path("program.whole")).unwrap();
        self.tool("strip", &["program"]);
    }

    pub fn build_id(&self) -> Vec<u8> {
        let notes = self.tool("readelf", &["-n", "program"]);
        let line = notes.lines().find_map(|line| line.split_once("Build ID: "));
        let hex = line.unwrap().1.trim();
        (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect()
    }

    /// The debug file that a package would have installed, at its place below the folder.
    pub fn install_debug_file(&self) {
        let hex: String = self.build_id().iter().map(|b| format!("{b:02x}")).collect();
        let folder = self.path(&format!("usr/lib/debug/.build-id/{}", &hex[..2]));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{}.debug", &hex[2..]));
        let path = path.to_str().unwrap();
        self.tool("objcopy", &["--only-keep-debug", "program.whole", path]);
    }
}

/// A file as a recording without its build-id, but with this inode, knows it.
pub fn by_inode(path: &str, inode: u64) -> Recording<'_> {
    Recording {
        path,
        build_id: None,
        is_id_of_mapping: false,
        inode: Some(Inode {
            number: inode,
            device: Device { major: 0, minor: 0 },
            generation: None,
        }),
    }
}

/// What a recording says of a file that is there.
pub fn inode_of(path: &Path) -> Inode {
    let host = Host::live().unwrap();
    let file = CodeFile::open(path, true).unwrap();
    Inode {
        number: file.inode(),
        device: file.device(&host).unwrap(),
        generation: file.generation(),
    }
}

/// A program that runs; it ends with this value.
pub struct Running {
    pub child: Child,
    /// What it says of itself: addresses and names.
    pub functions: Vec<(u64, String)>,
}

impl Running {
    pub fn start(path: &Path) -> Self {
        use std::io::{BufRead, BufReader};
        let mut child = Command::new(path).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let functions = out.lines().take(3).map(|line| {
            let line = line.unwrap();
            let (address, name) = line.split_once(' ').unwrap();
            let address = u64::from_str_radix(&address[2..], 16).unwrap();
            (address, name.to_owned())
        });
        let functions = functions.collect();
        Self { child, functions }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
