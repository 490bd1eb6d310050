//! A core that nobody else gets must not hold sexton up.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sexton_host::page_batches::drain;
use sexton_kernel_tests::require::{Need, require};

/// A real-time loop that has core 1 to itself, but for the share that the kernel
/// keeps back for others (50 ms of each second).
struct Hog(Child);

impl Hog {
    fn start() -> Self {
        let child = Command::new("taskset")
            .args([
                "-c",
                "1",
                "chrt",
                "-f",
                "50",
                "sh",
                "-c",
                "while :; do :; done",
            ])
            .stdout(Stdio::null())
            .spawn()
            .expect("taskset and chrt, of util-linux, are on every Debian");
        std::thread::sleep(Duration::from_millis(100));
        Self(child)
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn a_core_that_cannot_be_reached_is_named_and_not_waited_for() {
    require(Need::Root);
    assert!(drain(Duration::from_secs(5)).is_empty(), "all cores answer");
    let _hog = Hog::start();
    let mut missed = 0;
    for _ in 0..5 {
        let began = Instant::now();
        let unreached = drain(Duration::from_millis(50));
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "it waited {:?}",
            began.elapsed()
        );
        assert!(unreached.is_empty() || unreached == [1], "{unreached:?}");
        missed += unreached.len();
    }
    assert!(missed >= 1, "the hog's core was never out of reach");
}
