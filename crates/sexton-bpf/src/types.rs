//! What is known of the kernel's types: by itself, or by a file that was made for it. And where
//! fields are in its structures, for programs that must also load where neither says: those
//! cannot use CO-RE, and do without the field instead.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};

/// Where the kernel describes its types.
pub(crate) const OF_THE_KERNEL: &str = "/sys/kernel/btf/vmlinux";

static FILE: OnceLock<PathBuf> = OnceLock::new();

/// Has programs take the kernel's types from a file (BTF), where the kernel does not describe
/// them itself. The file must have been made for this very kernel. Only the first call counts.
pub fn take_from(file: PathBuf) {
    // A second file for the same kernel could say nothing else.
    let _ = FILE.set(file);
}

/// The file to take types from; `None` where the kernel describes them, or no file was given.
pub fn file() -> Option<&'static Path> {
    let is_needed = !Path::new(OF_THE_KERNEL).exists();
    FILE.get().map(PathBuf::as_path).filter(|_| is_needed)
}

/// Whether they are known at all.
pub(crate) fn are_known() -> bool {
    Path::new(OF_THE_KERNEL).exists() || file().is_some()
}

/// The kernel's description of its types.
pub(crate) struct KernelTypes(Btf<'static>);

impl KernelTypes {
    /// Reads it; `None` where there is none.
    pub(crate) fn read() -> Option<Self> {
        let types = match file() {
            Some(file) => Btf::from_path(file),
            None => Btf::from_vmlinux(),
        };
        types.ok().map(Self)
    }

    /// The offset in bytes of a plain member of a struct; `None` when it is not there, or
    /// is a bit field, or lies inside an unnamed part.
    pub(crate) fn offset(&self, of: &str, member: &str) -> Option<u32> {
        let structure: Struct<'_> = self.0.type_by_name(of)?;
        let found = structure
            .iter()
            .find(|field| field.name.is_some_and(|name| name == member))?;
        match found.attr {
            MemberAttr::Normal { offset } => Some(offset / 8),
            MemberAttr::BitField { .. } => None,
        }
    }
}
