//! Facts about cores: where each one's time went. The ratios of one core and interval
//! add up to 1: time of guests is not counted as user or nice again, as `mpstat` does.

use super::metric::{CORES, MAX_CORES, Metric};
use super::show::{CoreTime, Group, MS, SECOND, Series, Show};
use crate::payload;

payload! {
    /// A core came or went; the subject says which.
    pub struct CoreChanged {}
}

const WORST: Series = Series::line("cores.worst", Group::Cores, "worst core, kernel", "cores")
    .as_heat()
    .of_any()
    .every(100 * MS, 2500 * MS);

const CREATED: Series = Series::line(
    "cores.created",
    Group::Cores,
    "processes and threads created",
    "cores",
)
.every(SECOND, 5 * SECOND);

const RUNNABLE: Series = Series::line("cores.runnable", Group::Cores, "runnable tasks", "cores")
    .every(SECOND, 5 * SECOND);

facts! {
    /// part of a core's time spent in programs, guests and niced ones left out
    gauge CORE_USER_RATIO = "core_user_ratio" in Ratio,
        metric: Metric::gauge("sexton_core_user_ratio").by(CORES, MAX_CORES);
    /// part of a core's time spent in niced programs, guests left out
    gauge CORE_NICE_RATIO = "core_nice_ratio" in Ratio,
        metric: Metric::gauge("sexton_core_nice_ratio").by(CORES, MAX_CORES);
    /// part of a core's time spent in the kernel, interrupts left out
    gauge CORE_SYSTEM_RATIO = "core_system_ratio" in Ratio,
        shown: Show::Core(CoreTime::Kernel),
        metric: Metric::gauge("sexton_core_system_ratio").by(CORES, MAX_CORES);
    /// part of a core's time spent in hard interrupts
    gauge CORE_IRQ_RATIO = "core_irq_ratio" in Ratio,
        shown: Show::Core(CoreTime::Kernel),
        metric: Metric::gauge("sexton_core_irq_ratio").by(CORES, MAX_CORES);
    /// part of a core's time spent in soft interrupts
    gauge CORE_SOFTIRQ_RATIO = "core_softirq_ratio" in Ratio,
        shown: Show::Core(CoreTime::Kernel),
        metric: Metric::gauge("sexton_core_softirq_ratio").by(CORES, MAX_CORES);
    /// part of a core's time spent idle while I/O of one of its tasks was under way
    gauge CORE_IOWAIT_RATIO = "core_iowait_ratio" in Ratio,
        shown: Show::Core(CoreTime::Idle),
        metric: Metric::gauge("sexton_core_iowait_ratio").by(CORES, MAX_CORES);
    /// part of a core's time that the hypervisor gave to others
    gauge CORE_STEAL_RATIO = "core_steal_ratio" in Ratio,
        metric: Metric::gauge("sexton_core_steal_ratio").by(CORES, MAX_CORES);
    /// part of a core's time spent running guests, niced ones included
    gauge CORE_GUEST_RATIO = "core_guest_ratio" in Ratio,
        metric: Metric::gauge("sexton_core_guest_ratio").by(CORES, MAX_CORES);
    /// part of a core's time spent idle with no I/O under way
    gauge CORE_IDLE_RATIO = "core_idle_ratio" in Ratio,
        shown: Show::Core(CoreTime::Idle),
        metric: Metric::gauge("sexton_core_idle_ratio").by(CORES, MAX_CORES);
    /// part of the interval that the kernel booked to no mode of a core: interrupts off, stopped
    /// by the hypervisor, or asleep
    gauge CORE_UNACCOUNTED_RATIO = "core_unaccounted_ratio" in Ratio,
        metric: Metric::gauge("sexton_core_unaccounted_ratio").by(CORES, MAX_CORES);
    /// part of a core's time that the kernel worked for the recording sexton itself; included in
    /// the system time, and recorded at the same moments where it is worth leaving out
    gauge CORE_OWN_RATIO = "core_own_ratio" in Ratio,
        metric: Metric::gauge("sexton_core_own_ratio").by(CORES, MAX_CORES);
    /// non-idle part of the time of the core where it is greatest, which is the subject
    gauge CORE_WORST_BUSY_RATIO = "core_worst_busy_ratio" in Ratio,
        metric: Metric::gauge("sexton_core_worst_busy_ratio");
    /// system, irq and softirq part of the time of the core where it is greatest, which is the
    /// subject
    gauge CORE_WORST_SYSTEM_RATIO = "core_worst_system_ratio" in Ratio,
        shown: Show::Series(WORST),
        metric: Metric::gauge("sexton_core_worst_system_ratio");
    /// processes and threads that were created since boot
    counter TASKS_CREATED = "tasks_created" in Count,
        shown: Show::Series(CREATED),
        metric: Metric::counter("sexton_tasks_created_total");
    /// tasks that run or wait for a core at this moment
    gauge RUNNABLE_TASKS = "runnable_tasks" in Count,
        shown: Show::Series(RUNNABLE),
        metric: Metric::gauge("sexton_runnable_tasks");
    /// a core was brought online
    event CORE_ONLINE = "core_online" of CoreChanged;
    /// a core was taken offline
    event CORE_OFFLINE = "core_offline" of CoreChanged;
}
