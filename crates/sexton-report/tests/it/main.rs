//! What people and programs get to see.

mod doctor;
mod zombies;
