//! What one poll of a sensor costs: the processor time of this thread, the kernel's part
//! of it included, over many polls. As root or not.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use sexton_host::{FolderRoot, Host, clock};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_sensors::{SENSORS, SensorSpec};

/// Sensors that are measured on the live node, and how often they are polled for it.
const LIVE: [(&str, u32); 7] = [
    ("cores", 5000),
    ("pressure", 1000),
    ("host", 200),
    ("memory", 1000),
    ("network", 500),
    ("klog", 5000),
    ("nics", 500),
];

/// Cores of the node that is only a folder.
const MANY_CORES: u64 = 96;

/// Measures, and prints as it goes.
pub(crate) fn measure_all() {
    println!("{:24} {:>10} {:>12}", "sensor", "us a poll", "% of a core");
    let live = Host::live().expect("a mount table");
    for (name, n_polls) in LIVE {
        let spec = find(name);
        let sensor = (spec.open)(&live);
        match sensor {
            Ok(mut sensor) => {
                let cost = measure(n_polls, |_| {
                    let mut out = Sink::new(spec.name, clock::now());
                    sensor.poll(&live, &mut out);
                    out.into_records().len()
                });
                show(name, spec, cost);
            }
            Err(gap) => println!("{name:24} not measured: {}", gap.text),
        }
    }
    many_cores();
}

fn find(name: &str) -> &'static SensorSpec {
    let found = SENSORS.iter().find(|spec| spec.name == name);
    found.expect("the sensor is in the list")
}

/// Processor time of one call, once it is warm.
fn measure(n: u32, mut call: impl FnMut(u32) -> usize) -> Duration {
    (0..n / 10).for_each(|i| {
        std::hint::black_box(call(i));
    });
    let begin = processor_time();
    for i in 0..n {
        std::hint::black_box(call(i));
    }
    (processor_time() - begin) / n
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).expect("a time"),
        u32::try_from(time.tv_nsec).expect("a time"),
    )
}

fn show(name: &str, spec: &SensorSpec, cost: Duration) {
    let share = cost.as_secs_f64() / spec.every.as_secs_f64() * 100.0;
    println!("{name:24} {:>10.1} {share:>12.4}", cost.as_secs_f64() * 1e6);
}

/// The part of the work on a large node that is ours: the kernel's own work of writing the
/// file is not in it.
fn many_cores() {
    let spec = find("cores");
    let folder = std::env::temp_dir().join(format!("sexton-overhead-{}", std::process::id()));
    fs::create_dir_all(folder.join("proc/self")).expect("a folder");
    let mounts = "23 22 0:21 / /proc rw - proc proc rw\n";
    fs::write(folder.join("proc/self/mountinfo"), mounts).expect("a mount table");
    // Its counters stand still, which takes as many records as any other core.
    let core = |i| format!("cpu{i} 209371 0 51983 496777 2139 0 420 309 0 0\n");
    let stat: String = (0..MANY_CORES).map(core).collect();
    fs::write(folder.join("proc/stat"), stat).expect("a file");
    let root = FolderRoot::open(&folder).expect("the folder is there");
    let host = Host::new(Box::new(root)).expect("a mount table");
    let mut sensor = (spec.open)(&host).expect("it opens");
    let cost = measure(5000, |i| {
        let mut out = Sink::new(spec.name, Moment::from_ns(u64::from(i) * 100_000_000));
        sensor.poll(&host, &mut out);
        out.into_records().len()
    });
    show(&format!("cores, {MANY_CORES} in a file"), spec, cost);
    fs::remove_dir_all(&folder).expect("our own folder");
}
