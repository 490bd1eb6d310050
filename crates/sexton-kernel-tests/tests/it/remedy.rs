//! An agent in a real systemd ends a restart loop where its configuration allows that, leaves
//! others alone, and only says what it would do in a dry run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sexton_agent::{ActStatus, Status};
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton;
use sexton_kernel_tests::systemd::{ROOTFS, Systemd};
use sexton_model::fact::finding::REMEDY_ACT;
use sexton_model::record::Event;
use sexton_model::timeline::Timeline as _;
use sexton_store::Bundle;

/// The packaged units of the agent and its helper.
const UNITS: [&str; 4] = [
    "sexton-agent.service",
    "sexton-remedy.socket",
    "sexton-remedy@.service",
    "sexton.sysusers",
];

/// Three loops: allowed, not allowed, allowed in the dry run.
const JOB: &str = r#"
exec 2> said
set -x
await() { for i in $(seq 450); do "$@" > /dev/null 2>&1 && return; sleep 0.2; done; echo "in vain: $*"; exit 9; }
trap 'journalctl -o cat --no-pager > journal' EXIT
# What this small /dev lacks: the kernel log, and what systemd copies to a private one.
mknod /dev/kmsg c 1 11
ln -s pts/ptmx /dev/ptmx
cp sexton /usr/bin/sexton
mkdir -p /etc/sysusers.d
cp sexton.sysusers /etc/sysusers.d/sexton.conf
systemd-sysusers sexton.conf
cp sexton-agent.service sexton-remedy.socket sexton-remedy@.service /etc/systemd/system
# Units that came with the image: those in /etc cannot be masked.
mkdir -p /usr/local/lib/systemd/system /etc/sexton
for u in loop-a loop-b loop-c; do
    cat > /usr/local/lib/systemd/system/$u.service << END
[Unit]
StartLimitIntervalSec=0
[Service]
Restart=always
RestartSec=300ms
ExecStart=/bin/false
[Install]
WantedBy=multi-user.target
END
done
config() { # dry run, origin, socket of the helper
    cat << END
[sensors]
off = ["stacks", "runq", "napi"]
[remedy]
enabled = true
dry_run = $1
watch = "10s"
socket = "$3"
[[remedy.allow]]
code = "UNIT001"
origin = "$2"
act = "mask"
END
}
config false loop-a.service /run/sexton-remedy.sock > /etc/sexton/agent.toml
{
    config true loop-c.service /run/dry.sock
    printf '[ring]\npath = "/tmp/dry"\n[listen]\nsocket = "/tmp/dry.sock"\nhttp = ""\n'
} > /etc/sexton/dry.toml
cd /etc/systemd/system
sed 's#/run/sexton-remedy.sock#/run/dry.sock#' sexton-remedy.socket > dry-remedy.socket
sed 's#agent act#agent act --config /etc/sexton/dry.toml#' sexton-remedy@.service > dry-remedy@.service
cd /job
systemctl daemon-reload
systemctl start sexton-remedy.socket dry-remedy.socket
systemctl enable loop-a loop-b loop-c
systemctl start --no-block loop-a loop-b loop-c
systemctl start sexton-agent
sexton agent --config /etc/sexton/dry.toml 2> dry.log &
dry=$!
state() {
    for u in loop-a loop-b loop-c; do
        echo "$u $(systemctl is-enabled $u) $(systemctl show --value -p ActiveState $u) $(systemctl show --value -p NRestarts $u)"
    done
}
status() { sexton status --json "$@" || test $? != 2; }
has_acted() { status "$@" > now && grep -q '"outcome"' now; }
await has_acted
status > acted
await has_acted --agent /tmp/dry.sock
status --agent /tmp/dry.sock > planned
sexton status > text || test $? != 2
state > after
sleep 1
state > later
ls /var/lib/sexton-remedy/undo > undo-files
cat /var/lib/sexton/last-fix.json > last-fix
cp -r /var/lib/sexton/findings findings

# What else may ask, and for what.
cat > ask << 'END'
use IO::Socket::UNIX;
my $s = IO::Socket::UNIX->new(Peer => "/run/sexton-remedy.sock") or die "refused: $!\n";
print $s "{\"code\":\"UNIT001\",\"origin\":\"$ARGV[0]\"}\n";
$s->shutdown(1);
print <$s>;
END
stranger() { setpriv --reuid 65534 --regid 65534 --clear-groups perl /job/ask loop-a.service; }
stranger > stranger 2>&1 || true
chmod 666 /run/sexton-remedy.sock
stranger > stranger-let-in 2> /dev/null || true
perl ask loop-b.service > not-allowed
perl ask loop-a.service > again

sexton fix --undo /var/lib/sexton-remedy/undo/$(cat undo-files) --yes > undone
state > restored
kill $dry
wait $dry || true
journalctl -o cat --no-pager -u 'sexton-remedy@*' > helper
systemctl stop sexton-agent loop-a loop-b loop-c
"#;

fn acts(systemd: &Systemd, name: &str) -> Vec<ActStatus> {
    let text = systemd.read(name).expect("the job asked for it");
    let status: Status = serde_json::from_str(&text).expect("a status");
    status.acts
}

