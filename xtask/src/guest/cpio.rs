//! Writes an initramfs: the `newc` archive the kernel unpacks, without cpio or root.

/// The kind and permissions of an entry, as in `st_mode`.
const DIRECTORY: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;
const TEXT: u32 = 0o100_644;
const CHARACTER_DEVICE: u32 = 0o020_600;

#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    n_entries: usize,
}

impl Archive {
    pub(crate) fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, (0, 0), &[]);
    }

    pub(crate) fn program(&mut self, path: &str, content: &[u8]) {
        self.entry(path, EXECUTABLE, (0, 0), content);
    }

    pub(crate) fn text(&mut self, path: &str, content: &str) {
        self.entry(path, TEXT, (0, 0), content.as_bytes());
    }

    pub(crate) fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, CHARACTER_DEVICE, (major, minor), &[]);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    /// Fields in the order of the format: magic, inode, mode, uid, gid, links, mtime, size,
    /// device, device of a node, length of the name, checksum (unused).
    fn entry(&mut self, path: &str, mode: u32, (major, minor): (u32, u32), content: &[u8]) {
        self.n_entries += 1;
        let header = format!(
            "070701{:08x}{mode:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{major:08x}{minor:08x}{:08x}{:08x}",
            self.n_entries,
            0,
            0,
            1,
            0,
            content.len(),
            0,
            0,
            path.len() + 1,
            0
        );
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_what_the_format_says() {
        let mut archive = Archive::default();
        archive.text("a", "hello");
        let expected = "070701\
            00000001000081a40000000000000000000000010000000000000005\
            00000000000000000000000000000000000000020000000\
            0a\0hello\0\0\0";
        assert!(archive.finish().starts_with(expected.as_bytes()));
    }

    #[test]
    fn every_part_starts_on_a_multiple_of_four() {
        for length in 0..5 {
            let mut archive = Archive::default();
            archive.text("name", &"x".repeat(length));
            assert_eq!(archive.bytes.len() % 4, 0);
            assert_eq!(archive.finish().len() % 4, 0);
        }
    }
}
