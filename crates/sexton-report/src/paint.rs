//! Colour, for terminals that want it. Text is laid out first and painted last, so that a
//! colour never counts as width.

use sexton_model::diagnosis::State;
use sexton_model::finding::{Severity, Stance};

/// Whether output is painted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paint {
    /// Plain text.
    #[default]
    Plain,
    /// With the terminal's own colours.
    Coloured,
}

/// Where text is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Canvas {
    /// Columns.
    pub width: usize,
    /// Whether it takes colour.
    pub paint: Paint,
}

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Heading,
    Bad,
    Warning,
    Good,
    Quiet,
    Command,
}

impl Paint {
    pub(crate) fn on(self, look: Look, text: &str) -> String {
        let code = match look {
            Look::Heading => "1",
            Look::Bad => "1;31",
            Look::Warning => "33",
            Look::Good => "1;32",
            Look::Quiet => "2",
            Look::Command => "36",
        };
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

impl From<Severity> for Look {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Note => Self::Quiet,
            Severity::Warning => Self::Warning,
            Severity::Serious | Severity::Critical => Self::Bad,
        }
    }
}

impl From<State> for Look {
    fn from(state: State) -> Self {
        match state {
            State::CauseFound | State::SymptomsOnly => Self::Bad,
            State::Healthy => Self::Good,
            State::Blind => Self::Warning,
        }
    }
}

impl From<Stance> for Look {
    fn from(stance: Stance) -> Self {
        match stance {
            Stance::For => Self::Good,
            Stance::Against => Self::Bad,
            Stance::Missing => Self::Warning,
        }
    }
}
