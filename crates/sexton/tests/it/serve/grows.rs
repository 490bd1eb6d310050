//! A recording that is written while it is looked at.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sexton_model::fact::core::CORE_WORST_SYSTEM_RATIO;
use sexton_model::fact::sexton::SEXTON_WALL_CLOCK_NS;
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::Subject;
use sexton_store::{BundleWriter, Limits, Node};

use super::Server;

const SECOND: u64 = 1_000_000_000;

/// A second of a node, `n` seconds after it began.
fn second(writer: &mut BundleWriter, began_ns: u64, n: u64) {
    let at = |tenth: u64| Moment::from_ns(100 * SECOND + n * SECOND + tenth * SECOND / 10);
    for tenth in 0..10 {
        let mut out = Sink::new("cores", at(tenth));
        out.sample(&Subject::cpu(0), &CORE_WORST_SYSTEM_RATIO, 0.5);
        if tenth == 0 {
            let wall = (began_ns + n * SECOND) as f64;
            out.sample(&Subject::node(), &SEXTON_WALL_CLOCK_NS, wall);
        }
        writer.append(&out.into_records()).expect("room");
    }
    writer.sync(at(10)).expect("room");
}

fn create(folder: &Path) -> BundleWriter {
    let limits = Limits::ring(64 << 20, Duration::from_secs(86_400));
    let node = Node {
        name: "node".into(),
        kernel: "6.1".into(),
        boot_id: "boot".into(),
    };
    BundleWriter::create(folder, limits, node, Moment::from_ns(100 * SECOND)).expect("a bundle")
}

#[test]
fn what_is_recorded_meanwhile_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("node.bundle");
    let mut writer = create(&bundle);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let began_ns = u64::try_from(now.as_nanos()).unwrap();
    (0..5).for_each(|n| second(&mut writer, began_ns, n));
    let server = Server::over(&bundle);
    let first = server.wait_until_read();
    assert_eq!(first["live"], true, "{first}");
    let end = first["to"].as_u64().unwrap();
    (5..12).for_each(|n| second(&mut writer, began_ns, n));
    let grown = server.wait_for(|source| source["to"].as_u64().unwrap() > end + 5_000_000);
    let from = end + 2_000_000;
    let tile = |from: u64, to: u64| {
        let path =
            format!("/api/v1/sources/main/tiles?lane=cores.worst&from={from}&to={to}&width=4");
        server.get(&path).json()["tiles"][0]["values"].clone()
    };
    let to = grown["to"].as_u64().unwrap();
    let is_seen = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        tile(from, from + 2_000_000) == serde_json::json!([0.5, 0.5, 0.5, 0.5])
    });
    assert!(is_seen, "{from} {to} {}", tile(from, to));
    // What has ended is no longer live, though the server runs on.
    writer.finish(Moment::from_ns(112 * SECOND)).unwrap();
    server.wait_for(|source| source["live"] == false);
}
