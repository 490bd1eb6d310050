//! What reads a program before it runs: the loader of an ELF file, or the interpreter that
//! the first line of a script names. The kernel reports either one missing as if the program
//! itself were.
//!
//! The layout of ELF is that of the System V ABI, chapters 4 and 5; what a first line may
//! hold is described in execve(2).

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sexton_host::Kind;

use crate::unit_file::start::{PROGRAM_FOLDERS, VOLATILE};
use crate::unit_file::tree::Tree;

/// The kernel reads so much of a script.
const LINE_BYTES_MAX: usize = 256;

/// A script may name a script; the kernel follows four.
const N_STEPS_MAX: usize = 4;

/// A program header is 56 bytes, and a program has about a dozen.
const N_HEADERS_MAX: usize = 128;

/// The longest path there is.
const PATH_BYTES_MAX: u64 = 4_096;

const PT_INTERP: u64 = 3;

const EM_386: u64 = 3;
const EM_ARM: u64 = 40;
const EM_X86_64: u64 = 62;
const EM_AARCH64: u64 = 183;

/// What the kernel of an image executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel {
    /// The machine of its programs, as ELF counts them; `None` if no program tells.
    machine: Option<u64>,
    /// Whether `binfmt_misc` may be told of more: then any file may be executable.
    takes_more: bool,
}

impl Kernel {
    /// By the machine that systemd itself, or the shell, was built for.
    pub(crate) fn of(tree: &Tree<'_>) -> Self {
        let programs = [
            "/usr/lib/systemd/systemd",
            "/lib/systemd/systemd",
            "/bin/sh",
        ];
        let machine_of = |path: &&str| {
            let head = tree
                .root()
                .read_at(Path::new(path), 0, LINE_BYTES_MAX)
                .ok()?;
            machine(&head)
        };
        let folders = ["/etc/binfmt.d", "/usr/lib/binfmt.d", "/var/lib/binfmts"];
        let has_any = |folder: &&str| {
            let entries = tree.root().list(Path::new(folder));
            entries.is_ok_and(|entries| !entries.is_empty())
        };
        Self {
            machine: programs.iter().find_map(machine_of),
            takes_more: folders.iter().any(has_any),
        }
    }

    /// Whether it executes programs of a machine: those for its 32-bit kin too.
    fn runs(self, machine: u64) -> bool {
        let kin = match self.machine {
            Some(EM_X86_64) => Some(EM_386),
            Some(EM_AARCH64) => Some(EM_ARM),
            _ => None,
        };
        self.machine.is_none_or(|own| own == machine) || kin == Some(machine)
    }
}

/// The machine that an ELF file is for.
fn machine(head: &[u8]) -> Option<u64> {
    let ident = head
        .get(..6)
        .filter(|ident| ident.starts_with(b"\x7fELF"))?;
    number(head, 18, 2, ident[5] == 2)
}

/// Where the headers of an ELF file say what they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    offset: u64,
    /// Of one of them.
    size_bytes: usize,
    n: usize,
    is_64: bool,
    is_big_endian: bool,
}

impl Headers {
    /// Of the first bytes of a file; `None` if it is no ELF file, or has none.
    pub fn of(head: &[u8]) -> Option<Self> {
        let ident = head
            .get(..6)
            .filter(|ident| ident.starts_with(b"\x7fELF"))?;
        let (is_64, is_big_endian) = (ident[4] == 2, ident[5] == 2);
        let number = |at, len| number(head, at, len, is_big_endian);
        let (offset, size, n) = match is_64 {
            true => (number(32, 8)?, number(54, 2)?, number(56, 2)?),
            false => (number(28, 4)?, number(42, 2)?, number(44, 2)?),
        };
        let least = if is_64 { 56 } else { 32 };
        let headers = Self {
            offset,
            size_bytes: usize::try_from(size).ok()?,
            n: usize::try_from(n).ok()?.min(N_HEADERS_MAX),
            is_64,
            is_big_endian,
        };
        (headers.n > 0 && (least..=1_024).contains(&headers.size_bytes)).then_some(headers)
    }

    /// Where the name of the loader is and how long, of the bytes of all headers.
    pub fn loader(&self, table: &[u8]) -> Option<(u64, u64)> {
        let of = |header: &[u8], at, len| number(header, at, len, self.is_big_endian);
        let mut headers = table.chunks_exact(self.size_bytes);
        let found = headers.find(|header| of(header, 0, 4) == Some(PT_INTERP))?;
        match self.is_64 {
            true => Some((of(found, 8, 8)?, of(found, 32, 8)?)),
            false => Some((of(found, 4, 4)?, of(found, 16, 4)?)),
        }
    }
}

