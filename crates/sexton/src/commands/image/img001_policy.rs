//! IMG001: the policy for this image does not hold
//!
//! Means: `sexton image verify` was given a policy, and what it asks for is not so: a unit
//! that it forbids is on, one that it requires is not, or a unit has a verdict that it does
//! not let pass. The rule itself says nothing of why; the line beside the code does.
//! Not this: a unit that is unwanted (UNIT004), loops (UNIT005) or cannot start (UNIT006);
//! these have codes of their own, and no policy is needed to find them.
//! By hand: `systemctl --root=DIR list-unit-files`, and the policy beside it.
//! Next: `sexton image audit SOURCE --why UNIT`; turn the unit on or off where the image is
//! made, or change `forbid`, `require`, `deny` or `allow` in the policy.

use sexton_analysis::manual;
use sexton_report::explain::RulePage;

/// Its code.
pub(super) const CODE: &str = "IMG001";

/// Its title.
pub(super) const TITLE: &str = "the policy for this image does not hold";

/// Its page. It is no rule of a running node: only the gate of images says it.
pub fn page() -> RulePage<'static> {
    RulePage {
        code: CODE,
        title: TITLE,
        manual: manual(include_str!("img001_policy.rs")),
        needs: &["unit_files"],
        uses: &[],
        standing: Some("what a policy asks of an image; part of no chain"),
        is_essential: false,
        is_cause: false,
        thresholds: Vec::new(),
    }
}
