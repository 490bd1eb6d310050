//! What is over is history: it is shown, but it is not what is wrong with the node now.

use std::time::Duration;

use sexton_model::finding::{Finding, FindingId};
use sexton_model::moment::Moment;

/// What ended this long before the watch began is over. A node is often looked at minutes after
/// it failed, and then the failure is the answer.
const OVER_AFTER: Duration = Duration::from_secs(600);

/// Whether all of a chain was over when the watch began.
pub(crate) fn is_over(findings: &[Finding], chain: &[FindingId], began: Option<Moment>) -> bool {
    let mut of_chain = findings
        .iter()
        .filter(|finding| chain.contains(&finding.id()))
        .peekable();
    let Some(began) = began.filter(|_| of_chain.peek().is_some()) else {
        return false;
    };
    of_chain.all(|finding| last_seen(finding).is_some_and(|at| at.after(OVER_AFTER) < began))
}

/// When it was last seen; `None` for what is a state and not an event.
fn last_seen(finding: &Finding) -> Option<Moment> {
    let episodes = finding.episodes.iter().map(|episode| episode.to);
    let last = episodes.max()?;
    // A finding keeps its longest episodes, which need not be its last.
    let shown = finding.evidence.iter().filter_map(|piece| piece.at).max();
    Some(shown.map_or(last, |at| at.max(last)))
}
