//! Turns addresses into frames and stacks.

use std::sync::Arc;

use ahash::AHashMap;
use sexton_model::stack::{CodeKind, Frame, FrameId, NameId, StackId};

use super::chains::{Chain, Chains};
use super::fields::Fields;
use super::machine::{KERNEL_MODE, Machine, USER_MODE};
use super::maps::Map;
use super::sample::Sample;
use super::unwind::Unwinding;
use crate::symbols::{Place, Symbols};
use crate::tables::TableBuilder;

/// Frames that are remembered by file and offset; then it starts anew.
const MAX_KNOWN_FRAMES: usize = 1 << 20;

/// Frames that are at hand by address, without a look at what is mapped there: as many as
/// fit a core's cache.
const N_NEAR: usize = 1 << 15;

/// The stamp of addresses in the kernel.
const KERNEL_STAMP: u32 = u32::MAX;

/// Marks in a chain: whose addresses follow.
const CONTEXT_KERNEL: u64 = (-128i64).cast_unsigned();
const CONTEXT_USER: u64 = (-512i64).cast_unsigned();
const CONTEXT_MAX: u64 = (-4095i64).cast_unsigned();

/// What was turned before.
#[derive(Default)]
pub(super) struct Stacks {
    kernel_frames: AHashMap<u64, FrameId>,
    /// By file and offset; those of code made at run time also by process.
    user_frames: AHashMap<(u32, u64, u32), FrameId>,
    near: Vec<Near>,
    chains: Chains,
    /// Those of the callers of a sample, outermost first.
    callers: Vec<Chain>,
    names: Names,
    addresses: Vec<(CodeKind, u64)>,
    unwinding: Unwinding,
    unwound: Vec<u64>,
    /// What to add to an address of the kernel to find it in today's names.
    slide: Option<u64>,
}

/// A frame that was asked for lately.
#[derive(Clone, Copy, Default)]
struct Near {
    address: u64,
    /// Of the memory it is in; 0 is nobody's.
    stamp: u32,
    frame: u32,
}

/// Names of functions by where they are in memory: each is read once, however many places
/// the function has.
#[derive(Default)]
struct Names(AHashMap<usize, (Arc<str>, NameId)>);

impl Names {
    fn number(&mut self, tables: &mut TableBuilder, name: Arc<str>) -> NameId {
        if self.0.len() >= MAX_KNOWN_FRAMES {
            self.0.clear();
        }
        // What is kept here stays where it is, so no other name has the same place.
        let known = self.0.entry(name.as_ptr().addr());
        known
            .or_insert_with(|| {
                let number = tables.name(&name);
                (name, number)
            })
            .1
    }
}

/// Whom to ask while a chain is turned.
pub(super) struct Sources<'a> {
    pub(super) machine: &'a Machine,
    pub(super) tables: &'a mut TableBuilder,
    pub(super) symbols: &'a mut dyn Symbols,
    /// Whether places in no function that is known are told apart.
    pub(super) keeps_addresses: bool,
}

impl Sources<'_> {
    /// The address of a place without a name, as it goes into a frame.
    fn kept(&self, address: u64) -> u64 {
        if self.keeps_addresses { address } else { 0 }
    }

    /// How far the kernel was moved since it was recorded.
    fn slide(&mut self) -> u64 {
        let moved = self.machine.kernel_start().and_then(|(symbol, then)| {
            let now = self.symbols.kernel_symbol(symbol)?;
            Some(now.wrapping_sub(then))
        });
        moved.unwrap_or(0)
    }
}

