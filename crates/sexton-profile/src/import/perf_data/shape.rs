//! Whether a record has the length that its kind must have.
//!
//! A flipped byte can make another kind of a sample, and then the sample would be lost
//! without a word. What kinds hold is in the kernel's `include/uapi/linux/perf_event.h`, and
//! perf's own in `tools/lib/perf/include/perf/event.h`.

use super::attr::Attr;
use super::fields::Fields;
use super::sample::skip_read;

/// Numbers of records that nothing is taken from.
mod kind {
    pub(super) const THROTTLE: u32 = 5;
    pub(super) const UNTHROTTLE: u32 = 6;
    pub(super) const READ: u32 = 8;
    pub(super) const AUX: u32 = 11;
    pub(super) const ITRACE_START: u32 = 12;
    pub(super) const SWITCH: u32 = 14;
    pub(super) const SWITCH_CPU_WIDE: u32 = 15;
    pub(super) const NAMESPACES: u32 = 16;
    pub(super) const BPF_EVENT: u32 = 18;
    pub(super) const TEXT_POKE: u32 = 20;
    pub(super) const AUX_OUTPUT_HW_ID: u32 = 21;
    pub(super) const BUILD_ID: u32 = 67;
    /// The last of perf's own that is known.
    pub(super) const LAST: u32 = 87;
}

/// Whether a record of this kind can look like this. Samples are not asked about: they say
/// themselves what they hold.
pub(super) fn can_be(kind: u32, misc: u16, body: &[u8], attr: Option<&Attr>) -> bool {
    if kind >= super::kind::FIRST_OF_PERF {
        // perf writes no flags but those of files that it saw.
        return kind <= kind::LAST && (misc == 0 || kind == kind::BUILD_ID);
    }
    let id_size = attr.map_or(0, Attr::id_size);
    let Some(len) = body.len().checked_sub(id_size) else {
        return false;
    };
    let read_format = attr.map_or(0, |attr| attr.read_format);
    has_length(kind, &body[..len], read_format).unwrap_or(false)
}

/// `None` when it is too short to say.
fn has_length(kind: u32, body: &[u8], read_format: u64) -> Option<bool> {
    let mut fields = Fields(body);
    let is_fixed = |len: usize| Some(body.len() == len);
    match kind {
        super::kind::FORK | super::kind::EXIT => is_fixed(24),
        super::kind::LOST => is_fixed(16),
        super::kind::LOST_SAMPLES => is_fixed(8),
        kind::THROTTLE | kind::UNTHROTTLE | kind::AUX => is_fixed(24),
        kind::ITRACE_START | kind::SWITCH_CPU_WIDE | kind::AUX_OUTPUT_HW_ID => is_fixed(8),
        kind::SWITCH => is_fixed(0),
        kind::BPF_EVENT => is_fixed(16),
        kind::READ => {
            fields.u64()?;
            skip_read(read_format, &mut fields)?;
            Some(fields.0.is_empty())
        }
        kind::NAMESPACES => {
            fields.u64()?;
            let n = fields.u64()?;
            fields.skip_words(n.checked_mul(2)?)?;
            Some(fields.0.is_empty())
        }
        kind::TEXT_POKE => {
            fields.u64()?;
            let n = usize::from(fields.u16()?) + usize::from(fields.u16()?);
            fields.bytes(n)?;
            Some(fields.0.len() < 8)
        }
        // A thread may have no name.
        super::kind::COMM => ends_in_text(body, 8),
        super::kind::MMAP | super::kind::MMAP2 | super::kind::KSYMBOL | super::kind::CGROUP => {
            let at = match kind {
                super::kind::MMAP => 32,
                super::kind::MMAP2 => 64,
                super::kind::KSYMBOL => 16,
                _ => 8,
            };
            let is_name = body.get(at).is_some_and(u8::is_ascii_graphic);
            Some(is_name && ends_in_text(body, at)?)
        }
        _ => Some(false),
    }
}

/// Whether a text begins at this byte, with its zero and no more than fills up 8 bytes.
fn ends_in_text(body: &[u8], at: usize) -> Option<bool> {
    let text = body.get(at..)?;
    let end = memchr::memchr(0, text)?;
    Some((end + 1).next_multiple_of(8) == text.len())
}
