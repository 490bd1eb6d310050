//! Facts about findings: what the agent's log holds beside its ring. They are what sexton
//! thinks, not what it saw, so that no recording holds them.

use crate::{choice, payload};

choice! {
    /// What happened to a finding.
    pub enum TurnKind {
        /// It was found for the first time, or for the first time in hours.
        Opened = "opened",
        /// It is graver than ever before.
        Worsened = "worsened",
        /// It is gone.
        Resolved = "resolved",
        /// It came back.
        Reopened = "reopened",
    }
}

payload! {
    /// A turn in the life of a finding. The subject is what the finding is about.
    pub struct FindingTurn {
        /// what happened
        pub turn: Option<TurnKind>,
        /// the code of the rule
        pub code: String,
        /// how bad it is: note, warning, serious or critical
        pub severity: String,
        /// the worst that it was
        pub worst: String,
        /// how sure that is, from 0 to 100
        pub confidence: Option<u64>,
        /// what is wrong, in one line
        pub title: String,
        /// the decisive figure
        pub figure: String,
        /// since when it is so, as far as is known
        pub since_ns: Option<u64>,
        /// when it opened
        pub opened_ns: Option<u64>,
        /// when it was first at its worst
        pub worst_ns: Option<u64>,
        /// when it was last seen
        pub last_seen_ns: Option<u64>,
        /// the verdict at that moment, in one word
        pub state: String,
        /// the verdict at that moment, in one sentence
        pub headline: String,
        /// evidence for it, against it, and missing
        pub evidence: Vec<EvidenceNote>,
    }

    /// What sexton did by itself about a finding. The subject is what the finding is about.
    pub struct RemedyAct {
        /// the code of the rule
        pub code: String,
        /// what came of it: done, planned, refused, unconfirmed or failed
        pub outcome: String,
        /// the acts of the configuration
        pub acts: Vec<String>,
        /// what was done, or why not
        pub text: String,
        /// the file that takes it back
        pub undo_file: Option<String>,
    }

    /// One piece of evidence.
    pub struct EvidenceNote {
        /// for, against or missing
        pub stance: String,
        /// what was seen
        pub text: String,
        /// who says so
        pub source: String,
    }
}

facts! {
    /// a finding opened, worsened, was resolved or came back
    event FINDING_TURN = "finding_turn" of FindingTurn;
    /// sexton acted on a finding by itself, as its configuration allows, or would have
    event REMEDY_ACT = "remedy_act" of RemedyAct;
}