fn number(bytes: &[u8], at: usize, len: usize, is_big_endian: bool) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(len)?)?;
    let add = |sum: u64, &byte: &u8| sum << 8 | u64::from(byte);
    Some(match is_big_endian {
        true => field.iter().fold(0, add),
        false => field.iter().rev().fold(0, add),
    })
}

/// What the first line of a script asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// `#!/bin/sh`
    Path(String),
    /// `#!/usr/bin/env python3`: the path of `env`, and what it looks for.
    Env(String, String),
}

/// Reads the first line of a script; `None` if it is none. Only spaces and tabs part its words:
/// a carriage return is part of a name.
pub fn first_line(head: &[u8]) -> Option<Asked> {
    let head = &head[..head.len().min(LINE_BYTES_MAX)];
    let line = head.strip_prefix(b"#!")?.split(|&b| b == b'\n').next()?;
    let line = String::from_utf8_lossy(line).into_owned();
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let interpreter = words.next()?.to_owned();
    // An argument is one word for the kernel; `env -S` splits it.
    let is_option = |word: &&str| word.starts_with('-') || word.contains('=');
    let named = words.find(|word| !is_option(word));
    Some(match named {
        Some(name) if Path::new(&interpreter).file_name() == Some("env".as_ref()) => {
            Asked::Env(interpreter, name.to_owned())
        }
        _ => Asked::Path(interpreter),
    })
}

/// What of this is missing, in words; `None` also where that cannot be told.
/// `knows_path` is false where a unit sets the `PATH` that `env` looks into.
pub(crate) fn missing(
    tree: &Tree<'_>,
    kernel: Kernel,
    program: &Path,
    knows_path: bool,
) -> Option<String> {
    let mut program = program.to_owned();
    for _ in 0..N_STEPS_MAX {
        if tree.meta(&program)?.kind != Kind::File {
            return None;
        }
        let head = tree.root().read_at(&program, 0, LINE_BYTES_MAX).ok()?;
        if let Some(machine) = machine(&head) {
            return elf(tree, kernel, &program, &head, machine);
        }
        let Some(asked) = first_line(&head) else {
            let what = if head.is_empty() {
                "empty"
            } else {
                "no program"
            };
            let why = format!("it is {what}, and no script that begins with #!");
            return (!kernel.takes_more).then_some(why);
        };
        program = match asked {
            Asked::Path(path) if is_missing(tree, Path::new(&path)) => return lost(&path),
            Asked::Path(path) => path.into(),
            Asked::Env(env, _) if is_missing(tree, Path::new(&env)) => return lost(&env),
            Asked::Env(_, name) => match on_path(tree, &name) {
                Some(path) => path,
                None if name.contains('/') || !knows_path => return None,
                None => return lost(&name),
            },
        };
    }
    None
}

fn lost(interpreter: &str) -> Option<String> {
    let cause = match interpreter.ends_with('\r') {
        true => ": its first line ends in a carriage return",
        false => "",
    };
    let name = sexton_model::text::escape(interpreter.as_bytes());
    Some(format!("its interpreter {name} is missing{cause}"))
}

fn elf(
    tree: &Tree<'_>,
    kernel: Kernel,
    program: &Path,
    head: &[u8],
    machine: u64,
) -> Option<String> {
    if !kernel.runs(machine) {
        let why = format!("it is for another processor (ELF machine {machine})");
        return (!kernel.takes_more).then_some(why);
    }
    let loader = loader(tree, program, &Headers::of(head)?)?;
    let why = format!("its loader {} is missing", loader.display());
    is_missing(tree, &loader).then_some(why)
}

/// The first program of a name, in the folders where systemd looks.
pub(crate) fn on_path(tree: &Tree<'_>, name: &str) -> Option<PathBuf> {
    let mut places = PROGRAM_FOLDERS
        .iter()
        .map(|folder| Path::new(folder).join(name));
    places.find(|place| tree.exists(place))
}

fn loader(tree: &Tree<'_>, program: &Path, headers: &Headers) -> Option<PathBuf> {
    let len = headers.size_bytes * headers.n;
    let table = tree.root().read_at(program, headers.offset, len).ok()?;
    let (offset, len) = headers.loader(&table)?;
    let len = usize::try_from(len.min(PATH_BYTES_MAX)).ok()?;
    let name = tree.root().read_at(program, offset, len).ok()?;
    let name = name.split(|&b| b == 0).next()?;
    Some(PathBuf::from(String::from_utf8(name.to_vec()).ok()?))
}