impl Stacks {
    /// The stack of a sample, and whether all of a copied user stack is in it. `mode` says
    /// whose code ran.
    pub(super) fn stack(
        &mut self,
        from: &mut Sources<'_>,
        sample: &Sample<'_>,
        mode: u16,
    ) -> (StackId, bool) {
        let stamp = from.machine.maps(sample.pid).map_or(0, |maps| maps.stamp);
        let user_ip = sample.user_ip.filter(|_| sample.has_user_stack);
        let ip = user_ip.or(sample.ip.filter(|_| sample.callchain.is_empty()));
        let mut addresses = std::mem::take(&mut self.addresses);
        let mut is_whole = !sample.has_user_stack;
        self.unwound.clear();
        if sample.has_user_stack
            && let Some(stack) = &sample.user_stack
        {
            let memory = (sample.pid, stamp);
            let unwound = &mut self.unwound;
            is_whole = self.unwinding.unwind(from, memory, stack, unwound);
        }
        chain(sample, mode, ip, &mut addresses);
        // The first is where user code was, which is in the chain.
        let callers = self.unwound.iter().skip(1);
        addresses.extend(callers.map(|address| (CodeKind::User, *address)));
        addresses.reverse();
        // In the kernel, whoever called it, addresses mean the same.
        let is_users = addresses.iter().any(|(kind, _)| *kind != CodeKind::Kernel);
        let mut chain = self.chains.begin(is_users.then_some((sample.pid, stamp)));
        self.callers.clear();
        for &(kind, address) in addresses.iter().take(addresses.len().saturating_sub(1)) {
            chain = self.chains.add(chain, kind, address);
            self.callers.push(chain);
        }
        let known = |n: usize| Some((n + 1, self.chains.get(self.callers[n])?));
        let known = (0..self.callers.len()).rev().find_map(known);
        let (n_known, mut stack) = known.unwrap_or((0, StackId::EMPTY));
        for (at, &(kind, address)) in addresses.iter().enumerate().skip(n_known) {
            let frame = self.frame(from, (sample.pid, stamp), kind, address);
            stack = from.tables.push(stack, frame);
            if let Some(chain) = self.callers.get(at) {
                self.chains.set(*chain, stack);
            }
        }
        self.addresses = addresses;
        (stack, is_whole)
    }

    fn frame(
        &mut self,
        from: &mut Sources<'_>,
        (pid, stamp): (u32, u32),
        kind: CodeKind,
        address: u64,
    ) -> FrameId {
        let stamp = match kind {
            CodeKind::Kernel => KERNEL_STAMP,
            CodeKind::User => stamp,
            CodeKind::Unknown => 0,
        };
        if self.near.is_empty() {
            self.near.resize(N_NEAR, Near::default());
        }
        let slot = near_slot(address, stamp);
        let near = self.near[slot];
        if (near.address, near.stamp) == (address, stamp) && stamp != 0 {
            return FrameId(near.frame);
        }
        let (frame, is_lasting) = match kind {
            CodeKind::Kernel => (self.kernel_frame(from, address), true),
            kind => self.mapped_frame(from, pid, kind, address),
        };
        if is_lasting && stamp != 0 {
            self.near[slot] = Near {
                address,
                stamp,
                frame: frame.0,
            };
        }
        frame
    }

    /// The frame of an address of a process, and whether all that have the same memory have
    /// the same frame there: code made at run time is named by the process.
    fn mapped_frame(
        &mut self,
        from: &mut Sources<'_>,
        pid: u32,
        kind: CodeKind,
        address: u64,
    ) -> (FrameId, bool) {
        let map = from.machine.maps(pid).and_then(|maps| maps.find(address));
        let Some(map) = map.filter(|_| kind == CodeKind::User) else {
            let unmapped = from.kept(address);
            let frame = from.tables.frame(Frame {
                kind,
                symbol: None,
                module: None,
                address: unmapped,
                is_inlined: false,
            });
            return (frame, true);
        };
        let offset = if map.is_jit {
            address
        } else {
            (address - map.start).wrapping_add(map.offset)
        };
        let key = (map.file, offset, if map.is_jit { pid } else { 0 });
        if let Some(&frame) = self.user_frames.get(&key) {
            return (frame, !map.is_jit);
        }
        let frame = self.user_frame(from, pid, map, offset);
        if self.user_frames.len() >= MAX_KNOWN_FRAMES {
            self.user_frames.clear();
        }
        self.user_frames.insert(key, frame);
        (frame, !map.is_jit)
    }

