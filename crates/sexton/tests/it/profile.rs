//! `sexton profile` on recordings of perf.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use sexton_testkit::check_snapshot;

use crate::command::{SEXTON, sexton, stderr, stdout};

pub(crate) fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/6.18-debian12/perf");
    folder.join(name).display().to_string()
}

/// Runs a verb on a recording, with the names of the machine it was made on.
pub(crate) fn profile(verb: &str, file: &str, args: &[&str]) -> Output {
    let (kallsyms, root) = (fixture("kallsyms"), fixture("root"));
    let file = fixture(file);
    let symbols = ["--kallsyms", &kallsyms, "--symfs", &root];
    sexton(&[&["profile", verb, "--from", &file], &symbols[..], args].concat())
}

pub(crate) fn text(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    stdout(output)
}

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sexton-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn join(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_packed_bundle_is_read_like_its_folder() {
    let folder = Folder::new("profile-packed");
    let (bundle, packed) = (folder.join("x.bundle"), folder.join("x.tar.zst"));
    let file = fixture("fp.data");
    text(&sexton(&["profile", "import", &file, "-o", &bundle]));
    text(&sexton(&["bundle", "pack", &bundle, "-o", &packed]));
    let top = |from: &str| text(&sexton(&["profile", "top", "--from", from]));
    assert_eq!(top(&packed), top(&bundle));
    assert!(top(&packed).lines().count() > 3);
}

#[test]
fn a_recording_is_shown_in_text() {
    let flame = text(&profile("flame", "fp.data", &["--event", "cpu-clock"]));
    check_snapshot!("profile-flame.txt", flame);
    let top = text(&profile(
        "top",
        "fp.data",
        &["--event", "cpu-clock", "-n", "5"],
    ));
    check_snapshot!("profile-top.txt", top);
    let heatmap = text(&profile("heatmap", "fp.data", &[]));
    check_snapshot!("profile-heatmap.txt", heatmap);
    let busiest = text(&profile("heatmap", "fp.data", &["--busiest", "100ms"]));
    check_snapshot!("profile-busiest.txt", busiest);
}

#[test]
fn a_window_and_a_core_are_all_that_is_counted() {
    let count = |args: &[&str]| {
        let args = [&["--json", "--event", "all"], args].concat();
        let top: Value =
            serde_json::from_str(&text(&profile("top", "fp.data", &args))).expect("JSON");
        assert_eq!(top["schema"], "sexton.top/1");
        top["samples"].as_u64().expect("a number")
    };
    let all = count(&[]);
    // The recording begins 311 ms after a whole second.
    let (early, late) = (count(&["--to", "500ms"]), count(&["--from", "0.5s"]));
    assert!(early > 0 && late > 0);
    assert_eq!(early + late, all);
    assert_eq!(count(&["--cpu", "0,1"]), all);
    assert_eq!(count(&["--comm", "burn"]), all);
    let burning = count(&["--function", "^burn_(sixty|ten)$"]);
    assert!(burning > 0 && burning < all);
}

#[test]
fn two_windows_are_compared() {
    let args = [
        "--from",
        "0.5s",
        "--to",
        "0.7s",
        "--against",
        "0.3s..0.5s",
        "--event",
        "cpu-clock",
    ];
    let difference = text(&profile("flame", "fp.data", &args));
    assert!(
        difference.contains("burn_sixty") && difference.contains("compared with"),
        "{difference}"
    );
    let folded = text(&profile(
        "flame",
        "fp.data",
        &[&args[..], &["--format", "folded"]].concat(),
    ));
    let line = folded
        .lines()
        .find(|line| line.contains("burn_sixty"))
        .expect("it burnt");
    assert_eq!(
        line.rsplit(' ')
            .take_while(|word| word.parse::<u64>().is_ok())
            .count(),
        2,
        "{line}"
    );
}

#[test]
fn every_format_is_written() {
    let folder = Folder::new("formats");
    for (verb, name, begins) in [
        ("heatmap", "h.png", &b"\x89PNG\r\n\x1a\n"[..]),
        ("heatmap", "h.svg", b"<svg"),
        ("heatmap", "h.html", b"<!doctype html>"),
        ("heatmap", "h.json", b"{\"maps\""),
        ("flame", "f.svg", b"<svg"),
        ("flame", "f.html", b"<!doctype html>"),
        ("flame", "f.folded", b"burn;"),
    ] {
        let file = folder.join(name);
        text(&profile(verb, "fp.data", &["-o", &file]));
        let written = fs::read(&file).expect("it was written");
        assert!(written.starts_with(begins), "{name}: {:?}", &written[..20]);
    }
    for format in ["folded", "pprof", "speedscope", "firefox", "svg", "html"] {
        let file = folder.join(format);
        text(&profile(
            "export",
            "fp.data",
            &["--format", format, "-o", &file],
        ));
        assert!(
            fs::metadata(&file).expect("it was written").len() > 100,
            "{format}"
        );
    }
}

#[test]
fn a_bundle_answers_as_its_file_does() {
    let folder = Folder::new("import");
    let bundle = folder.join("bundle");
    let (kallsyms, root) = (fixture("kallsyms"), fixture("root"));
    let series = [
        "series.data.2026111520353083",
        "series.data.2026111520352927",
        "series.data.2026111520353048",
    ]
    .map(fixture);
    let files: Vec<&str> = series.iter().map(String::as_str).collect();
    let symbols = ["--kallsyms", &kallsyms, "--symfs", &root];
    let imported = sexton(
        &[
            &["profile", "import"],
            &files[..],
            &symbols,
            &["-o", &bundle],
        ]
        .concat(),
    );
    assert!(
        text(&imported).starts_with("Imported 455 samples"),
        "{}",
        stdout(&imported)
    );
    for verb in [
        &["export", "--format", "folded"][..],
        &["heatmap", "--format", "json"],
    ] {
        let of_bundle = sexton(&[&["profile"], verb, &["--from", &bundle]].concat());
        let of_files = sexton(&[&["profile"], verb, &symbols[..], &files].concat());
        assert_eq!(text(&of_bundle), text(&of_files), "{verb:?}");
    }
    let again = sexton(&["profile", "import", files[0], "-o", &bundle]);
    assert_eq!(again.status.code(), Some(2));
    assert!(
        stderr(&again).contains("is there already"),
        "{}",
        stderr(&again)
    );
}

#[test]
fn a_truncated_file_is_used_and_spoken_of() {
    let folder = Folder::new("truncated");
    let whole = fs::read(fixture("fp.data")).expect("the fixture");
    let cut = folder.join("cut.data");
    fs::write(&cut, &whole[..whole.len() / 2]).expect("a file");
    let output = sexton(&["profile", "top", "--no-symbols", "--from", &cut]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("function"));
    let said = stderr(&output);
    assert!(
        said.contains("reading stopped at byte") && said.contains("the file ends"),
        "{said}"
    );
}

#[test]
fn wrong_use_is_told() {
    let folder = Folder::new("wrong");
    let folded = folder.join("stacks.folded");
    fs::write(&folded, "a;b 3\n").expect("a file");
    for (args, said) in [
        (&["heatmap", "--from", folded.as_str()][..], "no times"),
        (&["top"], "--from FILE"),
        (&["top", "--from", "/no/such.data"], "/no/such.data"),
        (&["top", "--from", SEXTON], "no recording"),
        (
            &[
                "flame",
                "--from",
                folded.as_str(),
                "--from",
                "1s",
                "--from",
                "2s",
            ],
            "only once",
        ),
        (
            &["heatmap", "--from", folded.as_str(), "-o", "x.gif"],
            ".gif",
        ),
        (
            &["top", "--from", folded.as_str(), "--comm", "other"],
            "no sample is left",
        ),
    ] {
        let output = sexton(&[&["profile"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            stderr(&output).contains(said),
            "{args:?}: {}",
            stderr(&output)
        );
    }
}

/// A folder that `cargo xtask test setup` prepares.
pub(crate) fn prepared(need: &str, name: &str) -> PathBuf {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(tree, PathBuf::from);
    let path = target.join(name);
    assert!(
        path.exists(),
        "sexton-missing: {need}: {} is not there; run cargo xtask test setup",
        path.display()
    );
    path
}

/// Decodes with Google's own library, from the definition in profile.proto.
const DECODE_PPROF: &str = r#"
import gzip, json, sys
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
def message(name, fields):
    m = descriptor_pb2.DescriptorProto(name=name)
    for number, (field, kind, repeated) in fields.items():
        f = m.field.add(name=field, number=number, label=3 if repeated else 1)
        if isinstance(kind, str):
            f.type, f.type_name = 11, ".pprof." + kind
        else:
            f.type = kind
    return m
I, U, S, B = 3, 4, 9, 8
file = descriptor_pb2.FileDescriptorProto(name="p.proto", package="pprof", syntax="proto3")
file.message_type.extend([
    message("ValueType", {1: ("type", I, 0), 2: ("unit", I, 0)}),
    message("Label", {1: ("key", I, 0), 2: ("str", I, 0), 3: ("num", I, 0), 4: ("num_unit", I, 0)}),
    message("Sample", {1: ("location_id", U, 1), 2: ("value", I, 1), 3: ("label", "Label", 1)}),
    message("Line", {1: ("function_id", U, 0), 2: ("line", I, 0)}),
    message("Location", {1: ("id", U, 0), 2: ("mapping_id", U, 0), 3: ("address", U, 0), 4: ("line", "Line", 1)}),
    message("Function", {1: ("id", U, 0), 2: ("name", I, 0), 3: ("system_name", I, 0), 4: ("filename", I, 0)}),
    message("Profile", {1: ("sample_type", "ValueType", 1), 2: ("sample", "Sample", 1), 4: ("location", "Location", 1),
        5: ("function", "Function", 1), 6: ("string_table", S, 1), 9: ("time_nanos", I, 0), 10: ("duration_nanos", I, 0)}),
])
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
profile = message_factory.GetMessageClass(pool.FindMessageTypeByName("pprof.Profile"))()
profile.ParseFromString(gzip.open(sys.argv[1]).read())
text = list(profile.string_table)
functions = {f.id: text[f.name] for f in profile.function}
places = {l.id: functions[l.line[0].function_id] for l in profile.location}
rows = []
for s in profile.sample:
    labels = {text[l.key]: text[l.str] if l.str else l.num for l in s.label}
    rows.append({"stack": [places[i] for i in s.location_id], "value": list(s.value), "labels": labels})
print(json.dumps({"types": [[text[t.type], text[t.unit]] for t in profile.sample_type], "samples": rows}))
"#;

#[test]
fn pprof_is_decoded_by_protobuf() {
    let python = prepared("python", "python/bin/python");
    let folder = Folder::new("pprof");
    let file = folder.join("p.pb.gz");
    text(&profile(
        "export",
        "fp.data",
        &["--event", "cpu-clock", "--format", "pprof", "-o", &file],
    ));
    let output = Command::new(python)
        .args(["-c", DECODE_PPROF, &file])
        .output()
        .expect("python");
    let decoded: Value = serde_json::from_str(&text(&output)).expect("JSON");
    assert_eq!(
        decoded["types"],
        serde_json::json!([["samples", "count"], ["cpu", "nanoseconds"]])
    );
    // The same stacks and weights as our folded stacks, which are those of inferno.
    let mut lines = std::collections::BTreeMap::<String, u64>::new();
    let samples = decoded["samples"].as_array().expect("a list");
    for sample in samples {
        let frames = sample["stack"].as_array().expect("a list").iter().rev();
        let frames: Vec<&str> = frames
            .map(|frame| frame.as_str().expect("a name"))
            .collect();
        let thread = sample["labels"]["thread"].as_str().expect("a name");
        let line = [&[thread], &frames[..]].concat().join(";");
        *lines.entry(line).or_default() += sample["value"][1].as_u64().expect("a weight");
        assert!(sample["labels"]["time"].as_u64() > Some(13_000_000_000_000));
        assert!(sample["labels"]["core"].as_u64() <= Some(1));
    }
    let decoded: String = lines
        .iter()
        .map(|(line, n)| format!("{line} {n}\n"))
        .collect();
    let folded = ["--event", "cpu-clock", "--format", "folded"];
    assert_eq!(decoded, text(&profile("export", "fp.data", &folded)));
}

#[test]
fn speedscope_files_are_what_speedscope_says_they_are() {
    let python = prepared("python", "python/bin/python");
    let schema = prepared(
        "node",
        "node/node_modules/speedscope/dist/release/file-format-schema.json",
    );
    let folder = Folder::new("speedscope");
    let file = folder.join("s.json");
    text(&profile(
        "export",
        "fp.data",
        &["--format", "speedscope", "-o", &file],
    ));
    let check = "import json, jsonschema, sys; jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))";
    let output = Command::new(python)
        .args(["-c", check, &file])
        .arg(schema)
        .output()
        .expect("python");
    assert!(output.status.success(), "{}", stderr(&output));
}
