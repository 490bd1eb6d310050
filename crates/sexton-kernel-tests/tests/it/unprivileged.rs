//! A user without privileges records what there is to see for one, and is told of the rest.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::Command;

use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton::{binary, sensors};
use sexton_model::fact::core::CORE_SYSTEM_RATIO;
use sexton_model::fact::sexton::SEXTON_STEP_DOWN;
use sexton_model::gap::Why;
use sexton_model::record::Body;
use sexton_model::timeline::Timeline as _;
use sexton_store::Bundle;

const NOBODY: u32 = 65_534;

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn nobody_records_what_it_can() {
    require(Need::Root);
    require(Need::Sexton);
    // The build may lie where only its owner gets to.
    let place = tempfile::tempdir().expect("a folder");
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.path(), open.clone()).expect("our own");
    let sexton = place.path().join("sexton");
    fs::copy(binary().expect("it is built"), &sexton).expect("copied");
    fs::set_permissions(&sexton, open).expect("our own");
    let own = place.path().join("own");
    fs::create_dir(&own).expect("made");
    chown(&own, Some(NOBODY), Some(NOBODY)).expect("given away");

    let recorded = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg("--")
        .arg(&sexton)
        .args(["record", "--for", "3s", "-o"])
        .arg(own.join("bundle"))
        .output()
        .expect("setpriv is there");
    let said = String::from_utf8_lossy(&recorded.stderr);
    assert_eq!(recorded.status.code(), Some(0), "{said}");

    let all = Bundle::open(&own.join("bundle")).expect("a bundle");
    let all = all.load(None, None);
    assert!(all.of(&CORE_SYSTEM_RATIO).next().is_some());
    let denied = all.gaps().filter(|(_, _, gap)| gap.why == Why::Denied);
    let denied: BTreeSet<&str> = denied.map(|(_, _, gap)| &*gap.sensor).collect();
    for sensor in ["cgroups", "exits", "napi", "runq", "stacks"] {
        assert!(denied.contains(sensor), "{sensor} says nothing: {denied:?}");
    }
    // Each is blind and shown as such, or has found another way and says which: `runq` needs a
    // kernel that counts in /proc/schedstat for that.
    let instead = all
        .all()
        .filter(|record| record.says(&SEXTON_STEP_DOWN).is_some());
    let instead: BTreeSet<&str> = instead.map(|record| &*record.sensor).collect();
    assert!(instead.contains("napi"), "{instead:?}");
    for sensor in ["cgroups", "exits", "runq", "stacks"] {
        let is_said = said.contains(sensor) || instead.contains(sensor);
        assert!(is_said, "{sensor} is not shown: {said}");
    }
    // Whoever saw nothing at all has said why.
    let heard: BTreeSet<&str> = all.all().map(|record| &*record.sensor).collect();
    for sensor in sensors() {
        assert!(heard.contains(&*sensor), "{sensor} is silent");
    }
    let mut remedies = all.all().filter_map(|record| match &record.body {
        Body::Gap(gap) => gap.remedy.as_deref(),
        _ => None,
    });
    assert!(remedies.any(|text| text.contains("run as root")));
}
