//! One sample, field by field in the order in which the kernel writes them.

use super::attr::{Attr, has};
use super::fields::Fields;

/// What a sample holds, of what is wanted here.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Sample<'a> {
    pub(super) ip: Option<u64>,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) time: u64,
    pub(super) cpu: Option<u32>,
    pub(super) period: Option<u64>,
    /// Addresses, 8 bytes each, innermost first, with marks between kernel and user.
    pub(super) callchain: &'a [u8],
    /// Where user code was, when its stack was copied.
    pub(super) user_ip: Option<u64>,
    pub(super) has_user_stack: bool,
    pub(super) cgroup: Option<u64>,
    /// Whether it is longer than what its event says it holds.
    pub(super) is_too_long: bool,
}

/// `branch_sample_type`: each list begins with an index; each entry has counters.
const BRANCH_HW_INDEX: u64 = 1 << 17;
const BRANCH_COUNTERS: u64 = 1 << 19;

/// All bits of `sample_type` that are known here, and those of what comes behind the chain.
const KNOWN: u64 = (1 << 25) - 1;
const REST: u64 = has::RAW
    | has::BRANCH_STACK
    | has::REGS_USER
    | has::STACK_USER
    | has::WEIGHT
    | has::WEIGHT_STRUCT
    | has::DATA_SRC
    | has::TRANSACTION
    | has::REGS_INTR
    | has::PHYS_ADDR
    | has::CGROUP
    | has::DATA_PAGE_SIZE
    | has::CODE_PAGE_SIZE
    | has::AUX;

impl<'a> Sample<'a> {
    /// `None` when it is cut short.
    pub(super) fn parse(attr: &Attr, bytes: &'a [u8]) -> Option<Self> {
        let kind = attr.sample_type;
        let mut fields = Fields(bytes);
        let mut sample = Self::default();
        sample.fixed(kind, &mut fields)?;
        if kind & has::READ != 0 {
            skip_read(attr.read_format, &mut fields)?;
        }
        if kind & has::CALLCHAIN != 0 {
            let n = fields.u64()?;
            sample.callchain = fields.bytes(usize::try_from(n.checked_mul(8)?).ok()?)?;
        }
        if kind & REST != 0 {
            sample.rest(attr, &mut fields)?;
        }
        sample.is_too_long = !fields.0.is_empty() && kind & !KNOWN == 0;
        Some(sample)
    }

    fn fixed(&mut self, kind: u64, fields: &mut Fields<'a>) -> Option<()> {
        if kind & has::IDENTIFIER != 0 {
            fields.u64()?;
        }
        if kind & has::IP != 0 {
            self.ip = Some(fields.u64()?);
        }
        if kind & has::TID != 0 {
            self.pid = fields.u32()?;
            self.tid = fields.u32()?;
        }
        if kind & has::TIME != 0 {
            self.time = fields.u64()?;
        }
        fields.skip_words(u64::from(
            (kind & (has::ADDR | has::ID | has::STREAM_ID)).count_ones(),
        ))?;
        if kind & has::CPU != 0 {
            self.cpu = Some(fields.u32()?);
            fields.u32()?;
        }
        if kind & has::PERIOD != 0 {
            self.period = Some(fields.u64()?);
        }
        Some(())
    }

    fn rest(&mut self, attr: &Attr, fields: &mut Fields<'a>) -> Option<()> {
        let kind = attr.sample_type;
        if kind & has::RAW != 0 {
            let size = fields.u32()? as usize;
            fields.bytes(size)?;
        }
        if kind & has::BRANCH_STACK != 0 {
            skip_branches(attr.branch_sample_type, fields)?;
        }
        if kind & has::REGS_USER != 0 {
            self.user_ip = registers(attr.regs_user, fields)?;
        }
        if kind & has::STACK_USER != 0 {
            let size = fields.u64()?;
            if size > 0 {
                fields.bytes(usize::try_from(size).ok()?)?;
                fields.u64()?;
            }
            self.has_user_stack = size > 0;
        }
        let words = has::WEIGHT | has::WEIGHT_STRUCT | has::DATA_SRC | has::TRANSACTION;
        fields.skip_words(u64::from((kind & words).count_ones()))?;
        if kind & has::REGS_INTR != 0 {
            registers(attr.regs_intr, fields)?;
        }
        if kind & has::PHYS_ADDR != 0 {
            fields.u64()?;
        }
        if kind & has::CGROUP != 0 {
            self.cgroup = Some(fields.u64()?);
        }
        let sizes = has::DATA_PAGE_SIZE | has::CODE_PAGE_SIZE;
        fields.skip_words(u64::from((kind & sizes).count_ones()))?;
        if kind & has::AUX != 0 {
            let size = fields.u64()?;
            fields.bytes(usize::try_from(size).ok()?)?;
        }
        Some(())
    }
}

/// Passes over the registers that `mask` names; the instruction pointer is among them.
#[allow(
    clippy::option_option,
    reason = "cut short, and no instruction pointer, are two things"
)]
fn registers(mask: u64, fields: &mut Fields<'_>) -> Option<Option<u64>> {
    let abi = fields.u64()?;
    if abi == 0 {
        return Some(None);
    }
    let values = fields.bytes(mask.count_ones() as usize * 8)?;
    // arm64 has more registers than x86 knows, and its own place for it (PC is 32, IP is 8).
    let place = if mask >> 32 & 1 == 1 { 32 } else { 8 };
    if mask >> place & 1 == 0 {
        return Some(None);
    }
    let before = (mask & ((1 << place) - 1)).count_ones() as usize;
    Some(values.get(before * 8..).and_then(|rest| Fields(rest).u64()))
}

pub(super) fn skip_read(format: u64, fields: &mut Fields<'_>) -> Option<()> {
    const TIMES: u64 = 0b11;
    const ID_AND_LOST: u64 = 1 << 2 | 1 << 4;
    const GROUP: u64 = 1 << 3;
    let times = u64::from((format & TIMES).count_ones());
    let each = 1 + u64::from((format & ID_AND_LOST).count_ones());
    if format & GROUP == 0 {
        return fields.skip_words(times + each);
    }
    let n = fields.u64()?;
    fields.skip_words(times)?;
    fields.skip_words(n.checked_mul(each)?)
}

fn skip_branches(kind: u64, fields: &mut Fields<'_>) -> Option<()> {
    let n = fields.u64()?;
    if kind & BRANCH_HW_INDEX != 0 {
        fields.u64()?;
    }
    fields.skip_words(n.checked_mul(3)?)?;
    if kind & BRANCH_COUNTERS != 0 {
        fields.skip_words(n)?;
    }
    Some(())
}
