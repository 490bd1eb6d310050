//! What the sensors can and cannot see on a node, for `sexton doctor`.

/// How well something can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clarity {
    /// Not at all.
    Blind,
    /// In part.
    Partly,
    /// As well as sexton knows how.
    Sees,
}

impl Clarity {
    /// Its name in JSON and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sees => "sees",
            Self::Partly => "partly",
            Self::Blind => "blind",
        }
    }
}

/// One thing that a sensor may see here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// What it is.
    pub what: String,
    /// How well it is seen.
    pub clarity: Clarity,
    /// What was found, or why it is not seen.
    pub because: String,
    /// What to type or change to see more.
    pub remedy: Option<String>,
}

impl Sight {
    /// Something that is seen.
    pub fn sees(what: impl Into<String>, because: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            clarity: Clarity::Sees,
            because: because.into(),
            remedy: None,
        }
    }

    /// Something that is not seen.
    pub fn blind(what: impl Into<String>, because: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            clarity: Clarity::Blind,
            because: because.into(),
            remedy: None,
        }
    }

    /// The same, seen only in part.
    #[must_use]
    pub fn partly(mut self) -> Self {
        self.clarity = Clarity::Partly;
        self
    }

    /// The same, with what would help.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// What one sensor sees on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SensorSight {
    /// The sensor's name.
    pub sensor: &'static str,
    /// What it watches.
    pub watches: &'static str,
    /// How well it sees that, all in all.
    pub clarity: Clarity,
    /// The parts.
    pub sights: Vec<Sight>,
}

/// What sexton sees on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkup {
    /// The kernel's release.
    pub kernel: String,
    /// The user sexton runs as.
    pub user: String,
    /// What every sensor builds on.
    pub ground: Vec<Sight>,
    /// Every sensor there is.
    pub sensors: Vec<SensorSight>,
}

impl Checkup {
    /// The worst that any sensor has to say.
    pub fn clarity(&self) -> Clarity {
        self.sensors
            .iter()
            .map(|sensor| sensor.clarity)
            .min()
            .unwrap_or(Clarity::Blind)
    }
}
