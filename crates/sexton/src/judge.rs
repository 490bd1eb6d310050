//! Judges a bundle: opens it, hands its records to the rules.

use std::path::Path;

use anyhow::Result;
use sexton_analysis::Policy;
use sexton_model::node::Node;
use sexton_model::text::escape;
use sexton_model::wall::WallClock;
use sexton_report::diagnosis::Judged;
use sexton_store::Bundle;

/// Judges what a bundle holds. Nothing but the bundle is read.
pub fn bundle(folder: &Path, policy: &Policy) -> Result<Judged> {
    let bundle = Bundle::open(folder)?;
    let records = bundle.load_to_judge();
    Ok(Judged {
        node: node_of(&bundle).described_by(&records),
        clock: WallClock::of(&records),
        diagnosis: sexton_analysis::judge(&records, policy),
    })
}

/// Which node a bundle is about.
pub fn node_of(bundle: &Bundle) -> Node {
    Node {
        name: escape(bundle.node().name.as_bytes()),
        kernel: escape(bundle.node().kernel.as_bytes()),
        boot_id: escape(bundle.node().boot_id.as_bytes()),
        ..Node::default()
    }
}
