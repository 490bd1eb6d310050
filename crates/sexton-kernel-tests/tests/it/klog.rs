//! The kernel's log, on a real kernel.

use std::fs::OpenOptions;
use std::io::Write;

use sexton_analysis::evidence::recognized::recognize;
use sexton_host::{Host, Piece, clock};
use sexton_kernel_tests::require::{Need, require};
use sexton_model::fact::klog::{KLOG_EVENT, KLOG_LINES, KernelLine};
use sexton_model::gap::Why;
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Event, Record, Sink};
use sexton_sensors::{SENSORS, Sensor};
use sexton_signatures::Signatures;

fn open(host: &Host) -> Box<dyn Sensor> {
    let spec = SENSORS.iter().find(|spec| spec.name == "klog");
    (spec.expect("it is in the list").open)(host).expect("it opens")
}

fn poll(sensor: &mut Box<dyn Sensor>, host: &Host) -> Vec<Record> {
    let mut out = Sink::new("klog", clock::now());
    sensor.poll(host, &mut out);
    out.into_records()
}

/// Writes a line to the log. Each is written through a file of its own, because the
/// kernel allows ten for each in five seconds.
fn write_line(line: &str) {
    let mut log = OpenOptions::new()
        .write(true)
        .open("/dev/kmsg")
        .expect("it opens");
    log.write_all(line.as_bytes()).expect("it is written");
}

fn events_of<'r>(records: &'r [Record], device: &str) -> Vec<Event<'r, KernelLine>> {
    let events = records
        .iter()
        .filter_map(|record| Event::of(record, &KLOG_EVENT));
    events
        .filter(|event| {
            event
                .says
                .line
                .as_ref()
                .is_some_and(|line| line.contains(device))
        })
        .collect()
}

/// What the sensor reads where `/dev/kmsg` is forbidden.
#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn syslog_gives_the_same_lines() {
    require(Need::Root);
    let host = Host::live().expect("a mount table");
    let log = host.kernel_log().expect("it may be read");
    let device = format!("sxt-syslog-{}", std::process::id());
    write_line(&format!("<12>sexton test: {device}\n"));
    for bytes in [4_096, log.whole_bytes()] {
        let text = log.read_last(bytes).expect("it is read");
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().filter(|it| it.contains(&device)).collect();
        assert_eq!(lines.len(), 1, "{bytes}: {text}");
        assert!(lines[0].starts_with("<12>["), "{}", lines[0]);
    }
}

/// The number of the oldest line, its text, and the number of the newest.
fn ends_of_log(host: &Host) -> (u64, String, u64) {
    let mut stream = host.open_stream("/dev/kmsg").expect("it opens");
    let mut buffer = vec![0; 16 * 1024];
    let mut first = None;
    let mut last = 0;
    loop {
        match stream.read(&mut buffer).expect("it is read") {
            Piece::Bytes(n) => {
                let record = String::from_utf8_lossy(&buffer[..n]).into_owned();
                let seq = record.split(',').nth(1).expect("a number");
                last = seq.parse().expect("a number");
                first.get_or_insert((last, record));
            }
            Piece::Overwritten => (),
            Piece::Nothing => break,
        }
    }
    let (seq, text) = first.expect("a line");
    (seq, text, last)
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn the_log_can_be_read_and_written() {
    require(Need::Root);
    let host = Host::live().expect("a mount table");
    let (_, _, last) = ends_of_log(&host);
    write_line("sexton test: this line is of no importance\n");
    assert!(ends_of_log(&host).2 > last);
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn lines_of_a_program_are_found_once_and_marked() {
    require(Need::Root);
    let host = Host::live().expect("a mount table");
    let mut sensor = open(&host);
    poll(&mut sensor, &host);

    let device = format!("sxt{}", std::process::id());
    let before = clock::now();
    for _ in 0..23 {
        write_line(&format!("ena sexton-test {device}: Trigger reset is on\n"));
    }
    // A warning, as the level of what programs write without one.
    for _ in 0..7 {
        write_line(&format!(
            "ena sexton-test {device}: sexton test, not a known wording\n"
        ));
    }
    write_line(&format!("<6>sexton test, {device} is of no importance\n"));
    let first = poll(&mut sensor, &host);
    let after = clock::now();
    let second = poll(&mut sensor, &host);

    let events = events_of(&first, &device);
    assert_eq!(
        events.len(),
        23 + 5,
        "of what nothing knows a few of each kind"
    );
    assert!(events_of(&second, &device).is_empty(), "found twice");
    let mut numbers: Vec<u64> = events.iter().filter_map(|e| e.says.seq).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), 23 + 5, "each has its own number");
    for event in events {
        assert_eq!(event.says.written_by.as_deref(), Some("userspace"));
        assert_eq!(event.says.class, None, "what it means is for the judge");
        check_time(&event, before, after);
    }
    let known = first
        .iter()
        .filter_map(|record| recognize(record, &Signatures::built_in()));
    let known: Vec<Record> = known.collect();
    let known = events_of(&known, &device);
    assert_eq!(known.len(), 23);
    for event in known {
        assert_eq!(event.says.id.as_deref(), Some("ena-trigger-reset"));
        assert_eq!(event.says.bus.as_deref(), Some("sexton-test"));
        assert_eq!(event.subject.to_string(), format!("device {device}"));
    }
}

