//! Signatures that are given to a live `sexton diagnose`, or to the agent in its configuration, have
//! their questions asked of the node's files, on a real systemd.

use std::time::Duration;

use serde_json::Value;
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton;
use sexton_kernel_tests::systemd::Systemd;

const UNIT: (&str, &str) = (
    "frobd.service",
    "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n",
);

/// Only the text of a file that no signature of the program asks for tells whether the unit is of
/// use.
const JOB: &str = r#"
mkdir known
cat > known/frob.toml <<'END'
title = "frob"
units = ["frobd.service"]
why = "without flux it has nothing to do"
risk = "low"
source = ["a test"]
evidence = [{ text = { path = "/etc/frob.conf", has = "flux = 0" } }]
END
systemctl enable -q frobd.service
for flux in 0 1; do
    echo "flux = $flux" > /etc/frob.conf
    ./sexton diagnose --for 2s --json --signatures known -o bundle$flux > verdict$flux || true
    ./sexton diagnose --from bundle$flux --json --signatures known > replay$flux || true
    cmp verdict$flux replay$flux
done
echo "flux = 0" > /etc/frob.conf
cat > agent.toml <<END
[ring]
path = "$PWD/ring"
[listen]
socket = "$PWD/agent.sock"
http = ""
[judge]
signatures = "$PWD/known"
END
./sexton agent --config agent.toml 2> log &
agent=$!
for _ in $(seq 80); do
    sleep 1
    ./sexton status --agent agent.sock --json > status || true
    ! grep -q UNIT004:frobd.service status || break
done
kill $agent
wait $agent
"#;

#[test]
#[ignore = "needs root, sexton and systemd: run cargo xtask test kernel"]
fn diagnose_and_the_agent_ask_what_their_signatures_want_to_know() {
    for need in [Need::Root, Need::Sexton, Need::Systemd] {
        require(need);
    }
    let sexton = sexton::binary().expect("required");
    let programs = [sexton.to_str().expect("a plain path")];
    let systemd = Systemd::run(&[UNIT], &programs, JOB, Duration::from_secs(150)).expect("a run");
    let is_found = |name: &str| {
        let verdict = systemd.read(name).expect("a verdict");
        let verdict: Value = serde_json::from_str(&verdict).expect("JSON");
        let mut findings = verdict["findings"].as_array().expect("a list").iter();
        findings.any(|found| found["id"] == "UNIT004:frobd.service")
    };
    assert!(is_found("verdict0"));
    assert!(!is_found("verdict1"));
    let status = systemd.read("status").expect("an answer of the agent");
    let log = systemd.read("log").unwrap_or_default();
    assert!(status.contains("UNIT004:frobd.service"), "{status}\n{log}");
}
