//! Many clients look at a recording while it is made: nothing of it may be lost.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton;
use sexton_model::fact::stack::{STACK_SAMPLES, STACK_SAMPLES_LOST};
use sexton_model::gap::Why;
use sexton_model::timeline::Timeline;
use sexton_store::{Bundle, StackPiece};

const CLIENTS: usize = 50;
const PATH: &str = "/api/v1/sources/main/tiles?lane=cores.worst&lane=network.wait&lane=memcg.dying&\
                    lane=pressure.cpu&lane=gaps&width=1200";

#[test]
#[ignore = "needs bpf: run cargo xtask test kernel"]
fn fifty_clients_cost_the_recorder_nothing() {
    require(Need::Root);
    require(Need::Bpf);
    require(Need::Sexton);
    let binary = sexton::binary().expect("it is named");
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = folder.path().join("node.bundle");
    let mut record = Command::new(&binary);
    let record = record.args(["record", "--for", "10s", "-o"]).arg(&bundle);
    let record = record.stderr(Stdio::piped()).spawn().expect("it records");
    while !bundle.join("bundle.json").exists() {
        thread::sleep(Duration::from_millis(20));
    }
    let mut serve = Command::new(&binary);
    serve.arg("serve").arg(&bundle);
    serve.args(["--listen", "127.0.0.1:0"]);
    let mut serve = serve.stdout(Stdio::piped()).spawn().expect("it serves");
    let mut line = String::new();
    let stdout = serve.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let address = line.trim().trim_start_matches("Open http://");
    let (said, n_answers) = load(address.trim_end_matches('/'), record);
    let _ = serve.kill();
    let _ = serve.wait();
    assert!(n_answers > CLIENTS as u64, "{n_answers} answers");
    check(&bundle, &said);
}

/// Has the clients ask until the recorder ends; what that said, and how often they were
/// answered.
fn load(address: &str, record: Child) -> (String, u64) {
    let (is_over, n_answers) = (AtomicBool::new(false), AtomicU64::new(0));
    let said = thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    n_answers.fetch_add(u64::from(ask(address)), Ordering::Relaxed);
                }
            });
        }
        let output = record.wait_with_output().expect("it ends");
        is_over.store(true, Ordering::Relaxed);
        String::from_utf8_lossy(&output.stderr).into_owned()
    });
    (said, n_answers.into_inner())
}

fn ask(address: &str) -> bool {
    let request = format!("GET {PATH} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    let asked = TcpStream::connect(address).and_then(|mut stream| {
        stream.write_all(request.as_bytes())?;
        stream.read_to_string(&mut answer)
    });
    asked.is_ok() && answer.starts_with("HTTP/1.1 200 ")
}

/// All that the recorder says it has recorded is there, and it says of nothing that it was
/// lost.
fn check(bundle: &Path, said: &str) {
    // `Recorded 8,220 records and 1,980 samples in 10s: …`
    let numbers = said.split("Recorded ").nth(1).expect("a summary");
    let n_said: String = numbers
        .chars()
        .take_while(|c| *c != ' ')
        .filter(char::is_ascii_digit)
        .collect();
    let bundle = Bundle::open(bundle).expect("a bundle");
    let records = bundle.load(None, None);
    assert_eq!(records.iter().count().to_string(), n_said, "{said}");
    let lost = records.gaps().filter(|(_, _, gap)| {
        // What the kernel's log had lost before anybody looked is not ours, and on a node
        // with more waiting tasks than are kept it is tasks that are left out, not records.
        matches!(gap.why, Why::Lost(_)) && !["klog", "runq"].contains(&gap.sensor.as_ref())
    });
    let lost: Vec<_> = lost.map(|(_, _, gap)| gap.text.clone()).collect();
    assert!(lost.is_empty(), "{lost:?}");
    let last = |fact| records.of(fact).last().and_then(|record| record.value());
    assert_eq!(last(&STACK_SAMPLES_LOST).unwrap_or(0.0), 0.0);
    let n_kept: usize = bundle
        .stacks(None)
        .map(|piece| match piece {
            StackPiece::Chunk(chunk) => chunk.samples.len(),
            StackPiece::Gap(_, gap) => panic!("{}", gap.text),
        })
        .sum();
    let n_taken = last(&STACK_SAMPLES).expect("it sampled stacks");
    assert!(n_kept as f64 >= n_taken, "{n_kept} of {n_taken}");
}
