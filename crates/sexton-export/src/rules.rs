//! Recording and alert rules for Prometheus, and tests of each for `promtool`.
//!
//! Where the judgement is ours, there is one alert for each code, over `sexton_finding`: a rule
//! that is added to sexton has its alert with the next `cargo xtask docs`. The other alerts see
//! what one node cannot: hours of growth, and an agent that is silent or over its budget.

mod alerts;
mod yaml;

pub use alerts::{Code, Limits};

/// The file of rules.
pub const RULES_FILE: &str = "sexton.rules.yml";
/// The file of their tests.
pub const TESTS_FILE: &str = "sexton.test.yml";

/// The rules, as the text of [`RULES_FILE`].
pub fn rules(codes: &[Code<'_>], limits: Limits) -> String {
    yaml::rules(&alerts::RECORDED, &alerts::all(codes, limits))
}

/// Tests of them, as the text of [`TESTS_FILE`].
pub fn tests(codes: &[Code<'_>], limits: Limits) -> String {
    yaml::tests(&alerts::all(codes, limits))
}
