//! Invented stories, judged as a whole.

mod numa_walk;
