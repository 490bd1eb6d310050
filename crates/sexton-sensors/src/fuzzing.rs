//! Doors for the fuzz targets: bytes from outside go the way that a sensor takes them, from
//! the parser to the records. What comes back is what a reader would be shown.

pub use crate::containers::fuzzing::container_api;
pub use crate::contention::fuzzing::waiting_files;
pub use crate::cores::fuzzing::proc_stat;
pub use crate::disks::fuzzing::disk_files;
pub use crate::host::fuzzing::descriptions;
pub use crate::klog::fuzzing::kernel_log_record;
pub use crate::limits::fuzzing::limit_files;
pub use crate::memory::fuzzing::memory_files;
pub use crate::network::fuzzing::network_files;
pub use crate::nics::fuzzing::{driver_statistics, interrupt_files};
pub use crate::pressure::fuzzing::pressure_file;
pub use crate::processes::fuzzing::process_stat;
pub use crate::tasks::fuzzing::task_stat;
pub use crate::units::fuzzing::bus_messages;
