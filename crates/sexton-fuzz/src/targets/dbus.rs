//! Messages of the bus, and the properties of units in them.

use sexton_sensors::fuzzing;

use crate::Target;

pub(crate) const TARGET: Target = Target { name: "dbus", run };

fn run(bytes: &[u8]) {
    fuzzing::bus_messages(bytes);
}
