//! Whether the cores have more work than they can do.

use sexton_model::fact::Fact;
use sexton_model::fact::core::RUNNABLE_TASKS;
use sexton_model::fact::host::HOST_CPUS;
use sexton_model::fact::pressure::PRESSURE_CPU_SOME_AVG10_RATIO;
use sexton_model::subject::Subject;

use super::{Counting, silence};
use crate::gate::Seen;
use crate::gate::count::Count;
use crate::gate::policy::{GatePolicy, Limit};
use crate::words::figures::{percent, plural};

pub(super) static CPU_SATURATED: Counting = Counting {
    limit: Limit {
        name: "cpu_saturated",
        default: 8.0,
        range: (1.0, 10_000.0),
        title: "runnable tasks for each core, while tasks wait for one",
        code: "CPU003",
        why: "at this load each task runs at an eighth of its speed; a build that uses all cores \
              has one or two for each. A count of one moment counts only while tasks waited half \
              of the last 10 s",
    },
    count: cpu_saturated,
};

/// Tasks that waited for less of the last ten seconds make a crowd of a moment only.
const LEAST_PRESSURE: f64 = 0.5;

fn cpu_saturated(seen: &Seen<'_>, policy: &GatePolicy) -> Count {
    let last = |fact: &'static Fact| {
        let of_node = |record: &&_| is_of_node(record);
        let records = seen.records.of(fact).filter(of_node);
        records.filter_map(|record| record.value()).last()
    };
    let (Some(runnable), Some(cpus)) = (last(&RUNNABLE_TASKS), last(&HOST_CPUS)) else {
        let unseen = if last(&HOST_CPUS).is_none() {
            "host"
        } else {
            "cores"
        };
        return Count::unknown(silence(seen, unseen));
    };
    let per_core = runnable / cpus.max(1.0);
    let told = format!(
        "{} could run on {}",
        plural(runnable as u64, "task"),
        plural(cpus as u64, "core")
    );
    let count = match last(&PRESSURE_CPU_SOME_AVG10_RATIO) {
        // So few wait for nothing, whatever the pressure is.
        _ if per_core <= policy.limit(&CPU_SATURATED.limit) => Count::of(per_core, told),
        Some(waited) => {
            let told = format!(
                "{told}, and some waited {} of the last 10 s",
                percent(waited)
            );
            match waited < LEAST_PRESSURE {
                true => Count::enough(per_core, format!("{told}: a crowd of a moment")),
                false => Count::of(per_core, told),
            }
        }
        None => {
            let why = silence(seen, "pressure");
            Count::at_most(
                per_core,
                format!("{told}, and whether that lasts is not known: {why}"),
            )
        }
    };
    count.next("sudo sexton diagnose".to_owned())
}

fn is_of_node(record: &sexton_model::record::Record) -> bool {
    record.subject == Subject::node()
}
