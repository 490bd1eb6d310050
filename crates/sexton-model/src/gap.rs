//! What could not be seen, and why. A gap is data: it is stored and shown.

use std::borrow::Cow;
use std::fmt;

/// Why something could not be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The caller lacks a privilege.
    Denied,
    /// It went away while it was being looked at.
    Vanished,
    /// This kernel or this set-up does not offer it.
    Unsupported,
    /// It was there but made no sense.
    Malformed,
    /// So many of them were lost; 0 where nobody can say how many.
    Lost(u64),
    /// It took longer than it may.
    Overrun,
    /// sexton itself is at fault.
    Bug,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied => f.write_str("denied"),
            Self::Vanished => f.write_str("vanished"),
            Self::Unsupported => f.write_str("unsupported"),
            Self::Malformed => f.write_str("malformed"),
            Self::Lost(0) => f.write_str("lost"),
            Self::Lost(n) => write!(f, "lost {n}"),
            Self::Overrun => f.write_str("overrun"),
            Self::Bug => f.write_str("bug in sexton"),
        }
    }
}

/// Something a sensor could not see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The sensor that is blind here.
    pub sensor: Cow<'static, str>,
    /// The sort of reason.
    pub why: Why,
    /// The whole story in one sentence: what, for whom, and the error behind it.
    pub text: String,
    /// What to type or change to see it.
    pub remedy: Option<String>,
}

impl Gap {
    /// A gap without a remedy.
    pub fn new(sensor: &'static str, why: Why, text: impl Into<String>) -> Self {
        Self {
            sensor: sensor.into(),
            why,
            text: text.into(),
            remedy: None,
        }
    }

    /// The same gap, with what would close it.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_number_is_not_shown_as_zero() {
        assert_eq!(Why::Lost(7).to_string(), "lost 7");
        assert_eq!(Why::Lost(0).to_string(), "lost");
    }
}
