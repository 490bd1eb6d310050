//! Profiles that go out in a format of others and come back.

use std::process::Command;

use crate::command::{sexton, stderr, stdout};
use crate::profile::{Folder, prepared, profile, text};

/// The folded stacks of a file.
fn folded(file: &str) -> String {
    let args = ["profile", "export", "--from", file, "--format", "folded"];
    let output = sexton(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
}

fn written(folder: &Folder, format: &str) -> String {
    let file = folder.join(format);
    let args = ["--event", "cpu-clock", "--format", format, "-o", &file];
    text(&profile("export", "fp.data", &args));
    file
}

#[test]
fn pprof_and_otlp_come_back_as_they_went_out() {
    let folder = Folder::new("formats");
    let args = ["--event", "cpu-clock", "--format", "folded"];
    let direct = text(&profile("export", "fp.data", &args));
    for format in ["pprof", "otlp"] {
        let file = written(&folder, format);
        assert_eq!(folded(&file), direct, "{format}");
        // Their samples have times, so that a heat map can be drawn.
        let output = sexton(&["profile", "heatmap", "--from", &file]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

/// Decodes with the library of OpenTelemetry: how many samples, of which functions.
const DECODE_OTLP: &str = r#"
import sys
from opentelemetry.proto.profiles.v1development import profiles_pb2
data = profiles_pb2.ProfilesData()
data.ParseFromString(open(sys.argv[1], "rb").read())
d = data.dictionary
assert d.string_table[0] == "" and d.stack_table[0].ByteSize() == 0
n, names = 0, set()
for profile in data.resource_profiles[0].scope_profiles[0].profiles:
    for sample in profile.samples:
        assert len(sample.values) == len(sample.timestamps_unix_nano) > 0
        n += len(sample.values)
        for location in d.stack_table[sample.stack_index].location_indices:
            function = d.function_table[d.location_table[location].lines[0].function_index]
            names.add(d.string_table[function.name_strindex])
print(n, len(names))
"#;

#[test]
fn an_otlp_file_is_decoded_by_the_library_of_opentelemetry() {
    let python = prepared("python", "python/bin/python");
    let folder = Folder::new("otlp-file");
    let file = written(&folder, "otlp");
    let output = Command::new(python)
        .args(["-c", DECODE_OTLP, &file])
        .output()
        .expect("python");
    let said = text(&output);
    let (n, names) = said.trim().split_once(' ').expect("two numbers");
    let (n, names): (u64, u64) = (n.parse().expect("n"), names.parse().expect("n"));
    let args = [
        "--event",
        "cpu-clock",
        "--format",
        "folded",
        "--weight",
        "samples",
    ];
    let direct = text(&profile("export", "fp.data", &args));
    let counted = |line: &str| line.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok());
    let expected: u64 = direct.lines().filter_map(counted).sum();
    assert_eq!(n, expected);
    assert!(names > 3, "{names}");
}

#[test]
fn a_damaged_file_of_others_is_named() {
    let folder = Folder::new("formats-damaged");
    for format in ["pprof", "otlp"] {
        let file = written(&folder, format);
        let mut bytes = std::fs::read(&file).expect("it was written");
        bytes.truncate(bytes.len() / 2);
        std::fs::write(&file, &bytes).expect("a file");
        let args = ["profile", "export", "--from", &file, "--format", "folded"];
        let output = sexton(&args);
        assert_ne!(output.status.code(), Some(0), "{format}");
        assert!(!stderr(&output).is_empty(), "{format}");
    }
}
