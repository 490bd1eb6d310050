//! The code that the kernel maps into every process: `clock_gettime` and the like. It is in no
//! file; what is mapped into us is the same as in any other process of 64 bits.

use std::sync::Arc;

use sexton_host::Host;
use sexton_host::code::own_memory;

use crate::code::Code;
use crate::elf::{Headers, Limits};
use crate::source::Source;

/// What mappings of it are called.
pub const NAME: &str = "[vdso]";

/// It has some pages.
const MAX_BYTES: u64 = 1 << 20;

/// The vdso of this kernel.
#[derive(Debug)]
pub struct Vdso {
    image: Vec<u8>,
    code: Code,
    build_id: Option<Vec<u8>>,
}

impl Vdso {
    /// That of our own process.
    pub fn read(host: &Host) -> Option<Self> {
        Self::of_image(own_memory(host, NAME.as_bytes(), MAX_BYTES).ok()?)
    }

    fn of_image(image: Vec<u8>) -> Option<Self> {
        let headers = Headers::read(&image)?;
        Some(Self {
            code: Code::read(&headers, &image, None, Limits::LIVE),
            build_id: headers.build_id(&image),
            image,
        })
    }

    /// Its size: processes of 32 bits have another one.
    pub fn size(&self) -> u64 {
        self.image.len() as u64
    }

    /// All of it.
    pub(crate) fn image(&self) -> &dyn Source {
        &self.image
    }

    /// What tells it from that of another kernel.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    /// The function at an offset: where it begins, and its name.
    pub fn find(&self, offset: u64) -> Option<(u64, Arc<str>)> {
        let found = self.code.find(offset)?;
        let name = self.code.name(found, |_| Some(&self.image))?;
        Some((found.start, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_has_the_clock() {
        let host = Host::live().expect("a mount table");
        let vdso = Vdso::read(&host).expect("every process has one");
        assert!(vdso.build_id().is_some());
        let offsets = 0..vdso.size();
        let named = offsets
            .step_by(16)
            .filter_map(|offset| vdso.find(offset))
            .any(|(_, name)| {
                &*name == "__vdso_clock_gettime" || &*name == "__kernel_clock_gettime"
            });
        assert!(named);
    }
}
