//! A policy as people write it: TOML with `[rules.CODE]` for the judge and `[check]` for
//! the gate. What is unknown or out of range stops the start, with its line.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::gate::{self, GatePolicy};
use crate::policy::Policy;

/// All that a policy file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PolicyFile {
    /// Thresholds of rules.
    pub rules: Policy,
    /// Limits of the gate.
    pub gate: GatePolicy,
}

/// What is wrong with a policy file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}")]
pub struct PolicyFileError {
    /// Where, counted from 1.
    pub line: usize,
    /// What, and what would be right.
    pub text: String,
}

/// A name or value and where it stands.
type Entry<'a, 'i> = (
    &'a Spanned<std::borrow::Cow<'i, str>>,
    &'a Spanned<DeValue<'i>>,
);

impl PolicyFile {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, PolicyFileError> {
        let reader = Reader { text };
        let table = DeTable::parse(text).map_err(|error| PolicyFileError {
            line: reader.line(error.span().map_or(0, |span| span.start)),
            text: error.message().to_owned(),
        })?;
        let mut file = Self::default();
        for (name, value) in table.get_ref() {
            match name.get_ref().as_ref() {
                "rules" => reader.rules((name, value), &mut file.rules)?,
                "check" => reader.check((name, value), &mut file.gate)?,
                other => {
                    let text = format!("there is no table {other}; there are rules and check");
                    return Err(reader.wrong(name, text));
                }
            }
        }
        Ok(file)
    }
}

struct Reader<'t> {
    text: &'t str,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    fn wrong<T>(&self, place: &Spanned<T>, text: impl Into<String>) -> PolicyFileError {
        PolicyFileError {
            line: self.line(place.span().start),
            text: text.into(),
        }
    }

    fn table<'a, 'i>(
        &self,
        (name, value): Entry<'a, 'i>,
    ) -> Result<&'a DeTable<'i>, PolicyFileError> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            _ => Err(self.wrong(name, format!("{} should be a table", name.get_ref()))),
        }
    }

    fn number(&self, (name, value): Entry<'_, '_>) -> Result<f64, PolicyFileError> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .ok()
                .map(|number| number as f64),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        number.ok_or_else(|| self.wrong(value, format!("{} should be a number", name.get_ref())))
    }

    fn text(&self, (name, value): Entry<'_, '_>) -> Result<String, PolicyFileError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.wrong(value, format!("{} should be a text", name.get_ref()))),
        }
    }

    fn texts(&self, (name, value): Entry<'_, '_>) -> Result<Vec<String>, PolicyFileError> {
        let texts = match value.get_ref() {
            DeValue::Array(array) => array
                .iter()
                .map(|item| match item.get_ref() {
                    DeValue::String(text) => Some(text.to_string()),
                    _ => None,
                })
                .collect(),
            _ => None,
        };
        texts.ok_or_else(|| {
            let text = format!("{} should be a list of texts", name.get_ref());
            self.wrong(value, text)
        })
    }

    fn rules(&self, entry: Entry<'_, '_>, policy: &mut Policy) -> Result<(), PolicyFileError> {
        for (code, thresholds) in self.table(entry)? {
            for (name, value) in self.table((code, thresholds))? {
                let number = self.number((name, value))?;
                let set = policy.set(code.get_ref(), name.get_ref(), number);
                set.map_err(|error| self.wrong(name, error.to_string()))?;
            }
        }
        Ok(())
    }

    fn check(&self, entry: Entry<'_, '_>, policy: &mut GatePolicy) -> Result<(), PolicyFileError> {
        for (name, value) in self.table(entry)? {
            match name.get_ref().as_ref() {
                "skip" => {
                    for skipped in self.texts((name, value))? {
                        let known = gate::limits().find(|limit| limit.name == skipped);
                        let known = known.ok_or_else(|| self.wrong(value, no_check(&skipped)))?;
                        policy.skipped.insert(known.name);
                    }
                }
                "shape" => policy.shape = Some(self.text((name, value))?),
                "ignore_units" => policy.ignored_units.extend(self.texts((name, value))?),
                other => self.limit((name, value), other, policy)?,
            }
        }
        Ok(())
    }

    fn limit(
        &self,
        entry: Entry<'_, '_>,
        name: &str,
        policy: &mut GatePolicy,
    ) -> Result<(), PolicyFileError> {
        let limit = gate::limits().find(|limit| limit.name == name);
        let limit = limit.ok_or_else(|| self.wrong(entry.0, no_check(name)))?;
        let value = self.number(entry)?;
        let (least, greatest) = limit.range;
        if !(least..=greatest).contains(&value) {
            let text = format!("{name} = {value} is out of range: {least} to {greatest}");
            return Err(self.wrong(entry.1, text));
        }
        policy.limits.insert(limit.name, value);
        Ok(())
    }
}

