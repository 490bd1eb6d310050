//! Replays what fuzzing found: a fault that came back fails here, without a fuzzer.

mod corpus;
