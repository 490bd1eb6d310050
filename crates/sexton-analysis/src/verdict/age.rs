//! What is over is history: it is shown, but it is not what is wrong with the node now.

use sexton_model::finding::{Finding, FindingId};
use sexton_model::moment::Moment;

/// Whether all of a chain was over when the watch began.
pub(crate) fn is_over(findings: &[Finding], chain: &[FindingId], began: Option<Moment>) -> bool {
    let mut of_chain = findings
        .iter()
        .filter(|finding| chain.contains(&finding.id()))
        .peekable();
    let Some(began) = began.filter(|_| of_chain.peek().is_some()) else {
        return false;
    };
    of_chain.all(|finding| finding.was_over(began))
}
