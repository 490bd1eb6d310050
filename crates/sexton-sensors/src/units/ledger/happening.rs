//! What happens to units.

use sexton_model::fact::unit::{self as fact, UnitSeen, UnitStarted, UnitStopped};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::Subject;

/// What happened to a unit.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::units) enum Happening {
    /// It was seen for the first time.
    Seen(UnitSeen),
    /// Its settings changed.
    Changed(UnitSeen),
    /// It began a run.
    Started(UnitStarted),
    /// A run ended.
    Stopped(UnitStopped),
    /// It failed.
    Failed(UnitStopped),
}

impl Happening {
    /// Takes it down as an event of the unit.
    pub(in crate::units) fn tell(self, at: Moment, unit: &Subject, out: &mut Sink) {
        match self {
            Self::Seen(says) => out.event(at, unit, &fact::UNIT_SEEN, says),
            Self::Changed(says) => out.event(at, unit, &fact::UNIT_CHANGED, says),
            Self::Started(says) => out.event(at, unit, &fact::UNIT_STARTED, says),
            Self::Stopped(says) => out.event(at, unit, &fact::UNIT_STOPPED, says),
            Self::Failed(says) => out.event(at, unit, &fact::UNIT_FAILED, says),
        }
    }
}
