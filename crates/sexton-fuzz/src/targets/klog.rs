//! Records of the kernel's log.

use sexton_model::payload::Payload;
use sexton_sensors::fuzzing;

use crate::Target;

pub(crate) const TARGET: Target = Target { name: "klog", run };

fn run(record: &[u8]) {
    if let Some((subject, says)) = fuzzing::kernel_log_record(record) {
        crate::shown::assert_plain(&subject.to_string());
        for (_, value) in says.fields() {
            crate::shown::assert_plain(&value.to_string());
        }
    }
}
