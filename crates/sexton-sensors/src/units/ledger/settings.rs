//! What a unit is set to do.

use sexton_model::fact::unit::{Setting, Span, UnitSeen};
use sexton_model::payload::{Payload, Structure, stored};

use super::Values;
use sexton_systemd::bus::Value;

/// What systemd writes for "no limit".
const INFINITY: u64 = u64::MAX;

const NS_PER_US: u64 = 1_000;

/// The settings of a unit; its state is left open.
pub(super) fn settings(kind: &Values, unit: &Values) -> UnitSeen {
    let value = |property: &str| unit.get(property).or_else(|| kind.get(property));
    let text = |property: &str| value(property).and_then(Value::shown);
    let span = |property: &str| match value(property)?.number()? {
        INFINITY => Some(Span::Infinity),
        us => Some(Span::Ns(us.saturating_mul(NS_PER_US))),
    };
    UnitSeen {
        enabled: text("UnitFileState"),
        preset: text("UnitFilePreset"),
        fragment: text("FragmentPath"),
        triggered_by: text("TriggeredBy"),
        restart: text("Restart"),
        restart_ns: span("RestartUSec"),
        start_limit_interval_ns: span("StartLimitIntervalUSec"),
        start_limit_burst: value("StartLimitBurst").and_then(Value::number),
        service_type: text("Type"),
        ..UnitSeen::default()
    }
}

/// What each setting that changed was before; empty where there was none.
pub(super) fn changes(before: &UnitSeen, now: &UnitSeen) -> Vec<Setting> {
    let (before, now) = (before.fields(), now.fields());
    let names = UnitSeen::FIELDS.iter().map(|field| field.name);
    let differ = names.filter(|name| stored(&before, name) != stored(&now, name));
    differ
        .map(|name| Setting {
            name: name.to_owned(),
            value: stored(&before, name).map_or_else(String::new, ToString::to_string),
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
        let expected = UnitSeen {
            enabled: Some("enabled".into()),
            restart: Some("always".into()),
            restart_ns: Some(Span::Infinity),
            start_limit_interval_ns: Some(Span::Ns(10_000_000_000)),
            start_limit_burst: Some(5),
            ..UnitSeen::default()
        };
        assert_eq!(settings(&kind, &unit), expected);
    }
}
