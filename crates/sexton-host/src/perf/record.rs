//! Reads records as the kernel writes them (include/uapi/linux/perf_event.h).

use crate::code::Mapping;

const COMM: u32 = 3;
const LOST: u32 = 2;
const EXIT: u32 = 4;
const THROTTLE: u32 = 5;
const UNTHROTTLE: u32 = 6;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const KSYMBOL: u32 = 17;

const MISC_COMM_EXEC: u16 = 1 << 13;

/// From here on an address of a call chain says what the next ones belong to.
const CONTEXT_MAX: u64 = -4095_i64 as u64;
const CONTEXT_KERNEL: u64 = -128_i64 as u64;
const CONTEXT_USER: u64 = -512_i64 as u64;

/// Task, time and core: at the front of a sample, at the end of everything else.
const STAMP_BYTES: usize = 24;

/// Where the name of the kernel's code begins, after place, length, type and flags.
const KSYMBOL_NAME_AT: usize = 16;
/// The code is gone.
const KSYMBOL_UNREGISTER: u16 = 1;

/// Where the name of the file begins, after place, device, inode and rights.
const MMAP2_PATH_AT: usize = 64;

/// What begins every record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    kind: u32,
    misc: u16,
    pub(super) len: u16,
}

impl Header {
    pub(super) const BYTES: usize = 8;

    pub(super) fn read(bytes: [u8; Self::BYTES]) -> Self {
        let [k0, k1, k2, k3, m0, m1, l0, l1] = bytes;
        Self {
            kind: u32::from_ne_bytes([k0, k1, k2, k3]),
            misc: u16::from_ne_bytes([m0, m1]),
            len: u16::from_ne_bytes([l0, l1]),
        }
    }

    pub(super) fn is_lost(self) -> bool {
        self.kind == LOST
    }

    pub(super) fn is_throttle(self) -> bool {
        self.kind == THROTTLE
    }
}

/// Something that a core told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When, in nanoseconds since boot, time asleep included.
    pub at_ns: u64,
    /// The core.
    pub cpu: u32,
    /// What it told.
    pub what: What,
}

/// What a core told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A sample, or a hit of a tracepoint.
    Sample(Sample),
    /// A thread took a name.
    Named {
        /// Its process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// The name.
        comm: Vec<u8>,
        /// Because it executed another program.
        by_exec: bool,
    },
    /// A task started.
    Forked {
        /// Its process.
        pid: u32,
        /// The task.
        tid: u32,
        /// The process that started it.
        parent: u32,
        /// The task that started it.
        parent_tid: u32,
    },
    /// A task exited.
    Exited {
        /// Its process.
        pid: u32,
        /// The task.
        tid: u32,
    },
    /// A process mapped code.
    Mapped {
        /// The process.
        pid: u32,
        /// Where, and from which file.
        mapping: Mapping,
    },
    /// The kernel made code: a BPF program, a trampoline.
    Made(Code),
}

/// Code that the kernel made while it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// Its first address.
    pub start: u64,
    /// The address after its last.
    pub end: u64,
    /// What `/proc/kallsyms` calls it.
    pub name: Vec<u8>,
}

/// A sample of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// The process; all bits set while it exits.
    pub pid: u32,
    /// The thread; 0 when the core was idle.
    pub tid: u32,
    /// Addresses in the kernel, innermost first.
    pub kernel: Vec<u64>,
    /// Addresses in the program, innermost first.
    pub user: Vec<u64>,
    /// The fields of a tracepoint, as its format describes them.
    pub fields: Vec<u8>,
}

/// Bytes that are no record of their kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Reads a record of which `body` follows the header; `None` for kinds that say nothing we keep.
pub(super) fn read(
    header: Header,
    body: &[u8],
    has_stacks: bool,
) -> Result<Option<Record>, Malformed> {
    match header.kind {
        SAMPLE => read_sample(body, has_stacks).map(Some).ok_or(Malformed),
        COMM | FORK | EXIT | MMAP2 => read_task(header, body).map(Some).ok_or(Malformed),
        KSYMBOL => read_made(body).ok_or(Malformed),
        THROTTLE | UNTHROTTLE => Ok(None),
        // Newer kernels have more kinds; none is told unasked.
        _ => Ok(None),
    }
}

fn read_sample(body: &[u8], has_stacks: bool) -> Option<Record> {
    let mut sample = Sample {
        pid: u32_at(body, 0)?,
        tid: u32_at(body, 4)?,
        ..Sample::default()
    };
    let (at_ns, cpu) = (u64_at(body, 8)?, u32_at(body, 16)?);
    let rest = body.get(STAMP_BYTES..)?;
    if has_stacks {
        read_chain(rest, &mut sample)?;
    } else {
        let len = u32_at(rest, 0)? as usize;
        sample.fields = rest.get(4..)?.get(..len)?.to_vec();
    }
    Some(Record {
        at_ns,
        cpu,
        what: What::Sample(sample),
    })
}

