//! When one read of a memory statistics file is slow, and when it is not.

use sexton_model::fact::Measure;

use crate::rule::Threshold;

pub(crate) static SLOW_TIMES: Threshold = Threshold {
    rule: "CPU002",
    name: "slow_times",
    default: 30.0,
    range: (2.0, 1e6),
    unit: Measure::Ratio,
    why: "a read above the dying ones is slow because of them when it takes this many times as \
          long as that of a leaf: measured on 5.4 with 222 live cgroups 25 times without dying \
          ones, 190 at 1,000 of them; on 5.10 to 6.18 at most 2 at 65,000",
};

pub(crate) static SLOW_SECONDS: Threshold = Threshold {
    rule: "CPU002",
    name: "slow_seconds",
    default: 0.001,
    range: (0.000_001, 3600.0),
    unit: Measure::Seconds,
    why: "no shorter read is slow: at the kernel's tick of 1 to 10 ms another task gets the core \
          before it is missed. Reads took 0.008 to 0.1 ms on 5.10 to 6.18 with 65,000 dying \
          ones, 7.6 ms on 5.4 with 1,000",
};

pub(crate) static QUICK_TIMES: Threshold = Threshold {
    rule: "CPU002",
    name: "quick_times",
    default: 5.0,
    range: (1.0, 1e6),
    unit: Measure::Ratio,
    why: "a read that takes at most this many times a leaf's is as quick as it gets: twice the 2 \
          that were measured at most where nothing walks, and room for a busy machine",
};
