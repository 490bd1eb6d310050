//! What all loaders share: owning a skeleton together with the memory it borrows, and
//! hearing what libbpf says when the kernel refuses.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use libbpf_rs::skel::SkelBuilder;
use libbpf_rs::{Link, OpenObject, PrintLevel, ProgramMut};

use crate::LoadError;
use crate::probe;
use crate::types;

/// A program, as its errors name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    /// Its stem.
    pub(crate) name: &'static str,
    /// Whether it needs the kernel to describe its types.
    pub(crate) needs_types: bool,
}

/// A skeleton that is loaded, and the object it borrows from.
pub(crate) struct Loaded<S> {
    skel: ManuallyDrop<S>,
    object: *mut MaybeUninit<OpenObject>,
}

// SAFETY: libbpf ties no object to a thread, and the pointer is to a box of our own.
unsafe impl<S> Send for Loaded<S> {}

impl<S> Loaded<S> {
    /// Loads a program into the kernel. The skeleton that `open` returns may borrow from
    /// what it is given, and must not be taken out of this owner.
    pub(crate) fn load(
        program: Program,
        open: impl FnOnce(&'static mut MaybeUninit<OpenObject>) -> libbpf_rs::Result<S>,
    ) -> Result<Self, LoadError> {
        Self::load_if(program, |_| Ok(()), open)
    }

    /// The same, if the kernel passes a check of its own first, which costs less than to load it.
    pub(crate) fn load_if(
        program: Program,
        check: impl FnOnce(Program) -> Result<(), LoadError>,
        open: impl FnOnce(&'static mut MaybeUninit<OpenObject>) -> libbpf_rs::Result<S>,
    ) -> Result<Self, LoadError> {
        if let Some(error) = rejected_before(program) {
            return Err(error);
        }
        if !probe::shares_memory() {
            return Err(LoadError::NoSharedMemory);
        }
        listen();
        if let Err(error) = check(program) {
            heard();
            remember(program, &error);
            return Err(error);
        }
        let object = Box::into_raw(Box::new(MaybeUninit::uninit()));
        // SAFETY: `object` comes from `Box::into_raw` just above and is only freed in
        // `Drop`, after the skeleton that borrows it, or below when there is none.
        match open(unsafe { &mut *object }) {
            Ok(skel) => Ok(Self {
                skel: ManuallyDrop::new(skel),
                object,
            }),
            Err(source) => {
                // SAFETY: loading failed, so nothing borrows `object` any more.
                drop(unsafe { Box::from_raw(object) });
                let error = LoadError::of(program, source, &heard());
                remember(program, &error);
                Err(error)
            }
        }
    }
}

impl<S> Deref for Loaded<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.skel
    }
}

impl<S> DerefMut for Loaded<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.skel
    }
}

impl<S> Drop for Loaded<S> {
    fn drop(&mut self) {
        // SAFETY: `skel` is dropped once, here, and before the object it borrows.
        unsafe {
            ManuallyDrop::drop(&mut self.skel);
            drop(Box::from_raw(self.object));
        }
    }
}

/// Programs that this kernel does not take. A verifier may look at one for seconds before it
/// says no, and it would say the same again.
static REJECTED: Mutex<BTreeMap<&'static str, LoadError>> = Mutex::new(BTreeMap::new());

fn rejected_before(program: Program) -> Option<LoadError> {
    let rejected = REJECTED.lock().unwrap_or_else(PoisonError::into_inner);
    rejected.get(program.name)?.for_good()
}

fn remember(program: Program, error: &LoadError) {
    if let Some(error) = error.for_good() {
        let mut rejected = REJECTED.lock().unwrap_or_else(PoisonError::into_inner);
        rejected.insert(program.name, error);
    }
}

/// A skeleton's builder that knows where the kernel's types are described.
pub(crate) fn builder<'object, B>() -> libbpf_rs::Result<B>
where
    B: SkelBuilder<'object> + Default,
{
    let mut builder = B::default();
    if let Some(file) = types::file() {
        builder.object_builder_mut().btf_custom_path(file)?;
    }
    Ok(builder)
}

/// Attaches the parts of a program where they say they belong, in this order.
pub(crate) fn attach<'part>(
    program: Program,
    parts: impl IntoIterator<Item = &'part ProgramMut<'static>>,
) -> Result<Vec<Link>, LoadError> {
    let parts = parts.into_iter();
    parts.map(|part| hold(program, || part.attach())).collect()
}

/// Attaches a part of a program, and says why not.
pub(crate) fn hold(
    program: Program,
    attach: impl FnOnce() -> libbpf_rs::Result<Link>,
) -> Result<Link, LoadError> {
    listen();
    attach().map_err(|source| LoadError::of(program, source, &heard()))
}

thread_local! {
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Has libbpf's warnings kept for the error message instead of printed.
fn listen() {
    SAID.with_borrow_mut(String::clear);
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, line| {
        SAID.with_borrow_mut(|said| said.push_str(&line));
    })));
}

/// What libbpf has said since [`listen`].
pub(crate) fn heard() -> String {
    SAID.take()
}