fn read_chain(bytes: &[u8], sample: &mut Sample) -> Option<()> {
    let n = usize::try_from(u64_at(bytes, 0)?).ok()?;
    let addresses = bytes.get(8..)?.get(..n.checked_mul(8)?)?;
    // Of guests and hypervisors nothing can be named.
    let mut context = None;
    for word in addresses.chunks_exact(8) {
        let address = u64_at(word, 0)?;
        match (address, context) {
            (CONTEXT_MAX.., _) => context = Some(address),
            (_, Some(CONTEXT_KERNEL)) => sample.kernel.push(address),
            (_, Some(CONTEXT_USER)) => sample.user.push(address),
            _ => {}
        }
    }
    Some(())
}

fn read_task(header: Header, body: &[u8]) -> Option<Record> {
    let stamp = body.get(body.len().checked_sub(STAMP_BYTES)?..)?;
    let content = &body[..body.len() - STAMP_BYTES];
    let what = if header.kind == COMM {
        let comm = content.get(8..)?.split(|&b| b == 0).next()?;
        What::Named {
            pid: u32_at(content, 0)?,
            tid: u32_at(content, 4)?,
            comm: comm.to_vec(),
            by_exec: header.misc & MISC_COMM_EXEC != 0,
        }
    } else if header.kind == MMAP2 {
        What::Mapped {
            pid: u32_at(content, 0)?,
            mapping: read_mapping(content)?,
        }
    } else {
        let (pid, parent) = (u32_at(content, 0)?, u32_at(content, 4)?);
        let (tid, parent_tid) = (u32_at(content, 8)?, u32_at(content, 12)?);
        match header.kind {
            EXIT => What::Exited { pid, tid },
            _ => What::Forked {
                pid,
                tid,
                parent,
                parent_tid,
            },
        }
    };
    Some(Record {
        at_ns: u64_at(stamp, 8)?,
        cpu: u32_at(stamp, 16)?,
        what,
    })
}

/// `None` in it for code that is gone: samples of it may still come.
fn read_made(body: &[u8]) -> Option<Option<Record>> {
    let stamp = body.get(body.len().checked_sub(STAMP_BYTES)?..)?;
    let content = &body[..body.len() - STAMP_BYTES];
    let (start, len) = (u64_at(content, 0)?, u32_at(content, 8)?);
    let flags = content.get(14..)?.first_chunk()?;
    let name = content.get(KSYMBOL_NAME_AT..)?.split(|&b| b == 0).next()?;
    let is_gone = u16::from_ne_bytes(*flags) & KSYMBOL_UNREGISTER != 0;
    let code = Code {
        start,
        end: start.checked_add(len.into())?,
        name: name.to_vec(),
    };
    let record = Record {
        at_ns: u64_at(stamp, 8)?,
        cpu: u32_at(stamp, 16)?,
        what: What::Made(code),
    };
    Some((!is_gone).then_some(record))
}

/// What memory of no file is called here; `/proc/PID/maps` gives it no name.
const NO_FILE: &[u8] = b"//anon";

