//! The table `[remedy]` of the agent's configuration.

use std::path::PathBuf;
use std::time::Duration;

use sexton_analysis::rules::RULES;
use sexton_model::fix::{Act, Offer};
use sexton_remedy::orders::{Allow, Orders};
use sexton_remedy::request::SOCKET;

use super::reader::{Entry, Reader, Wrong};

const KEYS: &str = "enabled, dry_run, socket, watch, max_acts, every, allow";

/// What may be done without a person, and how the helper is asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemedyConfig {
    pub orders: Orders,
    /// Where the helper listens.
    pub socket: PathBuf,
    /// How long the helper watches the node before it acts.
    pub watch: Duration,
}

impl Default for RemedyConfig {
    fn default() -> Self {
        Self {
            orders: Orders::default(),
            socket: SOCKET.into(),
            watch: Duration::from_secs(20),
        }
    }
}

impl RemedyConfig {
    pub(super) fn key(&mut self, reader: &Reader<'_>, key: &Entry<'_>) -> Result<(), Wrong> {
        match key.name() {
            "enabled" => self.orders.enabled = reader.truth(key)?,
            "dry_run" => self.orders.dry_run = reader.truth(key)?,
            "socket" => self.socket = reader.path(key)?,
            "watch" => {
                self.watch = reader.time(key, Duration::from_secs(5))?;
                if self.watch > Duration::from_secs(600) {
                    return Err(reader.wrong(key, "watch is too long; the most is 10m"));
                }
            }
            "max_acts" => {
                let n = reader.count(key, 1..=100)?;
                self.orders.max_acts = usize::try_from(n).unwrap_or(usize::MAX);
            }
            "every" => self.orders.every = reader.time(key, Duration::from_secs(60))?,
            "allow" => reader.each_table(key, |keys, place| self.allow(reader, keys, place))?,
            _ => return Err(reader.unknown(key, KEYS)),
        }
        Ok(())
    }

    fn allow(
        &mut self,
        reader: &Reader<'_>,
        keys: &[Entry<'_>],
        place: &Entry<'_>,
    ) -> Result<(), Wrong> {
        let (mut code, mut origin, mut act) = (None, None, None);
        for key in keys {
            match key.name() {
                "code" => code = Some(reader.text(key)?),
                "origin" => origin = Some(reader.text(key)?),
                "act" => act = Some(act_of(reader, key)?),
                _ => return Err(reader.unknown(key, "code, origin, act")),
            }
        }
        let (Some(code), Some(origin), Some(act)) = (code, origin, act) else {
            let text = "[[remedy.allow]] needs code, origin and act";
            return Err(reader.wrong(place, text));
        };
        let allow = Allow { code, origin, act };
        let offers: Vec<(&str, Offer)> = RULES.iter().map(|rule| (rule.code, rule.offer)).collect();
        if let Some(trouble) = allow
            .trouble(&offers)
            .or_else(|| self.orders.conflict(&allow))
        {
            // The line of the key that the sentence begins with.
            let key = keys.iter().find(|key| trouble.starts_with(key.name()));
            return Err(reader.wrong(key.unwrap_or(place), trouble));
        }
        self.orders.allow.push(allow);
        Ok(())
    }

    /// What no key tells by itself.
    pub(super) fn check(&self, reader: &Reader<'_>) -> Result<(), Wrong> {
        if self.orders.enabled && self.orders.allow.is_empty() {
            let text = "remedy is enabled and nothing is allowed; name acts with [[remedy.allow]]";
            return Err(reader.wrong_at("[remedy", text));
        }
        Ok(())
    }
}

fn act_of(reader: &Reader<'_>, key: &Entry<'_>) -> Result<Act, Wrong> {
    let name = reader.text(key)?;
    let act = Act::ALL.into_iter().find(|act| act.name() == name);
    act.ok_or_else(|| {
        let known = Act::ALL.map(Act::name).join(", ");
        reader.wrong(key, format!("act = {name:?} is unknown; there are {known}"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn wrong(text: &str) -> (usize, String) {
        let wrong = Config::parse(text).expect_err("it is wrong");
        (wrong.line, wrong.text)
    }

    #[test]
    fn acting_is_off_and_dry_by_default() {
        let orders = Config::parse("").expect("it is right").remedy.orders;
        assert!(!orders.enabled && orders.dry_run);
    }

    #[test]
    fn every_key_is_taken() {
        let text = r#"
[remedy]
enabled = true
dry_run = false
socket = "/run/r.sock"
watch = "30s"
max_acts = 5
every = "2h"
[[remedy.allow]]
code = "UNIT002"
origin = "ecs.service"
act = "mask"
[[remedy.allow]]
code = "MCG001"
origin = "/docker/<id>"
act = "purge"
"#;
        let allow = |code: &str, origin: &str, act| Allow {
            code: code.into(),
            origin: origin.into(),
            act,
        };
        let expected = RemedyConfig {
            orders: Orders {
                enabled: true,
                dry_run: false,
                max_acts: 5,
                every: Duration::from_secs(7200),
                allow: vec![
                    allow("UNIT002", "ecs.service", Act::Mask),
                    allow("MCG001", "/docker/<id>", Act::Purge),
                ],
            },
            socket: "/run/r.sock".into(),
            watch: Duration::from_secs(30),
        };
        assert_eq!(Config::parse(text).map(|it| it.remedy), Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_named_by_line_and_key() {
        let allow = "[remedy]\nenabled = true\n[[remedy.allow]]\ncode = \"UNIT001\"\n";
        let check = |text: &str, line: usize, expected: &str| {
            let (at, said) = wrong(text);
            assert!(said.contains(expected) && at == line, "{at}: {said}");
        };
        check(
            "[remedy]\nenable = true\n",
            2,
            "no key enable; there are enabled",
        );
        check("[remedy]\nenabled = true\n", 1, "nothing is allowed");
        check("[remedy]\nwatch = \"1h\"\n", 2, "the most is 10m");
        check("[remedy]\nmax_acts = 0\n", 2, "out of range");
        check("[remedy]\nallow = \"all\"\n", 2, "a list of tables");
        check(
            &format!("{allow}act = \"stop\"\n"),
            3,
            "needs code, origin and act",
        );
        let text = format!("{allow}origin = \"a.service\"\nact = \"kill\"\n");
        check(&text, 6, "there are bound, stop, mask, purge");
        let text = format!("{allow}act = \"stop\"\norigin = \"*\"\n");
        check(&text, 6, "origin = \"*\" is no unit");
        let one = "[[remedy.allow]]\ncode = \"UNIT001\"\norigin = \"a.service\"\nact = ";
        check(
            &format!("{one}\"stop\"\n{one}\"mask\"\n"),
            8,
            "keep one of them",
        );
    }
}
