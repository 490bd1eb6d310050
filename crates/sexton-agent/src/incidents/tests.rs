//! An incident holds its time, takes in what opens meanwhile, and incidents stay bounded.

use sexton_analysis::live::Life;
use sexton_model::fact::memcg::MEMCG_DYING;
use sexton_model::finding::{Confidence, Finding};
use sexton_model::record::Sink;
use sexton_model::subject::Subject;
use sexton_store::{Bundle, Limits, Node};

use super::*;

const SECOND: u64 = 1_000_000_000;

fn at(second: u64) -> Moment {
    Moment::from_ns(second * SECOND)
}

fn change(second: u64, code: &'static str, severity: Severity) -> Change {
    let finding = Finding {
        code,
        subject: Subject::node(),
        severity,
        confidence: Confidence::LIKELY,
        title: "it is bad".into(),
        figure: "7".into(),
        since: None,
        evidence: Vec::new(),
        remedies: Vec::new(),
        touched: Vec::new(),
        episodes: Vec::new(),
    };
    let life = Life {
        finding,
        opened: at(second),
        worst: severity,
        worst_at: at(second),
        last_seen: at(second),
        resolved: None,
    };
    Change {
        at: at(second),
        turn: Turn::Opened,
        life,
    }
}

struct Place {
    dir: tempfile::TempDir,
    writer: BundleWriter,
    incidents: Incidents,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let node = Node {
            name: "node".into(),
            kernel: "6.1".into(),
            boot_id: "aa".into(),
        };
        let limits = Limits::ring(64 << 20, Duration::from_secs(86_400));
        let bundle = dir.path().join("bundle");
        let writer = BundleWriter::create(&bundle, limits, node, at(0)).expect("a bundle");
        let incidents = Incidents::open(&dir.path().join("incidents"), "aa");
        Self {
            dir,
            writer,
            incidents,
        }
    }

    /// Records one census a minute.
    fn record(&mut self, seconds: std::ops::Range<u64>) {
        for second in seconds.step_by(60) {
            let mut out = Sink::new("memcg", at(second));
            out.sample(&Subject::node(), &MEMCG_DYING, second as f64);
            self.writer.append(&out.into_records()).expect("room");
        }
    }

    fn take(&mut self, change: Change) -> Option<String> {
        let bundle = self.dir.path().join("bundle");
        let wall_ns = change.at.as_ns() + 1_794_986_000 * SECOND;
        let taken = self.incidents.take(&[change], &bundle, "aa", wall_ns);
        taken.expect("it is kept")
    }

    fn finish(&mut self, second: u64) {
        assert!(self.incidents.is_due(at(second)));
        let bundle = self.dir.path().join("bundle");
        let finished = self.incidents.finish(&mut self.writer, &bundle, at(second));
        finished.expect("it is kept");
    }

    fn list(&self) -> Vec<Incident> {
        Incidents::list(&self.dir.path().join("incidents"))
    }
}

#[test]
fn it_holds_what_was_before_and_after() {
    let mut place = Place::new();
    place.record(0..3600);
    place.writer.seal_now(at(3600)).expect("sealed");
    assert_eq!(place.take(change(3600, "MCG003", Severity::Warning)), None);
    let name = place.take(change(3600, "NIC001", Severity::Serious));
    let name = name.expect("a serious finding is an incident");
    assert_eq!(name, "20261118T081320Z-NIC001");
    assert!(!place.incidents.is_due(at(3800)));
    // What opens meanwhile belongs to it.
    assert_eq!(place.take(change(3700, "JOB001", Severity::Critical)), None);
    place.record(3600..4000);
    place.finish(4001);
    let all = place.list();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].others, ["JOB001:node"]);
    assert!(all[0].is_whole && all[0].to_ns == at(4000).as_ns());
    let bundle = Bundle::open(&place.dir.path().join("incidents").join(name));
    let span = bundle.expect("a bundle").span().expect("records");
    assert!(
        *span.start() <= at(3000) && *span.end() >= at(3960),
        "{span:?}"
    );
}

#[test]
fn an_unfinished_one_is_gone_on_with_after_a_restart() {
    let mut place = Place::new();
    place.record(0..600);
    place.take(change(600, "NIC001", Severity::Serious));
    place.incidents = Incidents::open(&place.dir.path().join("incidents"), "aa");
    place.record(600..900);
    place.finish(901);
    assert!(place.list()[0].is_whole);
}

#[test]
fn the_oldest_go_first() {
    let mut place = Place::new();
    for i in 1..=5 {
        place.record(i * 10_000..i * 10_000 + 60);
        place.take(change(i * 10_000, "NIC001", Severity::Serious));
        place.finish(i * 10_000 + 301);
    }
    place.incidents.bound(3, u64::MAX).expect("bounded");
    let left: Vec<u64> = place.list().iter().map(|it| it.opened_ns).collect();
    assert_eq!(left, [3, 4, 5].map(|i| at(i * 10_000).as_ns()));
    let bytes = place.list()[2].bytes;
    place.incidents.bound(3, bytes).expect("bounded");
    assert_eq!(place.list().len(), 1);
}
