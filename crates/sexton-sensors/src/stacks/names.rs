//! Names of what samples refer to, whichever way these were taken.

use std::collections::HashMap;
use std::sync::Arc;

use sexton_host::Host;
use sexton_model::moment::Moment;
use sexton_model::text::escape;
use sexton_symbols::live::{Kernel, Place};

/// Names of threads that are kept; beyond that all are forgotten.
const MAX_COMMS: usize = 4096;

/// Names of kernel functions and of threads.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) kernel: Kernel,
    comms: HashMap<Vec<u8>, Arc<str>>,
}

impl Names {
    /// The functions of kernel addresses, innermost first.
    pub(super) fn kernel_places(
        &mut self,
        host: &Host,
        addresses: &[u64],
        now: Moment,
    ) -> Vec<Arc<Place>> {
        let places = addresses.iter().enumerate().map(|(i, address)| {
            // A caller's address is where it goes on after the call, which may be the next
            // function already.
            let address = if i == 0 {
                *address
            } else {
                address.saturating_sub(1)
            };
            self.kernel.place(host, address, now)
        });
        places.collect()
    }

    /// The name of a thread, as it is shown.
    pub(super) fn comm(&mut self, comm: &[u8]) -> Arc<str> {
        if let Some(known) = self.comms.get(comm) {
            return Arc::clone(known);
        }
        if self.comms.len() >= MAX_COMMS {
            self.comms.clear();
        }
        let text: Arc<str> = escape(comm).into();
        self.comms.insert(comm.to_vec(), Arc::clone(&text));
        text
    }
}
