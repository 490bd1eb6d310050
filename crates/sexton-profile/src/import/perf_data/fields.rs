//! Little-endian fields of a record, in order. A record that is too short gives `None`.

/// What is left of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(field)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_le_bytes(*field))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*field))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*field))
    }

    /// Passes over `n` words of 8 bytes.
    pub(super) fn skip_words(&mut self, n: u64) -> Option<()> {
        let n_bytes = usize::try_from(n.checked_mul(8)?).ok()?;
        self.bytes(n_bytes).map(|_| ())
    }

    /// Text up to the first zero byte, or to the end.
    pub(super) fn text(self) -> &'a [u8] {
        let end = memchr::memchr(0, self.0).unwrap_or(self.0.len());
        &self.0[..end]
    }
}
