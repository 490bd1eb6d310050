//! The code of one build of a file: which function a place in it lies in, and what that is
//! called. No file stays open; the caller opens it again for a name.

use std::sync::{Arc, Mutex, PoisonError};

use ahash::AHashMap;

use crate::demangle::readable;
use crate::elf::{Function, Functions, Headers, Limits, Plt};
use crate::source::Source;

/// Names that are kept of one file.
const MAX_NAMES: usize = 8192;

/// Which file to open for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The program or library itself.
    Own,
    /// The file that holds what was stripped from it.
    Debug,
}

/// A place that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The offset in the file at which its function begins.
    pub start: u64,
    at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Function(Part, Function),
    Stub(u64),
}

/// The code of one build of a file.
#[derive(Debug)]
pub struct Code {
    /// Of the file itself: those of a debug file say nothing about where code is.
    segments: Vec<crate::elf::Segment>,
    own: Option<Functions>,
    debug: Option<Functions>,
    plt: Plt,
    names: Mutex<AHashMap<u64, Arc<str>>>,
}

impl Code {
    /// Reads the functions of a file, and those of its debug file.
    pub fn read(
        headers: &Headers,
        source: &dyn Source,
        debug: Option<(&Headers, &dyn Source)>,
        limits: Limits,
    ) -> Self {
        let base = headers.base();
        let functions = |headers: &Headers, source| headers.functions_from(source, base?, limits);
        Self {
            segments: headers.segments.clone(),
            own: functions(headers, source),
            debug: debug.and_then(|(headers, source)| functions(headers, source)),
            plt: Plt::read(headers, source),
            names: Mutex::default(),
        }
    }

    /// What it takes in memory, without names.
    pub fn bytes(&self) -> usize {
        let tables = [&self.own, &self.debug].into_iter().flatten();
        tables.map(Functions::bytes).sum()
    }

    /// The function that a place in the file lies in. What the debug file does not know may
    /// still be exported by the file itself.
    pub fn find(&self, offset: u64) -> Option<Found> {
        let inside = |segment: &&crate::elf::Segment| {
            let within = offset.checked_sub(segment.offset);
            within.is_some_and(|within| within < segment.size)
        };
        let segment = self.segments.iter().find(inside)?;
        let address = segment.address.checked_add(offset - segment.offset)?;
        let of = |part, functions: &Option<Functions>| {
            let found = functions.as_ref()?.find(address)?;
            Some((found.start, At::Function(part, found)))
        };
        let stub = || self.plt.find(address).map(|stub| (stub, At::Stub(stub)));
        // The nearest function of both, and of two at one place that of the debug file.
        let both = [of(Part::Own, &self.own), of(Part::Debug, &self.debug)];
        let nearest = || both.into_iter().flatten().max_by_key(|(start, _)| *start);
        let (start, at) = stub().or_else(nearest)?;
        // One that begins in another segment has no offset that is counted from here.
        let start = start.wrapping_sub(segment.address);
        Some(Found {
            start: start.wrapping_add(segment.offset),
            at,
        })
    }

    /// What a place that was found here is called. `open` opens the file for a name that was
    /// not asked for yet.
    pub fn name<S: Source>(
        &self,
        found: Found,
        open: impl FnOnce(Part) -> Option<S>,
    ) -> Option<Arc<str>> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(&found.start) {
            return Some(Arc::clone(known));
        }
        let name = match found.at {
            At::Function(part, function) => {
                let functions = match part {
                    Part::Own => &self.own,
                    Part::Debug => &self.debug,
                };
                readable(&functions.as_ref()?.symbol(&open(part)?, function)?)
            }
            At::Stub(stub) => readable(&self.plt.symbol(&open(Part::Own)?, stub)?) + "@plt",
        };
        let name: Arc<str> = name.into();
        if names.len() >= MAX_NAMES {
            names.clear();
        }
        names.insert(found.start, Arc::clone(&name));
        Some(name)
    }
}