/// The words of the line about a unit.
fn state(systemd: &Systemd, name: &str, unit: &str) -> Vec<String> {
    let text = systemd.read(name).expect("states");
    let line = text.lines().find(|line| line.starts_with(unit));
    let words = line.expect("the unit").split_whitespace();
    words.skip(1).map(str::to_owned).collect()
}

/// The job, played in a systemd with the shipped units.
fn played() -> Systemd {
    let sexton = sexton::binary().expect("required");
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/systemd");
    let units = UNITS.iter().map(|name| deploy.join(name));
    let parts: Vec<PathBuf> = units.chain([sexton]).collect();
    let rootfs = std::env::var_os(ROOTFS).expect("required");
    let within = Duration::from_secs(150);
    let played = Systemd::play(Path::new(&rootfs), &parts, JOB, within, &mut |_| ());
    let (systemd, done) = played.expect("it boots");
    if let Err(error) = done {
        let said = systemd.read("said").unwrap_or_default();
        let journal = systemd.read("journal").unwrap_or_default();
        let acted = systemd.read("acted").unwrap_or_default();
        panic!("{error:#}; the job: {said}\n{journal}\n{acted}");
    }
    systemd
}

#[test]
#[ignore = "needs root, bpf, sexton and systemd: run cargo xtask test kernel"]
fn a_loop_is_ended_where_allowed_and_only_there() {
    for need in [Need::Root, Need::Bpf, Need::Sexton, Need::Systemd] {
        require(need);
    }
    let systemd = played();
    let acted = acts(&systemd, "acted");
    let act = acted.first().expect("an act");
    let (code, origin) = (act.code.as_str(), act.origin.as_str());
    assert_eq!((code, origin), ("UNIT001", "loop-a.service"));
    assert_eq!(act.outcome, "done", "{act:?}");
    assert_eq!(act.acts, ["mask"]);
    let undo = act.undo_file.as_ref().expect("an undo file");
    assert!(undo.starts_with("/var/lib/sexton-remedy/undo"), "{undo:?}");
    let text = systemd.read("text").expect("a status");
    assert!(text.contains("undo: sexton fix --undo /var/lib/"), "{text}");
    for name in ["after", "later"] {
        let a = state(&systemd, name, "loop-a");
        assert_eq!(a[..2], ["masked", "inactive"], "{name}");
        // The others go on: not allowed, and a dry run.
        for unit in ["loop-b", "loop-c"] {
            assert_eq!(state(&systemd, name, unit)[0], "enabled", "{name} {unit}");
        }
    }
    for unit in ["loop-b", "loop-c"] {
        let restarts = |name| state(&systemd, name, unit).last().cloned();
        assert_ne!(restarts("after"), restarts("later"), "{unit} still loops");
    }

    let planned = acts(&systemd, "planned");
    let [plan] = planned.as_slice() else {
        panic!("one plan: {planned:?}");
    };
    assert_eq!(plan.origin, "loop-c.service");
    assert_eq!(plan.outcome, "planned");
    assert_eq!(plan.undo_file, None);
    assert!(plan.text.contains("would stop loop-c.service"), "{plan:?}");
    let log = systemd.read("dry.log").expect("a log");
    assert!(
        log.contains("remedy planned: UNIT001:loop-c.service"),
        "{log}"
    );
    let journal = systemd.read("journal").expect("a journal");
    assert!(
        journal.contains("remedy done: UNIT001:loop-a.service")
            && journal.contains("to undo: sexton fix --undo"),
        "{journal}"
    );
    // Its unit allows what confines the threads that answer clients.
    assert!(
        !journal.contains("are not held to their files"),
        "{journal}"
    );
    let kept = systemd.read("last-fix").expect("what it came to");
    assert!(kept.contains("boot_id"), "{kept}");
    is_in_the_findings_log(&systemd.folder().join("findings"));
    refuses_others(&systemd);
    let a = state(&systemd, "restored", "loop-a");
    assert_eq!(a[0], "enabled");
    assert!(a[1] != "inactive", "{a:?}");
}

fn is_in_the_findings_log(folder: &Path) {
    let boot = std::fs::read_dir(folder).expect("a log").next();
    let boot = boot.expect("a boot").expect("a folder").path();
    let records = Bundle::open(&boot).expect("a bundle").load(None, None);
    let mut acts = records.of(&REMEDY_ACT);
    let act = acts.find_map(|record| Event::of(record, &REMEDY_ACT));
    let act = act.expect("an act");
    assert_eq!(&*act.subject.name, "loop-a.service");
    assert_eq!(act.says.outcome, "done");
    assert!(act.says.undo_file.is_some());
}

fn refuses_others(systemd: &Systemd) {
    let read = |name| systemd.read(name).expect("the job wrote it");
    assert!(read("stranger").contains("refused"), "{}", read("stranger"));
    // Past the mode of the socket, the helper looks at who asks.
    assert_eq!(read("stranger-let-in"), "");
    let helper = read("helper");
    assert!(helper.contains("only root and sexton may ask"), "{helper}");
    let not_allowed = read("not-allowed");
    assert!(
        not_allowed.contains("refused") && not_allowed.contains("does not allow it"),
        "{not_allowed}"
    );
    let again = read("again");
    assert!(
        again.contains("refused") && again.contains("was acted on"),
        "{again}"
    );
}
