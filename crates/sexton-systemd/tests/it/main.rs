//! Units of real roots, and of roots made for one question each.

mod corners;
mod owners;
mod perturbed;
mod random;
mod roots;
mod rpm;
