//! What a machine is for, told from its image with care.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use super::{audit, founding, text, write};
use crate::command::{sexton, stdout};

/// Signs that disagree are no answer: Docker beside a database is no machine to throw away, and
/// an ECS agent without settings may get them at boot.
#[test]
fn where_signs_disagree_the_deployment_is_not_known() {
    let (_place, root) = founding();
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    fs::remove_file(wants.join("kubelet.service")).expect("removed");
    fs::remove_file(wants.join("ecs.service")).expect("removed");
    let name = "postgresql.service";
    let unit = "[Service]\nExecStart=/bin/sh\n[Install]\nWantedBy=multi-user.target\n";
    write(root.join("usr/lib/systemd/system").join(name), unit);
    let target = Path::new("/usr/lib/systemd/system").join(name);
    symlink(target, wants.join(name)).expect("linked");
    let found = audit(&[text(&root)], 0);
    assert_eq!(found["shape"], Value::Null);
    let doubt = found["shape_doubt"].as_str().expect("a reason");
    assert!(doubt.contains("but postgresql* is enabled"), "{doubt}");
    let shown = stdout(&sexton(&["image", "audit", text(&root)]));
    assert!(shown.contains("name it with --shape"), "{shown}");
}

/// The founding incident: an agent of ECS that no file names a cluster to is not wanted there.
#[test]
fn docker_with_an_agent_of_ecs_that_has_no_cluster_is_a_docker_host() {
    let (_place, root) = founding();
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    fs::remove_file(wants.join("kubelet.service")).expect("removed");
    let found = audit(&[text(&root)], 1);
    assert_eq!(found["shape"], "docker-host");
    assert_eq!(super::unit(&found, "ecs.service")["verdict"], "unwanted");
}

/// However it is told which cluster it belongs to, an ECS node is one.
#[test]
fn a_node_of_ecs_is_known_by_any_way_to_configure_it() {
    for (path, content) in [
        ("etc/ecs/ecs.config", "ECS_CLUSTER='prod'\n"),
        ("var/lib/ecs/ecs.config", "export ECS_CLUSTER=prod\n"),
        (
            "etc/systemd/system/ecs.service.d/cluster.conf",
            "[Service]\nEnvironment=A=b \"ECS_CLUSTER=prod\"\n",
        ),
        (
            "var/lib/cloud/seed/nocloud/user-data",
            "#!/bin/sh\necho ECS_CLUSTER=prod >> /etc/ecs/ecs.config\n",
        ),
        (
            "etc/systemd/system/ecs.service.d/cluster.conf",
            "[Service]\nEnvironmentFile=-/etc/sysconfig/ecs\n",
        ),
    ] {
        let (_place, root) = founding();
        let wants = root.join("etc/systemd/system/multi-user.target.wants");
        fs::remove_file(wants.join("kubelet.service")).expect("removed");
        write(root.join(path), content);
        if content.contains("EnvironmentFile") {
            write(root.join("etc/sysconfig/ecs"), "# ours\nECS_CLUSTER=prod\n");
        }
        let found = audit(&[text(&root)], 0);
        assert_eq!(found["shape"], "ecs-node", "{path}");
    }
}
