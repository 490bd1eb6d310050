//! Names of functions. Recordings of perf hold addresses only, so the importer asks its
//! caller, who can open files.

use std::sync::Arc;

use sexton_model::stack::Inode;

/// A place in code whose name is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The process it was seen in.
    pub pid: u32,
    /// The file it is in, as the recording names it; empty for the kernel itself.
    pub module: &'a str,
    /// What identifies the file's contents, where the recording says.
    pub build_id: Option<&'a [u8]>,
    /// Whether that was read when the file was mapped. perf usually reads it when the recording
    /// ends, of the file that has the path by then.
    pub is_id_of_mapping: bool,
    /// Which file of its node it is, where the recording says.
    pub inode: Option<Inode>,
    /// The offset in the file; the address itself for the kernel and for code made at run time.
    pub address: u64,
    /// Whether it is the kernel's or one of its modules'.
    pub is_kernel: bool,
    /// Whether it is code made at run time, which only `/tmp/perf-PID.map` names.
    pub is_jit: bool,
}

/// A function that holds a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// What it is called.
    pub name: Arc<str>,
    /// Where it begins, counted as the place's address is. Samples of one function are one
    /// place: that is what graphs show, and what keeps recordings small.
    pub start: u64,
}

/// What is needed to unwind stacks through a file. Addresses are those that its headers say.
#[derive(Debug, Clone)]
pub struct UnwindTables {
    /// Parts that are loaded: where they are in the file, to where, how long they are.
    pub code: Vec<(u64, u64, u64)>,
    /// Where `.text` is, and its size.
    pub text: Option<(u64, u64)>,
    /// Where `.got` is, and its size.
    pub got: Option<(u64, u64)>,
    /// Where `.eh_frame` is, and its bytes.
    pub eh_frame: (u64, Arc<[u8]>),
    /// The same of `.eh_frame_hdr`.
    pub eh_frame_hdr: Option<(u64, Arc<[u8]>)>,
}

impl UnwindTables {
    /// Where an offset of the file is loaded to. A mapping may begin with the page in which
    /// a part begins.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        const PAGE: u64 = 64 << 10;
        let mut code = self.code.iter();
        code.find_map(|&(from, address, size)| {
            let is_in = offset < from.checked_add(size)? && offset + PAGE > from;
            is_in.then(|| address.wrapping_add(offset.wrapping_sub(from)))
        })
    }

    /// What the tables take.
    pub(crate) fn n_bytes(&self) -> usize {
        let index = self.eh_frame_hdr.as_ref().map_or(0, |hdr| hdr.1.len());
        self.eh_frame.1.len() + index
    }
}

/// Who knows names of functions.
pub trait Symbols {
    /// Hears on which node a recording was made and of which release its kernel was, where it
    /// says so.
    fn recorded_on(&mut self, _node: Option<&str>, _release: Option<&str>) {}

    /// The function that holds this place; `None` where it is not known. Asked once for
    /// each place.
    fn resolve(&mut self, place: &Place<'_>) -> Option<Function>;

    /// What is needed to unwind stacks through the file of this place; `None` where it is not
    /// known. Asked once for each file.
    fn unwind_tables(&mut self, _place: &Place<'_>) -> Option<UnwindTables> {
        None
    }

    /// Hears that places will be asked for soon, so that it can begin to read what it needs
    /// for any of them.
    fn prepare(&mut self) {}

    /// Where a symbol of the kernel is by these names. The kernel may have been loaded
    /// elsewhere when it was recorded: what lies between is taken from every address that
    /// is asked for.
    fn kernel_symbol(&mut self, _name: &str) -> Option<u64> {
        None
    }
}

/// Knows no names.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoSymbols;

impl Symbols for NoSymbols {
    fn resolve(&mut self, _: &Place<'_>) -> Option<Function> {
        None
    }
}
