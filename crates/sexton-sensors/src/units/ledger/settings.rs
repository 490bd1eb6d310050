//! What a unit is set to do.

use sexton_model::record::Detail;

use super::Values;

/// The details, the properties behind them, and whether those are microseconds.
const TABLE: [(&str, &str, bool); 9] = [
    ("enabled", "UnitFileState", false),
    ("preset", "UnitFilePreset", false),
    ("fragment", "FragmentPath", false),
    (TRIGGERED_BY, "TriggeredBy", false),
    ("restart", "Restart", false),
    ("restart_ns", "RestartUSec", true),
    ("start_limit_interval_ns", "StartLimitIntervalUSec", true),
    ("start_limit_burst", "StartLimitBurst", false),
    ("type", "Type", false),
];

const TRIGGERED_BY: &str = "triggered_by";

/// What systemd writes for "no limit".
const INFINITY: u64 = u64::MAX;

/// The settings of a unit, as details of an event show them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings([Option<String>; TABLE.len()]);

impl Settings {
    pub(super) fn of(kind: &Values, unit: &Values) -> Self {
        Self(TABLE.map(|(_, property, is_us)| {
            let value = unit.get(property).or_else(|| kind.get(property))?;
            match value.number() {
                Some(INFINITY) if is_us => Some("infinity".into()),
                Some(us) if is_us => Some(us.saturating_mul(1_000).to_string()),
                _ => value.shown(),
            }
        }))
    }

    pub(super) fn triggered_by(&self) -> Option<&str> {
        let mut named = TABLE.iter().zip(&self.0);
        named.find_map(|((name, ..), value)| (*name == TRIGGERED_BY).then_some(value.as_deref())?)
    }

    pub(super) fn details(&self) -> impl Iterator<Item = Detail> + use<> {
        let named = TABLE.into_iter().zip(self.0.clone());
        named.filter_map(|((name, ..), value)| Some((name.into(), value?)))
    }
}

/// What each setting that changed was before; empty where there was none.
pub(super) fn changes(before: &Settings, now: &Settings) -> Vec<Detail> {
    let values = before.0.iter().zip(&now.0);
    let differ = TABLE.iter().zip(values).filter(|(_, (was, is))| was != is);
    differ
        .map(|((name, ..), (was, _))| {
            (
                format!("was_{name}").into(),
                was.clone().unwrap_or_default(),
            )
        })
        .collect()
}

/// Whether a unit of this name has settings that are worth a look. Mounts, scopes,
/// slices and devices come and go by the thousand and have none.
pub(in crate::units) fn has_settings(name: &str) -> Option<&'static str> {
    const KINDS: [(&str, &str); 4] = [
        (".service", "org.freedesktop.systemd1.Service"),
        (".socket", "org.freedesktop.systemd1.Socket"),
        (".timer", "org.freedesktop.systemd1.Timer"),
        (".path", "org.freedesktop.systemd1.Path"),
    ];
    let kind = KINDS.iter().find(|(suffix, _)| name.ends_with(suffix));
    kind.map(|(_, interface)| *interface)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sexton_systemd::bus::Value;

    #[test]
    fn limits_are_told_in_nanoseconds_or_as_none() {
        let text = |text: &str| Value::Text(text.into());
        let unit = Values::from([
            ("UnitFileState".into(), text("enabled")),
            ("StartLimitIntervalUSec".into(), Value::Number(10_000_000)),
            ("StartLimitBurst".into(), Value::Number(5)),
        ]);
        let kind = Values::from([
            ("Restart".into(), text("always")),
            ("RestartUSec".into(), Value::Number(u64::MAX)),
        ]);
        let details: Vec<Detail> = Settings::of(&kind, &unit).details().collect();
        let expected = [
            ("enabled", "enabled"),
            ("restart", "always"),
            ("restart_ns", "infinity"),
            ("start_limit_interval_ns", "10000000000"),
            ("start_limit_burst", "5"),
        ];
        assert_eq!(
            details,
            expected.map(|(key, value)| (key.into(), value.to_owned()))
        );
    }
}
