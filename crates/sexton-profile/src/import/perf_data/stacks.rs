//! Turns addresses into frames and stacks.

use ahash::{AHashMap, RandomState};
use sexton_model::stack::{CodeKind, Frame, FrameId, NameId, StackId};

use super::fields::Fields;
use super::machine::{KERNEL_MODE, Machine, USER_MODE};
use super::sample::Sample;
use crate::symbols::{Place, Symbols};
use crate::tables::TableBuilder;

/// Chains whose stack is remembered, so that most samples need no look at single frames.
const N_KNOWN_CHAINS: usize = 1 << 15;

/// Processes whose last stack is remembered.
const N_RECENT: usize = 256;

/// Longer chains are not remembered; the kernel's usual limit is 127.
const MAX_KNOWN_CHAIN: usize = 256 * 8;

/// Frames that are remembered by address; then it starts anew.
const MAX_KNOWN_FRAMES: usize = 1 << 20;

/// Marks in a chain: whose addresses follow.
const CONTEXT_KERNEL: u64 = (-128i64).cast_unsigned();
const CONTEXT_USER: u64 = (-512i64).cast_unsigned();
const CONTEXT_MAX: u64 = (-4095i64).cast_unsigned();

/// What was turned before.
#[derive(Default)]
pub(super) struct Stacks {
    chains: Vec<Option<Chain>>,
    hasher: RandomState,
    kernel_frames: AHashMap<u64, FrameId>,
    /// By file and offset; those of code made at run time also by process.
    user_frames: AHashMap<(NameId, u64, u32), FrameId>,
    recent: Vec<Recent>,
    addresses: Vec<(CodeKind, u64)>,
    /// What to add to an address of the kernel to find it in today's names.
    slide: Option<u64>,
}

/// The last stack of a process: the next one mostly has the same callers.
#[derive(Default)]
struct Recent {
    pid: u32,
    stamp: u32,
    /// Outermost first.
    addresses: Vec<(CodeKind, u64)>,
    stacks: Vec<StackId>,
}

struct Chain {
    pid: u32,
    mode: u16,
    stamp: u32,
    ip: Option<u64>,
    addresses: Box<[u8]>,
    stack: StackId,
}

/// Whom to ask while a chain is turned.
pub(super) struct Sources<'a> {
    pub(super) machine: &'a Machine,
    pub(super) tables: &'a mut TableBuilder,
    pub(super) symbols: &'a mut dyn Symbols,
    /// Whether places in one function are told apart.
    pub(super) keeps_addresses: bool,
}

impl Sources<'_> {
    /// The address that goes into a frame.
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
    /// The stack of a sample. `mode` says whose code ran.
    pub(super) fn stack(
        &mut self,
        from: &mut Sources<'_>,
        sample: &Sample<'_>,
        mode: u16,
    ) -> StackId {
        let stamp = from.machine.maps(sample.pid).map_or(0, |maps| maps.stamp);
        let user_ip = sample.user_ip.filter(|_| sample.has_user_stack);
        let ip = user_ip.or(sample.ip.filter(|_| sample.callchain.is_empty()));
        let key = (stamp, mode, ip, sample.callchain);
        let hash = self.hasher.hash_one(key);
        let slot = usize::try_from(hash % N_KNOWN_CHAINS as u64).unwrap_or(0);
        if self.chains.is_empty() {
            self.chains.resize_with(N_KNOWN_CHAINS, || None);
        }
        if let Some(Some(chain)) = self.chains.get(slot)
            && (chain.stamp, chain.mode, chain.ip, &*chain.addresses) == key
            // Code made at run time is named by the process.
            && chain.pid == sample.pid
        {
            return chain.stack;
        }
        let stack = self.turn(from, sample, mode, ip, stamp);
        if sample.callchain.len() <= MAX_KNOWN_CHAIN {
            self.chains[slot] = Some(Chain {
                pid: sample.pid,
                mode,
                stamp,
                ip,
                addresses: sample.callchain.into(),
                stack,
            });
        }
        stack
    }

    fn turn(
        &mut self,
        from: &mut Sources<'_>,
        sample: &Sample<'_>,
        mode: u16,
        ip: Option<u64>,
        stamp: u32,
    ) -> StackId {
        let mut addresses = std::mem::take(&mut self.addresses);
        chain(sample, mode, ip, &mut addresses);
        addresses.reverse();
        if self.recent.is_empty() {
            self.recent.resize_with(N_RECENT, Recent::default);
        }
        let slot = sample.pid as usize % N_RECENT;
        let mut recent = std::mem::take(&mut self.recent[slot]);
        let is_same = (recent.pid, recent.stamp) == (sample.pid, stamp);
        let both = recent.addresses.iter().zip(&addresses);
        let n_common = both.take_while(|(old, new)| is_same && old == new).count();
        recent.stacks.truncate(n_common);
        let mut stack = recent.stacks.last().copied().unwrap_or(StackId::EMPTY);
        for &(kind, address) in &addresses[n_common..] {
            let frame = self.frame(from, sample.pid, kind, address);
            stack = from.tables.push(stack, frame);
            recent.stacks.push(stack);
        }
        (recent.pid, recent.stamp) = (sample.pid, stamp);
        self.addresses = std::mem::replace(&mut recent.addresses, addresses);
        self.recent[slot] = recent;
        stack
    }

    fn frame(&mut self, from: &mut Sources<'_>, pid: u32, kind: CodeKind, address: u64) -> FrameId {
        if kind == CodeKind::Kernel {
            return self.kernel_frame(from, address);
        }
        let map = from.machine.maps(pid).and_then(|maps| maps.find(address));
        let Some(map) = map.filter(|_| kind == CodeKind::User) else {
            let unmapped = from.kept(address);
            return from.tables.frame(Frame {
                kind,
                symbol: None,
                module: None,
                address: unmapped,
                is_inlined: false,
            });
        };
        let offset = if map.is_jit {
            address
        } else {
            (address - map.start).wrapping_add(map.offset)
        };
        let key = (map.module, offset, if map.is_jit { pid } else { 0 });
        if let Some(&frame) = self.user_frames.get(&key) {
            return frame;
        }
        let function = from.symbols.resolve(&Place {
            pid,
            module: from.tables.tables().name(map.module),
            build_id: map.build_id.as_deref(),
            address: offset,
            is_kernel: false,
            is_jit: map.is_jit,
        });
        let address = function.as_ref().map_or(offset, |function| function.start);
        let frame = Frame {
            kind,
            symbol: function.map(|function| from.tables.name(&function.name)),
            module: Some(map.module),
            address: from.kept(address),
            is_inlined: false,
        };
        let frame = from.tables.frame(frame);
        if self.user_frames.len() >= MAX_KNOWN_FRAMES {
            self.user_frames.clear();
        }
        self.user_frames.insert(key, frame);
        frame
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
        let start = function.map_or(address, |(_, start)| start);
        let frame = Frame {
            kind: CodeKind::Kernel,
            symbol: function.map(|(name, _)| name),
            module,
            address: from.kept(start),
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
            address: address.wrapping_add(slide),
            is_kernel: true,
            is_jit: false,
        })?;
        let start = function.start.wrapping_sub(slide);
        Some((from.tables.name(&function.name), start))
    }
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
