//! The store through its public face: real folders, real kills, real damage.

#![cfg(test)]

mod damage;
mod kill;
mod pack;
mod python;
mod replay;
mod retention;
mod ring;
mod stacks;
mod support;