fn read_mapping(content: &[u8]) -> Option<Mapping> {
    let start = u64_at(content, 8)?;
    let path = content.get(MMAP2_PATH_AT..)?.split(|&b| b == 0).next()?;
    let path = if path == NO_FILE { b"" } else { path };
    let kept = path.strip_suffix(b" (deleted)");
    Some(Mapping {
        start,
        end: start.checked_add(u64_at(content, 16)?)?,
        offset: u64_at(content, 24)?,
        inode: u64_at(content, 40)?,
        path: kept.unwrap_or(path).to_vec(),
        is_deleted: kept.is_some(),
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*word))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(kind: u32, misc: u16) -> Header {
        let len = 0;
        Header { kind, misc, len }
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// Two numbers as the kernel puts them next to each other.
    fn pair(low: u32, high: u32) -> u64 {
        let [a, b] = [low.to_ne_bytes(), high.to_ne_bytes()];
        u64::from_ne_bytes([a, b].concat().try_into().expect("eight bytes"))
    }

    fn check(kind: u32, misc: u16, body: &[u8], has_stacks: bool, what: What) {
        let expected = Record {
            at_ns: 77,
            cpu: 3,
            what,
        };
        assert_eq!(
            read(header(kind, misc), body, has_stacks),
            Ok(Some(expected))
        );
        for n in 0..body.len() {
            let cut = read(header(kind, misc), &body[..n], has_stacks);
            assert_ne!(cut.as_ref().map(Option::is_some), Ok(true), "{n} bytes");
        }
    }

    #[test]
    fn a_sample_has_a_stack_in_the_kernel_and_one_in_the_program() {
        let guest = -2048_i64 as u64;
        let chain = [CONTEXT_KERNEL, 10, 11, CONTEXT_USER, 20, guest, 30];
        let mut body = vec![pair(5, 6), 77, 3, chain.len() as u64];
        body.extend(chain);
        let sample = Sample {
            pid: 5,
            tid: 6,
            kernel: vec![10, 11],
            user: vec![20],
            fields: Vec::new(),
        };
        check(SAMPLE, 0, &words(&body), true, What::Sample(sample));
    }

    #[test]
    fn a_tracepoint_has_fields() {
        let mut body = words(&[pair(5, 6), 77, 3]);
        body.extend(3_u32.to_ne_bytes());
        body.extend(b"abc");
        let sample = Sample {
            pid: 5,
            tid: 6,
            fields: b"abc".to_vec(),
            ..Sample::default()
        };
        check(SAMPLE, 0, &body, false, What::Sample(sample));
    }

    #[test]
    fn tasks_start_take_names_and_exit() {
        let stamp = [pair(8, 9), 77, 3];
        let body = |content: &[u64]| words(&[content, &stamp[..]].concat());
        let comm = u64::from_ne_bytes(*b"run\0junk");
        let named = What::Named {
            pid: 5,
            tid: 6,
            comm: b"run".to_vec(),
            by_exec: true,
        };
        let of = |kind, misc, body: &[u8]| read(header(kind, misc), body, true);
        let told = of(COMM, MISC_COMM_EXEC, &body(&[pair(5, 6), comm]));
        assert_eq!(told.map(|told| told.map(|told| told.what)), Ok(Some(named)));
        let forked = What::Forked {
            pid: 5,
            tid: 6,
            parent: 1,
            parent_tid: 2,
        };
        let content = [pair(5, 1), pair(6, 2), 70];
        let told = of(FORK, 0, &body(&content));
        assert_eq!(
            told.map(|told| told.map(|told| told.what)),
            Ok(Some(forked))
        );
        let told = of(EXIT, 0, &body(&content));
        let exited = Ok(Some(What::Exited { pid: 5, tid: 6 }));
        assert_eq!(told.map(|told| told.map(|told| told.what)), exited);
    }

    #[test]
    fn a_process_maps_code() {
        let stamp = [pair(8, 9), 77, 3];
        let rights = pair(5, 2);
        let path = |text: &[u8; 8]| u64::from_ne_bytes(*text);
        let mapped = |inode: u64, name: &[u64]| {
            let place = [
                pair(5, 6),
                0x1000,
                0x200,
                0x40,
                pair(8, 1),
                inode,
                0,
                rights,
            ];
            let body = words(&[&place[..], name, &stamp].concat());
            let told = read(header(MMAP2, 0), &body, true);
            match told
                .expect("a record")
                .expect("of a kind that is kept")
                .what
            {
                What::Mapped { pid, mapping } => (pid, mapping),
                other => panic!("{other:?}"),
            }
        };
        let expected = Mapping {
            start: 0x1000,
            end: 0x1200,
            offset: 0x40,
            inode: 42,
            path: b"/bin/a".to_vec(),
            is_deleted: false,
        };
        let named = mapped(42, &[path(b"/bin/a\0\0")]);
        assert_eq!(named, (5, expected.clone()));
        let gone = mapped(42, &[path(b"/bin/a ("), path(b"deleted)"), 0]);
        let deleted = Mapping {
            is_deleted: true,
            ..expected
        };
        assert_eq!(gone, (5, deleted));
        let (_, made) = mapped(0, &[path(b"//anon\0\0")]);
        assert!(made.path.is_empty() && !made.has_file());
    }

    #[test]
    fn the_kernel_makes_code() {
        let name = u64::from_ne_bytes(*b"bpf_x\0\0\0");
        let body = |flags: u32| {
            let content = [0x1000, pair(0x40, 1 | flags << 16), name];
            words(&[&content[..], &[pair(8, 9), 77, 3]].concat())
        };
        let code = Code {
            start: 0x1000,
            end: 0x1040,
            name: b"bpf_x".to_vec(),
        };
        let told = read(header(KSYMBOL, 0), &body(0), false);
        let told = told.map(|told| told.map(|told| (told.at_ns, told.cpu, told.what)));
        assert_eq!(told, Ok(Some((77, 3, What::Made(code)))));
        assert_eq!(read(header(KSYMBOL, 0), &body(1), false), Ok(None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_record_or_malformed(
            kind in 0_u32..20,
            misc: u16,
            body in proptest::collection::vec(any::<u8>(), 0..200),
            has_stacks: bool,
        ) {
            let _ = read(header(kind, misc), &body, has_stacks);
        }
    }
}
