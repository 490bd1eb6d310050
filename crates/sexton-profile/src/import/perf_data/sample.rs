//! One sample, field by field in the order in which the kernel writes them.

use super::attr::{Attr, has};
use super::fields::Fields;
use super::group::Group;

/// What a sample holds, of what is wanted here.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Sample<'a> {
    pub(super) ip: Option<u64>,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) time: u64,
    pub(super) cpu: Option<u32>,
    pub(super) period: Option<u64>,
    /// What it says of the events of its group, if it is of one.
    pub(super) group: Option<Group<'a>>,
    /// Addresses, 8 bytes each, innermost first, with marks between kernel and user.
    pub(super) callchain: &'a [u8],
    /// Where user code was, when its stack was copied.
    pub(super) user_ip: Option<u64>,
    pub(super) has_user_stack: bool,
    /// What is needed to unwind it, of recordings that can be.
    pub(super) user_stack: Option<UserStack<'a>>,
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
            sample.group = Group::read(attr.read_format, &mut fields)?;
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
            let registers = registers(attr.regs_user, fields)?;
            self.user_ip = registers.and_then(|registers| registers.ip());
            self.user_stack = registers.and_then(Registers::user_stack);
        }
        if kind & has::STACK_USER != 0 {
            let size = fields.u64()?;
            if size > 0 {
                let bytes = fields.bytes(usize::try_from(size).ok()?)?;
                let n_used = usize::try_from(fields.u64()?).unwrap_or(usize::MAX);
                if let Some(stack) = &mut self.user_stack {
                    stack.bytes = &bytes[..n_used.min(bytes.len())];
                }
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

/// A user stack that was copied, and the registers that are needed to unwind it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct UserStack<'a> {
    pub(super) ip: u64,
    pub(super) sp: u64,
    pub(super) bp: u64,
    bytes: &'a [u8],
}

impl UserStack<'_> {
    /// The word at an address, if it was copied.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.sp)?).ok()?;
        Fields(self.bytes.get(at..)?).u64()
    }
}

/// Registers of a sample: which there are, and their values in that order.
#[derive(Clone, Copy)]
struct Registers<'a> {
    abi: u64,
    mask: u64,
    values: &'a [u8],
}

impl Registers<'_> {
    /// The register with this number in the kernel's `perf_regs.h`.
    fn get(self, number: u32) -> Option<u64> {
        if self.mask >> number & 1 == 0 {
            return None;
        }
        let before = (self.mask & ((1 << number) - 1)).count_ones() as usize;
        Fields(self.values.get(before * 8..)?).u64()
    }

    /// arm64 has more registers than x86 knows.
    fn is_arm(self) -> bool {
        self.mask >> 32 & 1 == 1
    }

    fn ip(self) -> Option<u64> {
        self.get(if self.is_arm() { 32 } else { 8 })
    }

    /// Those of x86 in 64 bits.
    fn user_stack<'s>(self) -> Option<UserStack<'s>> {
        const ABI_64: u64 = 2;
        const BP: u32 = 6;
        const SP: u32 = 7;
        if self.is_arm() || self.abi != ABI_64 {
            return None;
        }
        Some(UserStack {
            ip: self.ip()?,
            sp: self.get(SP)?,
            bp: self.get(BP)?,
            bytes: &[],
        })
    }
}

/// Reads the registers that `mask` names; none where no user code ran.
#[allow(
    clippy::option_option,
    reason = "cut short, and no registers, are two things"
)]
fn registers<'a>(mask: u64, fields: &mut Fields<'a>) -> Option<Option<Registers<'a>>> {
    let abi = fields.u64()?;
    if abi == 0 {
        return Some(None);
    }
    let values = fields.bytes(mask.count_ones() as usize * 8)?;
    Some(Some(Registers { abi, mask, values }))
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