/// The time of an event lies within what it says its error is.
fn check_time(event: &Event<'_, KernelLine>, before: Moment, after: Moment) {
    let error = event.says.time_error_ns.expect("an error");
    let at = event.at.as_ns();
    let span = before.as_ns().saturating_sub(error)..=after.as_ns() + error;
    assert!(span.contains(&at), "{at} is not in {span:?}");
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn the_log_is_read_from_its_beginning() {
    require(Need::Root);
    let host = Host::live().expect("a mount table");
    let (oldest, text, newest) = ends_of_log(&host);
    if oldest == 0 {
        assert!(text.contains(";Linux version "), "{text}");
    }
    let records = poll(&mut open(&host), &host);
    let (oldest_after, _, newest_after) = ends_of_log(&host);

    let n_lines = records
        .iter()
        .find(|record| record.fact() == Some(&KLOG_LINES))
        .and_then(Record::value)
        .expect("they are counted") as u64;
    let at_least = newest - oldest_after;
    let at_most = newest_after - oldest + 1;
    assert!((at_least..=at_most).contains(&n_lines), "{n_lines}");
    let lost = records.iter().find_map(|record| match &record.body {
        Body::Gap(gap) => Some(gap.why.clone()),
        _ => None,
    });
    if oldest_after == 0 {
        assert_eq!(lost, None);
    } else if oldest > 0 {
        assert!(matches!(lost, Some(Why::Lost(_))), "{lost:?}");
    }
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn lines_that_were_overwritten_are_counted() {
    // A ring of 16 MiB is the largest that distributions set.
    const MOST_LINES: usize = 40_000;
    require(Need::Root);
    let host = Host::live().expect("a mount table");
    let mut sensor = open(&host);
    let (_, _, read_at_least) = ends_of_log(&host);
    poll(&mut sensor, &host);
    let (_, _, read_at_most) = ends_of_log(&host);

    // For debugging only, so that no console shows them.
    let line = format!("<15>sexton test: filling the log {}\n", "x".repeat(900));
    let mut n_lines = 0;
    while ends_of_log(&host).0 <= read_at_most + 23 {
        (0..50).for_each(|_| write_line(&line));
        n_lines += 50;
        assert!(n_lines < MOST_LINES, "the log does not run over");
    }
    let device = format!("sxt{}", std::process::id());
    write_line(&format!("ena sexton-test {device}: Trigger reset is on\n"));

    let (oldest_before, ..) = ends_of_log(&host);
    let records = poll(&mut sensor, &host);
    let (oldest_after, ..) = ends_of_log(&host);
    let lost = records.iter().find_map(|record| match &record.body {
        Body::Gap(gap) if gap.text.contains("before they were read") => Some(gap.why.clone()),
        _ => None,
    });
    let Some(Why::Lost(n)) = lost else {
        panic!("nothing is said of what was lost: {lost:?}");
    };
    let least = oldest_before - 1 - read_at_most;
    let most = oldest_after - 1 - read_at_least;
    assert!((least..=most).contains(&n), "{n} of {least} to {most}");
    assert_eq!(
        events_of(&records, &device).len(),
        1,
        "what is left is read"
    );
}
