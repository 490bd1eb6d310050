//! Consent: without it nothing on a node is changed.

use crate::orders::Allowed;

/// That a person said yes, to a plan on the screen or in the configuration. Every function that
/// changes a node asks for one.
#[derive(Debug)]
pub struct Consent(());

impl Consent {
    /// Somebody with the right to say so said yes: `--apply` with an answer on a terminal,
    /// or with `--yes`. Nothing else may call this.
    pub fn given_by_the_user() -> Self {
        Self(())
    }

    /// The administrator named code, origin and act in the agent's configuration, and it is no
    /// dry run.
    pub fn given_by_orders(_allowed: &Allowed) -> Self {
        Self(())
    }
}
