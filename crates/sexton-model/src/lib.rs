//! The vocabulary of sexton. Values only: no I/O, no threads, no clock.