    fn user_frame(&mut self, from: &mut Sources<'_>, pid: u32, map: &Map, offset: u64) -> FrameId {
        let function = from.symbols.resolve(&Place {
            pid,
            module: from.tables.tables().name(map.module),
            build_id: map.build_id.as_deref(),
            is_id_of_mapping: map.is_id_of_mapping,
            inode: map.inode,
            address: offset,
            is_kernel: false,
            is_jit: map.is_jit,
        });
        let (symbol, address) = match function {
            Some(function) => {
                let name = self.names.number(from.tables, function.name);
                (Some(name), function.start)
            }
            None => (None, from.kept(offset)),
        };
        from.tables.frame(Frame {
            kind: CodeKind::User,
            symbol,
            module: Some(map.module),
            address,
            is_inlined: false,
        })
    }

    fn kernel_frame(&mut self, from: &mut Sources<'_>, address: u64) -> FrameId {
        if let Some(&frame) = self.kernel_frames.get(&address) {
            return frame;
        }
        let made = from.machine.made_code(address).map(str::to_owned);
        let map = from.machine.kernel_map(address);
        let module = match (&made, map) {
            (Some(name), _) => Some(from.tables.name(name)),
            (None, map) => map.map(|map| map.module),
        };
        let function = match made {
            Some(name) => Some((from.tables.name(&name), address)),
            None => self.kernel_function(from, address, module),
        };
        let start = function.map_or_else(|| from.kept(address), |(_, start)| start);
        let frame = Frame {
            kind: CodeKind::Kernel,
            symbol: function.map(|(name, _)| name),
            module,
            address: start,
            is_inlined: false,
        };
        let frame = from.tables.frame(frame);
        if self.kernel_frames.len() >= MAX_KNOWN_FRAMES {
            self.kernel_frames.clear();
        }
        self.kernel_frames.insert(address, frame);
        frame
    }

    /// What the names of today say, in the addresses of the recording.
    fn kernel_function(
        &mut self,
        from: &mut Sources<'_>,
        address: u64,
        module: Option<NameId>,
    ) -> Option<(NameId, u64)> {
        let slide = *self.slide.get_or_insert_with(|| from.slide());
        let map = from.machine.kernel_map(address);
        let function = from.symbols.resolve(&Place {
            pid: 0,
            module: module.map_or("", |name| from.tables.tables().name(name)),
            build_id: map.and_then(|map| map.build_id.as_deref()),
            is_id_of_mapping: map.is_some_and(|map| map.is_id_of_mapping),
            inode: None,
            address: address.wrapping_add(slide),
            is_kernel: true,
            is_jit: false,
        })?;
        let start = function.start.wrapping_sub(slide);
        Some((self.names.number(from.tables, function.name), start))
    }
}

/// Where a frame is looked for first.
fn near_slot(address: u64, stamp: u32) -> usize {
    // Knuth's multiplicative hash: the upper bits depend on all others.
    let mixed = (address ^ u64::from(stamp) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as usize % N_NEAR
}

/// The addresses of a sample and whose they are, innermost first.
fn chain(sample: &Sample<'_>, mode: u16, ip: Option<u64>, addresses: &mut Vec<(CodeKind, u64)>) {
    addresses.clear();
    let mut context = kind_of_mode(mode);
    for address in sample.callchain.chunks_exact(8) {
        let address = Fields(address).u64().unwrap_or(0);
        match address {
            CONTEXT_KERNEL => context = CodeKind::Kernel,
            CONTEXT_USER => context = CodeKind::User,
            CONTEXT_MAX.. => context = CodeKind::Unknown,
            _ => addresses.push((context, address)),
        }
    }
    if let Some(ip) = ip {
        // A user stack that was copied has only its innermost frame; without any chain the
        // sample's own address is all there is.
        let is_user = sample.has_user_stack || mode == USER_MODE;
        let kind = if is_user {
            CodeKind::User
        } else {
            kind_of_mode(mode)
        };
        addresses.push((kind, ip));
    }
}

fn kind_of_mode(mode: u16) -> CodeKind {
    match mode {
        KERNEL_MODE => CodeKind::Kernel,
        USER_MODE => CodeKind::User,
        _ => CodeKind::Unknown,
    }
}
