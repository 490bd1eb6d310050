//! Answers that will be the same when they are asked for again.

use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that are kept.
const MAX_BYTES: usize = 64 << 20;

/// Answers, the one used last at the end.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<Vec<(String, Arc<[u8]>)>>);

impl Cache {
    /// The answer, if it is known.
    pub(crate) fn get(&self, key: &str) -> Option<Arc<[u8]>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == key)?;
        let found = kept.remove(at);
        let bytes = Arc::clone(&found.1);
        kept.push(found);
        Some(bytes)
    }

    /// Keeps an answer, and forgets those not used for longest.
    pub(crate) fn put(&self, key: String, bytes: &Arc<[u8]>) {
        if bytes.len() > MAX_BYTES / 4 {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| *known != key);
        kept.push((key, Arc::clone(bytes)));
        let mut total: usize = kept.iter().map(|(_, bytes)| bytes.len()).sum();
        while total > MAX_BYTES {
            total -= kept.remove(0).1.len();
        }
    }

    /// Forgets the answers about a source.
    pub(crate) fn forget(&self, prefix: &str) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(key, _)| !key.starts_with(prefix));
    }
}
