//! Opens files below a folder that stands for the root of a node: every path, and every
//! symbolic link on the way, is resolved inside it.
//!
//! The kernel does that since Linux 5.6 (`openat2`). On older ones, and where a filter of system
//! calls does not know it, we go step by step, which takes a few more calls and never follows a
//! link but inside.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Links that are followed on the way to one file, as many as the kernel follows.
const MAX_LINKS: usize = 40;

/// Opens what is at `path` below `top`.
pub fn open_inside(top: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let (top, flags) = (top.as_fd(), flags | OFlags::CLOEXEC);
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(top, path, flags, Mode::empty(), resolve) {
        // An older filter of system calls answers EPERM to what it does not know. If the file
        // itself is forbidden, so it is to each step.
        Err(Errno::NOSYS | Errno::PERM) => Ok(step_by_step(top, path, flags)?),
        done => Ok(done?),
    }
}

/// One step of a path.
enum Step {
    ToTop,
    Up,
    Into(OsString),
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = Step> + '_ {
    path.components().filter_map(|component| match component {
        Component::RootDir => Some(Step::ToTop),
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Into(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    })
}

fn step_by_step(top: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    // Folders that were entered. Going up leaves the last one, so that it cannot lead out of the
    // top, whatever is renamed meanwhile.
    let mut entered: Vec<OwnedFd> = Vec::new();
    let mut left: VecDeque<Step> = steps(path).collect();
    let mut n_links = 0;
    while let Some(step) = left.pop_front() {
        let name = match step {
            Step::ToTop => {
                entered.clear();
                continue;
            }
            Step::Up => {
                entered.pop();
                continue;
            }
            Step::Into(name) => name,
        };
        let at = entered.last().map_or(top, OwnedFd::as_fd);
        let seen = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = rustix::fs::openat(at, &name, seen, Mode::empty())?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode);
        let is_last = left.is_empty();
        if kind == FileType::Symlink && !(is_last && flags.contains(OFlags::NOFOLLOW)) {
            n_links += 1;
            if n_links > MAX_LINKS {
                return Err(Errno::LOOP);
            }
            let target = rustix::fs::readlinkat(&found, c"", Vec::new())?;
            let target = OsString::from_vec(target.into_bytes());
            for step in steps(Path::new(&target)).rev() {
                left.push_front(step);
            }
        } else if is_last {
            // What took its place meanwhile may be a link: that is refused, not followed.
            return rustix::fs::openat(at, &name, flags | OFlags::NOFOLLOW, Mode::empty());
        } else if kind == FileType::Directory {
            entered.push(found);
        } else {
            return Err(Errno::NOTDIR);
        }
    }
    let at = entered.last().map_or(top, OwnedFd::as_fd);
    rustix::fs::openat(at, c".", flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with links of all sorts, and a secret beside it.
    fn tree() -> std::path::PathBuf {
        let place = std::env::temp_dir().join(format!("sexton-inside-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        let root = place.join("root");
        fs::create_dir_all(root.join("etc/deep")).expect("made");
        fs::create_dir_all(root.join("usr")).expect("made");
        fs::write(place.join("secret"), "outside").expect("written");
        fs::write(root.join("etc/file"), "inside").expect("written");
        fs::write(root.join("secret"), "its own").expect("written");
        for (link, target) in [
            ("etc/up", "../../../../secret"),
            ("etc/absolute", "/etc/file"),
            ("etc/to-folder", "deep"),
            ("etc/loop", "loop"),
            ("etc/gone", "/no/such"),
            ("usr/etc", "/etc"),
            ("lib", "usr/etc/deep/.."),
        ] {
            symlink(target, root.join(link)).expect("linked");
        }
        place
    }

    #[test]
    fn steps_lead_where_the_kernel_leads_and_never_outside() {
        let place = tree();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::open(place.join("root"), flags, Mode::empty()).expect("opened");
        let by_kernel = |path: &Path, flags| {
            let resolve = ResolveFlags::IN_ROOT;
            rustix::fs::openat2(&top, path, flags, Mode::empty(), resolve)
        };
        let identity = |file: Result<OwnedFd, Errno>| {
            file.map(|file| rustix::fs::fstat(&file).expect("a file").st_ino)
        };
        let all = [
            "/",
            "",
            ".",
            "..",
            "../../secret",
            "/etc/file",
            "etc/../etc/file",
            "/etc/up",
            "/etc/absolute",
            "/etc/to-folder",
            "/etc/to-folder/../file",
            "/etc/loop",
            "/etc/gone",
            "/usr/etc/file",
            "/lib/file",
            "/etc/file/below",
            "/nothing",
            "/etc/deep",
        ];
        let read = OFlags::RDONLY | OFlags::CLOEXEC;
        for flags in [
            read,
            read | OFlags::PATH,
            read | OFlags::PATH | OFlags::NOFOLLOW,
            read | OFlags::NOFOLLOW,
            read | OFlags::DIRECTORY,
        ] {
            // The kernel has no empty path; for us it is the top, as is a dot.
            for path in all.iter().filter(|path| !path.is_empty()) {
                let path = Path::new(path);
                let expected = identity(by_kernel(path, flags));
                let found = identity(step_by_step(top.as_fd(), path, flags));
                assert_eq!(found, expected, "{} by {flags:?}", path.display());
            }
        }
        let own = open_inside(&top, Path::new("/etc/up"), OFlags::RDONLY).expect("its own");
        let text = io::read_to_string(fs::File::from(own)).expect("text");
        assert_eq!(text, "its own");
        fs::remove_dir_all(&place).expect("removed");
    }
}
