//! Compares output with a file that was looked at and kept.

use std::fs;
use std::path::Path;

/// Set to write the snapshots anew; look at the difference before you keep them.
const UPDATE: &str = "UPDATE_SNAPSHOTS";

/// Fails when `actual` is not what `snapshots/<name>` of the calling crate holds.
#[macro_export]
macro_rules! check_snapshot {
    ($name:expr, $actual:expr) => {
        $crate::snapshot::check(
            std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/snapshots")
                .join($name)
                .as_path(),
            $actual.as_ref(),
        )
    };
}

/// Fails when `actual` is not what the file holds, naming the first line that
/// differs.
pub fn check(file: &Path, actual: &str) {
    if std::env::var_os(UPDATE).is_some() {
        let folder = file.parent().expect("a snapshot lies in a folder");
        fs::create_dir_all(folder).expect("the folder can be made");
        fs::write(file, actual).expect("the snapshot can be written");
        return;
    }
    let expected = fs::read_to_string(file)
        .unwrap_or_else(|error| panic!("{}: {error}; {UPDATE}=1 writes it", file.display()));
    if expected == actual {
        return;
    }
    let line = expected
        .lines()
        .zip(actual.lines())
        .position(|(a, b)| a != b);
    let line = line.unwrap_or_else(|| expected.lines().count().min(actual.lines().count())) + 1;
    panic!(
        "{} differs from line {line} on; {UPDATE}=1 writes it anew. It is now:\n{actual}",
        file.display()
    );
}
