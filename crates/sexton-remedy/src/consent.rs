//! Consent: without it nothing on a node is changed.

/// That somebody saw the plan and said yes. Every function that changes a node asks for
/// one.
#[derive(Debug)]
pub struct Consent(());

impl Consent {
    /// Somebody with the right to say so said yes: `--apply` with an answer on a terminal,
    /// or with `--yes`. Nothing else may call this.
    pub fn given_by_the_user() -> Self {
        Self(())
    }
}
