//! Records of the kernel's log.

use sexton_sensors::fuzzing;

use crate::Target;

pub(crate) const TARGET: Target = Target { name: "klog", run };

fn run(record: &[u8]) {
    if let Some((subject, details)) = fuzzing::kernel_log_record(record) {
        crate::shown::assert_plain(&subject.to_string());
        for (key, value) in details {
            crate::shown::assert_plain(&key);
            crate::shown::assert_plain(&value);
        }
    }
}
