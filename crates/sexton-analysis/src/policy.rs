//! Thresholds as a node's owner wants them.

pub mod file;

use std::collections::BTreeMap;
use std::sync::Arc;

use sexton_signatures::Signatures;

use crate::rule::Threshold;
use crate::rules;

/// Values that replace the thresholds' own, and the signatures to judge with.
#[derive(Debug, Clone)]
pub struct Policy {
    limits: BTreeMap<(String, String), f64>,
    signatures: Arc<Signatures>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            limits: BTreeMap::new(),
            signatures: Signatures::built_in(),
        }
    }
}

/// Signatures are equal if they are the same ones.
impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        self.limits == other.limits && Arc::ptr_eq(&self.signatures, &other.signatures)
    }
}

/// Why a value cannot be taken.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// There is no such threshold.
    #[error("rule {rule} has no threshold {name}; it has {known}")]
    Unknown {
        /// The rule's code.
        rule: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// There is no such rule.
    #[error("there is no rule {0}; `sexton explain` lists them")]
    NoRule(String),
    /// The value makes no sense.
    #[error("{rule}.{name} = {value} is out of range: {least} to {greatest}")]
    Range {
        /// The rule's code.
        rule: String,
        /// The threshold.
        name: String,
        /// What was given.
        value: f64,
        /// The least.
        least: f64,
        /// The greatest.
        greatest: f64,
    },
}

impl Policy {
    /// Sets a threshold of a rule.
    pub fn set(&mut self, rule: &str, name: &str, value: f64) -> Result<(), PolicyError> {
        let known = rules::by_code(rule).ok_or_else(|| PolicyError::NoRule(rule.into()))?;
        let threshold = known.thresholds.iter().find(|known| known.name == name);
        let Some(threshold) = threshold else {
            let names: Vec<&str> = known.thresholds.iter().map(|known| known.name).collect();
            return Err(PolicyError::Unknown {
                rule: rule.into(),
                name: name.into(),
                known: match names.is_empty() {
                    true => "none".into(),
                    false => names.join(", "),
                },
            });
        };
        let (least, greatest) = threshold.range;
        if !(least..=greatest).contains(&value) {
            return Err(PolicyError::Range {
                rule: rule.into(),
                name: name.into(),
                value,
                least,
                greatest,
            });
        }
        self.limits.insert((rule.into(), name.into()), value);
        Ok(())
    }

    /// Judges with these signatures instead of those that sexton brings.
    pub fn judge_with(&mut self, signatures: Arc<Signatures>) {
        self.signatures = signatures;
    }

    /// The signatures to judge with.
    pub fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    pub(crate) fn limit(&self, threshold: &Threshold) -> f64 {
        let key = (threshold.rule.to_owned(), threshold.name.to_owned());
        self.limits.get(&key).copied().unwrap_or(threshold.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_replaces_the_default() {
        let threshold = rules::by_code("MCG003").expect("a rule").thresholds[0];
        let mut policy = Policy::default();
        assert_eq!(policy.limit(threshold), threshold.default);
        policy.set("MCG003", threshold.name, 7.0).expect("in range");
        assert_eq!(policy.limit(threshold), 7.0);
    }

    #[test]
    fn what_is_unknown_or_senseless_is_refused_by_name() {
        let mut policy = Policy::default();
        let errors = [
            policy.set("XYZ001", "floor", 1.0),
            policy.set("MCG003", "flor", 1.0),
            policy.set("MCG003", "most", -1.0),
            policy.set("MCG003", "most", f64::NAN),
        ]
        .map(|outcome| outcome.expect_err("refused").to_string());
        assert!(errors[0].contains("XYZ001"), "{}", errors[0]);
        assert!(
            errors[1].contains("flor") && errors[1].contains("most"),
            "{}",
            errors[1]
        );
        assert!(errors[2].contains("out of range"), "{}", errors[2]);
        assert!(errors[3].contains("out of range"), "{}", errors[3]);
    }
}
