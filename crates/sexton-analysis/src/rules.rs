//! The rules: one file each, and one line here.

mod cpu001_lost_core;
mod cpu002_reader;
mod cpu003_saturated;
mod cpu004_throttled;
mod cpu005_stolen;
mod cpu006_held_core;
mod ctr001_short_lived;
mod hw001_hardware;
mod io001_saturated_disk;
mod io002_filesystem;
mod job001_lost_work;
mod krn001_complaint;
mod lim001_limit_near;
mod mcg001_dying_pile_up;
mod mcg002_leaked_directories;
mod mcg003_too_many;
mod mem001_oom_kills;
mod mem002_pressure;
mod net001_starved_polling;
mod net002_drops;
mod nic001_reset;
mod task001_hung_tasks;
mod task002_defunct_children;
mod task003_storm;
mod unit001_restart_loop;
mod unit002_hidden_churn;
mod unit003_failed;
mod unit004_unwanted;
mod unit005_endless;
mod unit006_cannot_start;

use crate::rule::Rule;

/// All rules, from cause to symptom.
pub static RULES: &[&Rule] = &[
    &hw001_hardware::RULE,
    &io002_filesystem::RULE,
    &unit004_unwanted::RULE,
    &unit005_endless::RULE,
    &unit006_cannot_start::RULE,
    &mem001_oom_kills::RULE,
    &unit001_restart_loop::RULE,
    &unit002_hidden_churn::RULE,
    &unit003_failed::RULE,
    &ctr001_short_lived::RULE,
    &mcg001_dying_pile_up::RULE,
    &mcg002_leaked_directories::RULE,
    &mcg003_too_many::RULE,
    &mem002_pressure::RULE,
    &io001_saturated_disk::RULE,
    &task001_hung_tasks::RULE,
    &task002_defunct_children::RULE,
    &lim001_limit_near::RULE,
    &task003_storm::RULE,
    &cpu005_stolen::RULE,
    &cpu004_throttled::RULE,
    &cpu006_held_core::RULE,
    &cpu003_saturated::RULE,
    &cpu002_reader::RULE,
    &cpu001_lost_core::RULE,
    &krn001_complaint::RULE,
    &net001_starved_polling::RULE,
    &net002_drops::RULE,
    &nic001_reset::RULE,
    &job001_lost_work::RULE,
];

/// The rules that judge an image as well as a node: all that they need is in files.
pub static OF_IMAGES: [&Rule; 3] = [UNWANTED, ENDLESS, CANNOT_START];

/// Finds units that have no use: those a fix of an image masks.
pub static UNWANTED: &Rule = &unit004_unwanted::RULE;

/// Finds units whose settings make an endless loop: those a fix of an image bounds.
pub static ENDLESS: &Rule = &unit005_endless::RULE;

/// Finds units that cannot start.
pub static CANNOT_START: &Rule = &unit006_cannot_start::RULE;

/// Counts all memory cgroups of the node: alerts take its limits.
pub static TOO_MANY: &Rule = &mcg003_too_many::RULE;

/// The rule of that code, however it is written.
pub fn by_code(code: &str) -> Option<&'static Rule> {
    RULES
        .iter()
        .copied()
        .find(|rule| rule.code.eq_ignore_ascii_case(code))
}
