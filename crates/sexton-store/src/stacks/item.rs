//! What the log of stacks is made of: definitions, then the samples that use them.

use std::sync::Arc;

use sexton_model::moment::Moment;
use sexton_model::stack::{
    CodeKind, CoreState, Frame, FrameId, NameId, StackId, StackNode, StackSample, StackTables,
};

use crate::wal::bytes::{Broken, Bytes, put_str, put_varint, unzigzag, zigzag};

/// A longer name is cut. Templates of C++ can be longer than any file name.
pub(crate) const MAX_NAME_BYTES: usize = 4 << 10;
/// No item takes more.
pub(crate) const MAX_ITEM_BYTES: usize = MAX_NAME_BYTES + 16;

const NAME: u8 = 0;
const FRAME: u8 = 1;
const STACK: u8 = 2;
const SAMPLE: u8 = 3;

const INLINED: u8 = 4;
const KINDS: [CodeKind; 3] = [CodeKind::Kernel, CodeKind::User, CodeKind::Unknown];
const STATES: [CoreState; 5] = [
    CoreState::User,
    CoreState::Kernel,
    CoreState::Idle,
    CoreState::Unknown,
    CoreState::Waiting,
];

/// One thing in the log. Definitions are numbered in the order they come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    Name(Arc<str>),
    Frame(Frame),
    Stack(StackNode),
    Sample(StackSample),
}

/// The sample before this one in its batch, which most are alike.
#[derive(Debug, Default)]
pub(crate) struct Before {
    at_ns: u64,
    pid: u32,
}

/// Appends an item.
pub(crate) fn put(out: &mut Vec<u8>, item: &Item, before: &mut Before) {
    match item {
        Item::Name(name) => {
            out.push(NAME);
            put_str(out, name);
        }
        Item::Frame(frame) => {
            let kind = KINDS.iter().position(|kind| *kind == frame.kind);
            let inlined = if frame.is_inlined { INLINED } else { 0 };
            out.extend([FRAME, kind.unwrap_or(0) as u8 | inlined]);
            for name in [frame.symbol, frame.module] {
                put_varint(out, name.map_or(0, |name| u64::from(name.0) + 1));
            }
            put_varint(out, frame.address);
        }
        Item::Stack(node) => {
            out.push(STACK);
            put_stack(out, node.caller);
            put_varint(out, node.frame.0.into());
        }
        Item::Sample(sample) => put_sample(out, sample, before),
    }
}

/// The empty stack is 0, so that it is short.
fn put_stack(out: &mut Vec<u8>, stack: StackId) {
    put_varint(out, u64::from(stack.0.wrapping_add(1)));
}

fn put_sample(out: &mut Vec<u8>, sample: &StackSample, before: &mut Before) {
    let state = STATES.iter().position(|state| *state == sample.state);
    out.extend([SAMPLE, state.unwrap_or(0) as u8]);
    let at_ns = sample.at.as_ns();
    put_varint(out, zigzag(at_ns.wrapping_sub(before.at_ns).cast_signed()));
    put_varint(out, sample.cpu.into());
    put_varint(out, zigzag(i64::from(sample.pid) - i64::from(before.pid)));
    put_varint(out, zigzag(i64::from(sample.tid) - i64::from(sample.pid)));
    put_varint(out, sample.comm.0.into());
    put_varint(out, sample.cgroup.map_or(0, |name| u64::from(name.0) + 1));
    put_varint(out, sample.event.0.into());
    put_varint(out, sample.weight);
    put_stack(out, sample.stack);
    *before = Before {
        at_ns,
        pid: sample.pid,
    };
}

/// Reads an item whose definitions are in `known`; what it refers to is there.
pub(crate) fn take(
    bytes: &mut Bytes<'_>,
    known: &StackTables,
    before: &mut Before,
) -> Result<Item, Broken> {
    let name = |bytes: &mut Bytes<'_>| number(bytes, known.names.len()).map(NameId);
    let maybe = |bytes: &mut Bytes<'_>| {
        let one_more = number(bytes, known.names.len() + 1)?;
        Ok(one_more.checked_sub(1).map(NameId))
    };
    match bytes.byte()? {
        NAME => {
            let name = bytes.str()?;
            (name.len() <= MAX_NAME_BYTES)
                .then(|| Item::Name(name.into()))
                .ok_or(Broken)
        }
        FRAME => {
            let kind = bytes.byte()?;
            Ok(Item::Frame(Frame {
                kind: *KINDS.get(usize::from(kind & !INLINED)).ok_or(Broken)?,
                symbol: maybe(bytes)?,
                module: maybe(bytes)?,
                address: bytes.varint()?,
                is_inlined: kind & INLINED != 0,
            }))
        }
        STACK => Ok(Item::Stack(StackNode {
            caller: stack(bytes, known)?,
            frame: FrameId(number(bytes, known.frames.len())?),
        })),
        SAMPLE => {
            let state = *STATES.get(usize::from(bytes.byte()?)).ok_or(Broken)?;
            let at_ns = before
                .at_ns
                .wrapping_add(unzigzag(bytes.varint()?).cast_unsigned());
            let cpu = u32::try_from(bytes.varint()?).map_err(|_| Broken)?;
            let pid = near(bytes, before.pid)?;
            let sample = StackSample {
                at: Moment::from_ns(at_ns),
                cpu,
                pid,
                tid: near(bytes, pid)?,
                comm: name(bytes)?,
                cgroup: maybe(bytes)?,
                state,
                event: name(bytes)?,
                weight: bytes.varint()?,
                stack: stack(bytes, known)?,
            };
            *before = Before { at_ns, pid };
            Ok(Item::Sample(sample))
        }
        _ => Err(Broken),
    }
}

/// A number below `limit`.
fn number(bytes: &mut Bytes<'_>, limit: usize) -> Result<u32, Broken> {
    let number = bytes.varint()?;
    let there = usize::try_from(number).is_ok_and(|number| number < limit);
    u32::try_from(number).ok().filter(|_| there).ok_or(Broken)
}

fn stack(bytes: &mut Bytes<'_>, known: &StackTables) -> Result<StackId, Broken> {
    Ok(StackId(
        number(bytes, known.stacks.len() + 1)?.wrapping_sub(1),
    ))
}

fn near(bytes: &mut Bytes<'_>, other: u32) -> Result<u32, Broken> {
    let by = unzigzag(bytes.varint()?);
    let number = i64::from(other).checked_add(by).ok_or(Broken)?;
    u32::try_from(number).map_err(|_| Broken)
}
