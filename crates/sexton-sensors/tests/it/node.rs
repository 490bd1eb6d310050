//! A node that is a folder, whose files a test sets as it likes.

use std::fs;
use std::path::PathBuf;

use sexton_host::{FolderRoot, Host};
use sexton_model::gap::Gap;
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record, Sink};
use sexton_sensors::{SENSORS, Sensor, SensorSpec};

pub(crate) const MOUNTS: &str = "\
22 1 254:0 / / rw - ext4 /dev/vda rw
23 22 0:21 / /proc rw - proc proc rw
24 22 0:22 / /sys rw - sysfs sysfs rw
25 24 0:23 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
";

/// A node in a folder of its own, which goes away with it.
pub(crate) struct Node {
    folder: PathBuf,
}

impl Node {
    /// A node with procfs, sysfs and cgroup2, all empty.
    pub(crate) fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("sexton-sensors-{name}-{}", std::process::id()));
        let node = Self { folder };
        node.write("proc/self/mountinfo", MOUNTS);
        node
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().expect("below the folder")).expect("a directory");
        fs::write(path, content).expect("it can be written");
    }

    pub(crate) fn remove(&self, path: &str) {
        let path = self.folder.join(path);
        if path.is_dir() {
            fs::remove_dir_all(path).expect("it can be removed");
        } else {
            fs::remove_file(path).expect("it can be removed");
        }
    }

    pub(crate) fn host(&self) -> Host {
        let root = FolderRoot::open(&self.folder).expect("the folder is there");
        Host::new(Box::new(root)).expect("a mount table")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn spec(name: &str) -> &'static SensorSpec {
    let found = SENSORS.iter().find(|spec| spec.name == name);
    found.unwrap_or_else(|| panic!("no sensor {name}"))
}

pub(crate) fn open(name: &str, host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    (spec(name).open)(host)
}

/// Polls at so many milliseconds after boot. All it says must be announced.
pub(crate) fn poll(name: &str, sensor: &mut dyn Sensor, host: &Host, ms: u64) -> Vec<Record> {
    let mut out = Sink::new(spec(name).name, Moment::from_ns(ms * 1_000_000));
    sensor.poll(host, &mut out);
    let records = out.into_records();
    for fact in records.iter().filter_map(Record::fact) {
        assert!(
            spec(name).emits.contains(&fact),
            "{} is not announced",
            fact.name
        );
    }
    records
}

/// Records as `fact subject value`, gaps as `gap subject text`.
pub(crate) fn show(records: &[Record]) -> Vec<String> {
    let line = |record: &Record| match &record.body {
        Body::Sample { fact, value } => format!("{} {} {value:.2}", fact.name, record.subject),
        Body::Event { fact, .. } => format!("{} {}", fact.name, record.subject),
        Body::Gap(gap) => format!("gap {} {}: {}", record.subject, gap.why, gap.text),
    };
    records.iter().map(line).collect()
}
