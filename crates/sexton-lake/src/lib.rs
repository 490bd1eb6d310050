//! The lake: reports of nodes as Parquet files in a bucket.
//!
//! ```text
//! day=2026-11-18/13-web7-5f2a90c1.parquet   one report: node, hour, boot
//! day=2026-11-18/part-….parquet             many reports in one file: simulated, or joined
//! sets/<digest>.parquet                     units or software of nodes, by content
//! ```
//!
//! A file of a day is one flat table. Rows of kind `report` tell of a node in an hour, rows
//! of kind `finding` of a finding in that report. Columns are found by name: a reader takes
//! files that lack columns, and passes over those that it does not know. `docs/fleet.md`
//! describes every column.

mod error;
mod gathered;
mod layout;
mod made;
mod read;
mod report;
mod set;
mod spool;
mod table;
mod write;

pub use error::LakeError;
pub use gathered::{Gathered, identity_facts};
pub use layout::{
    FOLDER_OF_SETS, day_of, day_of_path, digest_of, hour_of, is_day, path_of, path_of_set,
    redacted_name,
};
pub use made::{Given, Made, Recording, Redact, Told, report_of, report_of_recording};
pub use read::{File, TextColumn};
pub use report::{FindingRow, Report};
pub use set::{Kind as SetKind, Member, Set};
pub use spool::{Put, Shipped, Spool, put_into_folder};
pub use table::{Cell, Cells, Table};
pub use write::{MAX_REPORT_BYTES, parquet_of};

/// The version of the schema that this crate writes.
pub const SCHEMA: u32 = 1;

/// The names of columns that are not facts.
pub mod column {
    /// The version of the schema.
    pub const SCHEMA: &str = "schema";
    /// `report` or `finding`.
    pub const KIND: &str = "kind";
    /// The name of the node.
    pub const NODE: &str = "node";
    /// The boot that was watched, as a digest.
    pub const BOOT: &str = "boot";
    /// When the reported time begins.
    pub const AT: &str = "at";
    /// How many seconds were watched.
    pub const WATCHED_SECONDS: &str = "watched_seconds";
    /// The version of sexton that wrote the report.
    pub const SEXTON: &str = "sexton";
    /// The verdict, in a word.
    pub const STATE: &str = "state";
    /// The id of the root cause.
    pub const ROOT: &str = "root";
    /// The gravest severity; of a finding, its own.
    pub const SEVERITY: &str = "severity";
    /// The same as a number: 0 none, 1 note, 2 warning, 3 serious, 4 critical.
    pub const SEVERITY_RANK: &str = "severity_rank";
    /// The digest of the units and their states.
    pub const UNIT_SET: &str = "unit_set";
    /// The digest of packages and files of units.
    pub const SOFTWARE_SET: &str = "software_set";
    /// What the node was booted from.
    pub const IMAGE: &str = "image";
    /// The build of that image.
    pub const IMAGE_BUILD: &str = "image_build";
    /// The release of the kernel.
    pub const KERNEL: &str = "kernel";
    /// The distribution.
    pub const OS: &str = "os";
    /// The instance type, or the product's name.
    pub const INSTANCE_TYPE: &str = "instance_type";
    /// The availability zone.
    pub const ZONE: &str = "zone";
    /// The driver of the network device.
    pub const NIC_DRIVER: &str = "nic_driver";
    /// `v1`, `v2` or `hybrid`.
    pub const CGROUP_LAYOUT: &str = "cgroup_layout";
    /// The deployment profile.
    pub const PROFILE: &str = "profile";
    /// Begins the name of a label's column.
    pub const LABEL_PREFIX: &str = "label_";
    /// The id of a finding.
    pub const FINDING: &str = "finding";
    /// The code of its rule.
    pub const CODE: &str = "code";
    /// The kind of its subject.
    pub const SUBJECT_KIND: &str = "subject_kind";
    /// Its subject.
    pub const SUBJECT: &str = "subject";
    /// How sure it is, from 0 to 1.
    pub const CONFIDENCE: &str = "confidence";
    /// Since when.
    pub const SINCE: &str = "since";
    /// When it opened.
    pub const OPENED: &str = "opened";
    /// When it was resolved.
    pub const RESOLVED: &str = "resolved";
    /// Its place in life: `open` or `resolved`.
    pub const LIFE: &str = "life";
    /// The finding that causes it.
    pub const CAUSED_BY: &str = "caused_by";
    /// What is wrong, in one line.
    pub const TITLE: &str = "title";

    /// Columns that say what a node is: what nodes are compared by.
    pub const ATTRIBUTES: &[&str] = &[
        IMAGE,
        IMAGE_BUILD,
        KERNEL,
        OS,
        INSTANCE_TYPE,
        ZONE,
        NIC_DRIVER,
        CGROUP_LAYOUT,
        PROFILE,
        SEXTON,
    ];

    /// Columns of text that have another meaning.
    pub const OTHER_TEXT: &[&str] = &[
        KIND,
        NODE,
        BOOT,
        STATE,
        ROOT,
        SEVERITY,
        UNIT_SET,
        SOFTWARE_SET,
        FINDING,
        CODE,
        SUBJECT_KIND,
        SUBJECT,
        LIFE,
        CAUSED_BY,
        TITLE,
    ];

    /// Columns of numbers that are not facts.
    pub const OTHER_NUMBERS: &[&str] = &[SCHEMA, WATCHED_SECONDS, SEVERITY_RANK, CONFIDENCE];

    /// Columns of times.
    pub const TIMES: &[&str] = &[AT, SINCE, OPENED, RESOLVED];
}

/// The values of `kind`.
pub mod kind {
    /// A node in an hour.
    pub const REPORT: &str = "report";
    /// A finding in such a report.
    pub const FINDING: &str = "finding";
}
