//! Where fields are in the kernel's structures, for programs that must also load where
//! the kernel does not say: those cannot use CO-RE, and do without the field instead.

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};

/// The kernel's description of its types.
pub(crate) struct KernelTypes(Btf<'static>);

impl KernelTypes {
    /// Reads it; `None` where there is none.
    pub(crate) fn read() -> Option<Self> {
        Btf::from_vmlinux().ok().map(Self)
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
