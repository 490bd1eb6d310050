use super::*;
use crate::testing::story::{Story, subject, words};

const MIB: f64 = 1_048_576.0;

fn mount(point: &str) -> Subject {
    subject(SubjectKind::Mount, point)
}

/// A filesystem: part of its space and bytes left, part of its inodes and inodes left.
fn filesystem(
    story: Story,
    point: &str,
    space: (f64, f64),
    inodes: (f64, f64),
    read_only: bool,
) -> Story {
    let about = mount(point);
    let flag = if read_only { "true" } else { "false" };
    let says = [("device", "sda1"), ("fs_type", "ext4"), ("read_only", flag)];
    let sensor = "filesystems";
    story
        .event(sensor, 1_000.0, &about, &fact::FS_SEEN, &says)
        .sample(sensor, 1_000.0, &about, &fact::FS_USED_RATIO, space.0)
        .sample(sensor, 1_000.0, &about, &fact::FS_AVAILABLE_BYTES, space.1)
        .sample(
            sensor,
            1_000.0,
            &about,
            &fact::FS_INODES_USED_RATIO,
            inodes.0,
        )
        .sample(
            sensor,
            1_000.0,
            &about,
            &fact::FS_INODES_AVAILABLE,
            inodes.1,
        )
        .sample(
            sensor,
            1_000.0,
            &about,
            &fact::FS_READ_ONLY,
            f64::from(u8::from(read_only)),
        )
}

fn watched() -> Story {
    Story::default()
        .heard("klog", 1_000.0)
        .heard("klog", 1_015.0)
}

const PLENTY: (f64, f64) = (0.1, 1e6);

#[test]
fn a_full_filesystem_is_found_by_space_and_by_inodes() {
    let found = filesystem(watched(), "/var", (1.0, 0.0), PLENTY, false).found_by(&RULE);
    assert_eq!(found[0].id().as_str(), "IO002:/var");
    assert_eq!(found[0].severity, Severity::Serious);
    assert_eq!(
        found[0].title,
        "filesystem /var is full: 100.0 % of its space in use, 0 B left"
    );
    let almost = filesystem(watched(), "/var", (0.985, 900.0 * MIB), PLENTY, false);
    assert_eq!(almost.found_by(&RULE)[0].severity, Severity::Warning);
    let space = (0.3, 1e11);
    let found = filesystem(watched(), "/var", space, (0.999, 12.0), false).found_by(&RULE);
    assert_eq!(
        found[0].title,
        "filesystem /var is full: 99.9 % of its inodes in use, 12 inodes left"
    );
    let command = found[0].remedies[0].command.as_deref();
    assert!(command.is_some_and(|command| command.contains("--inodes")));
}

#[test]
fn room_that_is_left_is_no_finding() {
    let large = filesystem(
        watched(),
        "/data",
        (0.985, 150.0 * 1024.0 * MIB),
        PLENTY,
        false,
    );
    assert!(large.found_by(&RULE).is_empty());
    let busy = filesystem(watched(), "/data", (0.97, 10.0 * MIB), (0.97, 20.0), false);
    assert!(busy.found_by(&RULE).is_empty());
    // Mounted read-only: an image, or an operator's wish.
    let image = filesystem(watched(), "/image", (1.0, 0.0), PLENTY, true);
    assert!(image.found_by(&RULE).is_empty());
}

#[test]
fn an_error_that_made_it_read_only_is_found_however_old() {
    let device = subject(SubjectKind::Device, "sda1");
    let story = filesystem(watched(), "/data", (0.5, 1e11), PLENTY, true);
    let found = story
        .line(10.0, &device, "fs_read_only", &[("device", "sda1")])
        .found_by(&RULE);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id().as_str(), "IO002:/data");
    assert_eq!(found[0].severity, Severity::Serious);
    assert!(
        found[0]
            .title
            .starts_with("filesystem /data (sda1) is read-only")
    );
    assert!(words(&found[0]).contains("the filesystem is read-only now"));
}

#[test]
fn an_error_that_was_repaired_since_is_none() {
    let device = subject(SubjectKind::Device, "sda1");
    let story = filesystem(watched(), "/data", (0.5, 1e11), PLENTY, false);
    let old = story.line(10.0, &device, "fs_read_only", &[("device", "sda1")]);
    assert!(old.found_by(&RULE).is_empty());
    // The filesystems were not looked at since.
    let story = filesystem(watched(), "/data", (0.5, 1e11), PLENTY, false);
    let new = story.line(1_005.0, &device, "fs_read_only", &[("device", "sda1")]);
    assert_eq!(new.found_by(&RULE)[0].severity, Severity::Serious);
}

#[test]
fn the_mount_table_speaks_after_the_error() {
    let device = subject(SubjectKind::Device, "sda1");
    let found = |fs_type: &str, flags: &[(f64, f64)]| {
        let says = [
            ("device", "sda1"),
            ("fs_type", fs_type),
            ("read_only", "false"),
        ];
        let story = watched()
            .event(
                "filesystems",
                1_000.0,
                &mount("/data"),
                &fact::FS_SEEN,
                &says,
            )
            .line(990.0, &device, "fs_read_only", &[("device", "sda1")]);
        let flags = flags.iter();
        let story = flags.fold(story, |story, (at, flag)| {
            story.sample(
                "filesystems",
                *at,
                &mount("/data"),
                &fact::FS_READ_ONLY,
                *flag,
            )
        });
        story.found_by(&RULE)
    };
    let writable = [(1_000.0, 0.0), (1_020.0, 0.0)];
    // It was mounted again, or this kernel does not show it.
    let again = &found("ext4", &writable)[0];
    assert_eq!(
        (again.severity, again.confidence),
        (Severity::Warning, Confidence::POSSIBLE)
    );
    assert!(
        again
            .title
            .starts_with("filesystem /data (sda1) was made read-only"),
        "{}",
        again.title
    );
    assert!(words(again).contains("mounted read-write now"));
    // It was seen to be read-only, and then writable.
    assert!(found("ext4", &[(1_000.0, 1.0), (1_020.0, 0.0)]).is_empty());
    // XFS does not show that it was shut down.
    assert_eq!(found("xfs", &writable)[0].severity, Severity::Serious);
}

#[test]
fn the_log_alone_tells_of_an_error_and_silence_is_not_judged() {
    let device = subject(SubjectKind::Device, "dm-0");
    let told = watched().line(1_005.0, &device, "fs_read_only", &[("device", "dm-0")]);
    let found = told.found_by(&RULE);
    assert!(
        found[0]
            .title
            .starts_with("filesystem on dm-0 is read-only")
    );
    assert_eq!(watched().told_by(&RULE).not_judged.len(), 1);
}