fn no_check(name: &str) -> String {
    let known: Vec<&str> = gate::limits().map(|limit| limit.name).collect();
    format!("there is no check {name}; there are {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read() {
        let text = "[rules.MCG003]\nmost = 7\n[check]\nmemory_cgroups = 2_000\n\
                    memory_cgroups_per_live = 2.5\nskip = [\"nic_resets\"]\n\
                    ignore_units = [\"a.service\"]\nshape = \"docker-host\"\n";
        let file = PolicyFile::parse(text).expect("it makes sense");
        let mut rules = Policy::default();
        rules.set("MCG003", "most", 7.0).expect("in range");
        assert_eq!(file.rules, rules);
        assert_eq!(file.gate.limits["memory_cgroups"], 2000.0);
        assert_eq!(file.gate.limits["memory_cgroups_per_live"], 2.5);
        assert!(file.gate.is_skipped("nic_resets"));
        assert!(file.gate.ignores_unit("a.service"));
        assert_eq!(file.gate.shape.as_deref(), Some("docker-host"));
        assert_eq!(PolicyFile::parse(""), Ok(PolicyFile::default()));
    }

    /// Whatever a judgement depends on can be set by whoever owns the node.
    #[test]
    fn every_threshold_and_limit_can_be_set() {
        for rule in crate::rules::RULES {
            for threshold in rule.thresholds {
                assert_eq!(threshold.rule, rule.code, "{}", threshold.name);
                assert!(threshold.why.len() > 30, "{}: why", threshold.name);
                let (code, name) = (rule.code, threshold.name);
                let text = format!("[rules.{code}]\n{name} = {:?}\n", threshold.range.1);
                let file = PolicyFile::parse(&text).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(
                    file.rules.limit(threshold),
                    threshold.range.1,
                    "{code}.{name}"
                );
            }
        }
        for limit in gate::limits() {
            let text = format!("[check]\n{} = {:?}\n", limit.name, limit.range.1);
            let file = PolicyFile::parse(&text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(file.gate.limit(limit), limit.range.1, "{}", limit.name);
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, named) in [
            ("\n[rule.MCG003]\nmost = 1\n", 2, "there is no table rule"),
            ("[rules.XYZ001]\n\nmost = 1\n", 3, "XYZ001"),
            ("[rules.MCG003]\nmost = -1\n", 2, "out of range"),
            ("[rules.MCG003]\nmost = \"many\"\n", 2, "should be a number"),
            ("[rules]\nMCG003 = 1\n", 2, "should be a table"),
            (
                "[check]\nmemory_cgroup = 1\n",
                2,
                "there are memory_cgroups",
            ),
            ("[check]\n\n\nfailed_units = -1\n", 4, "out of range"),
            ("[check]\nskip = [\"all\"]\n", 2, "there is no check all"),
            ("[check]\nskip = \"nic_resets\"\n", 2, "list of texts"),
            ("[check]\nshape = 3\n", 2, "should be a text"),
            ("[check]\nfailed_units = nan\n", 2, "out of range"),
            ("[check]\nfailed_units = = 1\n", 2, ""),
        ] {
            let error = PolicyFile::parse(text).expect_err(text);
            assert_eq!(error.line, line, "{text:?}: {error}");
            assert!(error.text.contains(named), "{text:?}: {error}");
        }
    }
}
