//! What `sexton profile` answers: threads, callers, sums, differences, and what is missing.

use std::fs;

use serde_json::Value;

use crate::command::{sexton, stderr};
use crate::profile::{Folder, fixture, profile, text};

#[test]
fn a_damaged_record_is_spoken_of() {
    let folder = Folder::new("damaged");
    let mut data = fs::read(fixture("fp.data")).expect("the fixture");
    let mut at = usize::from_le_bytes(data[40..48].try_into().expect("8 bytes"));
    // The first sample becomes a record of a kind that there is not.
    while data[at] != 9 {
        at += usize::from(u16::from_le_bytes([data[at + 6], data[at + 7]]));
    }
    data[at] = 63;
    let file = folder.join("damaged.data");
    fs::write(&file, data).expect("a file");
    let output = sexton(&["profile", "top", "--no-symbols", "--from", &file]);
    assert_eq!(output.status.code(), Some(3));
    let said = stderr(&output);
    assert!(said.contains("passed over 1 damaged"), "{said}");
}

#[test]
fn text_without_times_has_functions_but_no_heat_map() {
    let folder = Folder::new("untimed");
    let file = folder.join("script.txt");
    // As FlameGraph's own test/perf-funcab-pid-01.txt.
    let sample = "func_ab 15294 cpu-clock: \n\t          4004f6 func_b (/root/func_ab)\n\n";
    fs::write(&file, sample.repeat(3)).expect("a file");
    let top = text(&sexton(&["profile", "top", "--from", &file]));
    assert!(
        top.starts_with("3 samples of cpu-clock; 1 function\n"),
        "{top}"
    );
    for (args, said) in [
        (&["heatmap", "--from", &file][..], "no times"),
        (&["top", "--from", &file, "--to", "1s"], "--from and --to"),
    ] {
        let output = sexton(&[&["profile"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
    let frames_only = folder.join("frames.txt");
    fs::write(&frames_only, "\t  4004f6 func_b (/root/func_ab)\n\n").expect("a file");
    let output = sexton(&["profile", "top", "--from", &frames_only]);
    assert!(
        stderr(&output).contains("perf script -F"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn sums_are_samples_or_time() {
    let sum = |args: &[&str]| {
        let folded = text(&profile("export", "fp.data", args));
        let counts = folded.lines().filter_map(|line| line.rsplit(' ').next());
        counts
            .map(|n| n.parse::<u64>().expect("a count"))
            .sum::<u64>()
    };
    let top = text(&profile("top", "fp.data", &["--json"]));
    let top: Value = serde_json::from_str(&top).expect("JSON");
    assert_eq!(top["unit"], "nanoseconds");
    let time = sum(&["--format", "folded"]);
    assert_eq!(Some(time), top["weight"].as_u64());
    let samples = sum(&["--format", "folded", "--weight", "samples"]);
    assert_eq!(Some(samples), top["samples"].as_u64());
    assert_eq!(sum(&["--format", "folded", "--inverted"]), time);
    let said = stderr(&profile("export", "fp.data", &["--format", "folded"]));
    assert!(said.contains("counts are nanoseconds"), "{said}");
}

#[test]
fn a_function_has_callers_and_callees() {
    let json = |args: &[&str]| -> Value {
        let args = [&["--json"], args].concat();
        serde_json::from_str(&text(&profile("top", "fp.data", &args))).expect("JSON")
    };
    // Its main has no frame pointer, so that the chain goes on in libc, which has no names here.
    let callers = json(&["--callers", "burn_sixty"]);
    let caller = &callers["callers"][0];
    assert_eq!(caller["function"], "[libc.so.6]", "{callers}");
    assert_eq!(caller["samples"], callers["function_samples"]);
    let callees = json(&["--callees", r"[libc.so.6]"]);
    let called = callees["callees"].as_array().expect("a list");
    let names = called.iter().filter_map(|c| c["function"].as_str());
    let names: Vec<&str> = names.collect();
    assert!(
        names.contains(&"burn_sixty") && names.contains(&"burn_ten"),
        "{names:?}"
    );
    let none = profile("top", "fp.data", &["--callers", "no_such_function"]);
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn threads_are_listed_and_chosen() {
    let threads = text(&profile("top", "fp.data", &["--threads", "--json"]));
    let threads: Value = serde_json::from_str(&threads).expect("JSON");
    let first = &threads["threads"][0];
    assert_eq!(first["comm"], "burn");
    let tid = first["tid"].to_string();
    let top = text(&profile("top", "fp.data", &["--json", "--tid", &tid]));
    let top: Value = serde_json::from_str(&top).expect("JSON");
    assert_eq!(top["samples"], first["samples"]);
    let none = profile("top", "fp.data", &["--tid", "1"]);
    assert!(
        stderr(&none).contains("no sample is left"),
        "{}",
        stderr(&none)
    );
    let map = text(&profile("heatmap", "fp.data", &["--by", "thread"]));
    assert!(map.contains(&format!("burn {tid}/{tid}")), "{map}");
}

#[test]
fn two_recordings_are_compared() {
    let folder = Folder::new("diff");
    let (kallsyms, root) = (fixture("kallsyms"), fixture("root"));
    let symbols = ["--kallsyms", &kallsyms, "--symfs", &root];
    let (one, other) = (fixture("fp.data"), fixture("packed.data"));
    let diff = |before: &str, after: &str, args: &[&str]| {
        sexton(&[&["profile", "diff", before, after], &symbols[..], args].concat())
    };
    let same = text(&diff(&one, &one, &[]));
    assert!(same.contains("0 functions with another share"), "{same}");
    let changed = text(&diff(&one, &other, &["--json"]));
    let changed: Value = serde_json::from_str(&changed).expect("JSON");
    let shares = |key: &str| -> f64 {
        let functions = changed["functions"].as_array().expect("a list");
        functions.iter().filter_map(|f| f[key].as_f64()).sum()
    };
    assert!(shares("self_percent_before") > 50.0 && shares("self_percent_after") > 50.0);
    let svg = folder.join("d.svg");
    text(&diff(&one, &other, &["-o", &svg]));
    assert!(
        fs::read_to_string(&svg)
            .expect("it was written")
            .contains("before")
    );
}