/// Only of an absolute path, and only where the image can tell.
fn is_missing(tree: &Tree<'_>, path: &Path) -> bool {
    let is_volatile = VOLATILE.iter().any(|folder| path.starts_with(folder));
    let meta = tree.root().meta(path);
    path.is_absolute()
        && !is_volatile
        && meta.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use sexton_host::FolderRoot;

    use super::*;

    #[test]
    fn first_lines() {
        let check = |line: &str, expected: Option<Asked>| {
            assert_eq!(first_line(line.as_bytes()), expected, "{line}");
        };
        let path = |path: &str| Some(Asked::Path(path.into()));
        let env = |name: &str| Some(Asked::Env("/usr/bin/env".into(), name.into()));
        check("#!/bin/sh\nexit", path("/bin/sh"));
        check("#! /bin/sh -e\n", path("/bin/sh"));
        check("#!/usr/bin/env python3\n", env("python3"));
        check("#!/usr/bin/env -S A=b node --x\n", env("node"));
        check("#!/usr/bin/env\n", path("/usr/bin/env"));
        check("#!\n", None);
        check("exit 0\n", None);
    }

    /// A program of this machine, and scripts, in a root of their own.
    fn programs() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |path: &str| folder.path().join(path);
        for path in ["usr/bin", "lib64"] {
            fs::create_dir_all(at(path)).expect("made");
        }
        symlink("usr/bin", at("bin")).expect("linked");
        let own = std::env::current_exe().expect("this test");
        fs::copy(own, at("usr/bin/program")).expect("copied");
        for (name, text) in [
            ("script", "#!/bin/program\n"),
            ("env", "#!/bin/script\n"),
            ("found", "#!/usr/bin/env program\n"),
            ("lost", "#!/usr/bin/env python3\n"),
            ("gone", "#!/usr/bin/absent\n"),
            ("loop", "#!/bin/loop\n"),
            ("text", "no more than text\n"),
            ("void", ""),
            ("dos", "#!/bin/sh\r\n"),
        ] {
            fs::write(at("usr/bin").join(name), text).expect("written");
        }
        let mut foreign = fs::read(at("usr/bin/program")).expect("read");
        // systemd of this root is for the machine of this test; SPARC is not.
        fs::create_dir_all(at("usr/lib/systemd")).expect("made");
        fs::write(at("usr/lib/systemd/systemd"), &foreign[..64]).expect("written");
        foreign[18] = 2;
        fs::write(at("usr/bin/foreign"), &foreign[..4_096]).expect("written");
        folder
    }

    #[test]
    fn what_is_missing() {
        let folder = programs();
        let at = |path: &str| folder.path().join(path);
        let root = FolderRoot::open(folder.path()).expect("opens");
        let missing = |name: &str| {
            let tree = Tree::new(&root);
            missing(
                &tree,
                Kernel::of(&tree),
                &Path::new("/bin").join(name),
                true,
            )
        };
        let loader = missing("program").expect("no loader is there");
        assert!(loader.starts_with("its loader /lib"), "{loader}");
        assert_eq!(missing("script"), Some(loader.clone()));
        assert_eq!(missing("found"), Some(loader.clone()));
        let lost = |name: &str| Some(format!("its interpreter {name} is missing"));
        assert_eq!(missing("lost"), lost("python3"));
        assert_eq!(missing("gone"), lost("/usr/bin/absent"));
        assert_eq!(missing("loop"), None);
        let no = |what: &str| Some(format!("it is {what}, and no script that begins with #!"));
        assert_eq!(
            (missing("text"), missing("void")),
            (no("no program"), no("empty"))
        );
        assert_eq!(
            missing("dos").as_deref(),
            Some(
                "its interpreter /bin/sh\\015 is missing: its first line ends in a carriage return"
            )
        );
        let foreign = missing("foreign").expect("of another machine");
        assert!(
            foreign.starts_with("it is for another processor"),
            "{foreign}"
        );
        let name = loader.split(' ').nth(2).expect("a name");
        fs::create_dir_all(at(&name[1..]).parent().expect("a folder")).expect("made");
        fs::write(at(&name[1..]), "").expect("written");
        assert_eq!((missing("program"), missing("found")), (None, None));
    }
}
